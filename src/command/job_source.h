#pragma once

// Jobs from texts and files, for the questions about several jobs.
//
// A text is "MODEL option=value ...": "resnet-50 mode=training batch=64 loader_s=0.02". A file is
// {"jobs": [{"model": "resnet-50", "mode": "training", "batch": 64, "loader_s": 0.02}, ...]}, with
// texts allowed in place of objects; an object may also be given as a text. A model is a name, a
// path, or the object of a config. Options are those of a
// forecast and the bounds of a job.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tilecast/share.h"

namespace tilecast {

/// A job, and the members of its object that the question reads itself.
struct AskedJob {
  Job job;
  std::map<std::string, Json> further;
  std::string where;  ///< in messages: "jobs.json: jobs[2]"
};

class JobReader {
 public:
  /// `further`: keys that the question reads itself, whatever their type.
  explicit JobReader(std::vector<std::string> further = {}) : further_(std::move(further)) {}

  /// Throws Error{kInput} or OptionError that name the job.
  void add_text(std::string_view text);
  void add_file(const std::string& path);  ///< or its content, which starts with {

  /// All jobs that were added. Those without a name have that of their model, with a number where
  /// it repeats.
  std::vector<AskedJob> take();

 private:
  void add_object(const JsonObject& object, const std::string& where);
  ModelRef model_of(const std::string& name);

  std::vector<std::string> further_;
  std::vector<AskedJob> jobs_;
  std::map<std::string, ModelRef> models_;  ///< files are read once
};

/// A text, a number or a truth value of JSON as the command line words it: "64", "on", "bf16";
/// nullopt: it is another one.
std::optional<std::string> word_of_value(const Json& value);
/// The same of an object's member. Throws Error{kInput}.
std::string option_text(const JsonObject& file, const std::string& key);

}  // namespace tilecast
