#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilecast::measure {

/// A request or an answer: one line of `key=value` fields with tabs between them. Values hold no
/// tab, newline; the driver (measure/kit/worker.py) writes and reads the same form.
using Fields = std::map<std::string, std::string>;

/// A request that the kit or the card can't do; the case is recorded as unsupported.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Fields parse_fields(const std::string& line);
std::string format_fields(const Fields& fields);

/// One request, with checked access. All throw Unsupported naming the field.
class Request {
 public:
  explicit Request(Fields fields) : fields_(std::move(fields)) {}

  std::string text(const std::string& key, const std::string& otherwise = "") const;
  int64_t integer(const std::string& key, int64_t otherwise) const;
  int64_t size(const std::string& key) const;  ///< at least 1
  double number(const std::string& key, double otherwise) const;
  bool flag(const std::string& key) const { return integer(key, 0) != 0; }
  std::vector<int64_t> integers(const std::string& key) const;  ///< "1:2:3"

 private:
  Fields fields_;
};

}  // namespace tilecast::measure
