#pragma once

// A value of a spec's JSON with its place in the file: what is wrong with it says line and column.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/json_place.h"

namespace tilecast {

class SpecNode {
 public:
  /// The whole document. Throws Error{kInput} for what is not JSON or no object.
  SpecNode(std::string text, std::string where);

  const Json& json() const { return *json_; }
  const std::string& where() const { return file_->where; }
  /// Keys in the order of the alphabet.
  std::vector<std::string> keys() const;
  bool has(const std::string& key) const { return json_->is_object() && json_->contains(key); }
  SpecNode at(const std::string& key) const;
  SpecNode at(size_t index) const;
  /// For messages about a key that is not there.
  SpecNode at_missing(const std::string& key) const;
  /// The last key on the way to the value.
  std::string key() const;

  /// Throws where the value is not of the type. `what` says what was expected: "an object".
  void require_object(const std::string& what) const;
  void require_list(const std::string& what) const;
  /// A finite number.
  double number() const;
  int64_t whole(int64_t minimum, int64_t maximum) const;
  std::string text() const;

  /// Throws for a key that is not in `known`.
  void reject_unknown(const std::vector<std::string>& known) const;
  /// "spec.json:3:14: 'batch': message"
  [[noreturn]] void fail(const std::string& message) const;
  /// The value as a message shows it.
  std::string shown() const;

 private:
  struct File {
    std::string text, where;
    Json json;
  };
  SpecNode() = default;

  std::shared_ptr<const File> file_;  ///< shared: of all nodes, read-only
  const Json* json_ = nullptr;
  std::vector<JsonStep> steps_;
};

}  // namespace tilecast
