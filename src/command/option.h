#pragma once

// The options of questions: one table from which the command line, its help, completion and manual
// page, and Python's keywords with their types are derived.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

/// Kind of thing that a value names, for shell completion and Python's types.
enum class ValueKind : uint8_t { kText, kFile, kFolder, kGpu, kModel, kOperator };

/// Type of a value.
enum class ValueType : uint8_t { kText, kWhole, kNumber, kSwitch };

/// A value that was given: words as on the command line, or what a program has read already.
struct GivenValue {
  std::vector<std::string> texts;  ///< a switch is "on" or "off"
  std::optional<ModelRef> model;   ///< in place of the text
  std::vector<GpuRef> gpus;        ///< in place of the texts
  bool by_default = false;         ///< nobody gave it: it does not matter where it does not apply
};

/// Values by the key of their option.
using Given = std::map<std::string, GivenValue, std::less<>>;

struct CommandOption;

/// Writes a value to a member of a question. Throws Error{kInput} that names the option.
using SetValue = void (*)(void* question, const CommandOption&, const GivenValue&);

/// One option or argument.
struct CommandOption {
  /// "MODEL" for a positional argument, else flags: "--gpu" or "-o,--output-file".
  std::string names;
  /// Placeholder of the value in help; "" for a switch or if `choices` are shown.
  std::string value;
  std::string default_value;  ///< the default as text
  std::string help;
  std::vector<std::string> choices = {};  ///< the allowed values
  ValueKind kind = ValueKind::kText;
  ValueType type = ValueType::kText;  ///< of each value of a list
  bool required = false;
  bool repeated = false;                    ///< may be given several times
  bool list = false;                        ///< values separated by commas
  std::vector<std::string> old_names = {};  ///< flags that are accepted but not shown
  int64_t min = 1, max = int64_t{1} << 24;  ///< range of a whole number
  SetValue set = nullptr;                   ///< null: of the way an answer is shown

  bool is_argument() const { return names.front() != '-'; }
  bool is_switch() const { return !is_argument() && value.empty() && choices.empty(); }
  /// All flags: {"-o", "--output-file"}.
  std::vector<std::string> flags() const;
  /// Its key in Given: "MODEL", "output-file".
  std::string key() const;
  /// Its keyword in Python: "model", "output_file".
  std::string keyword() const;
  /// The placeholder that help shows: "GPU", "table|json".
  std::string shown_value() const;
};

/// The keyword in Python and JSON: "output_file" of "--output-file", "problem" of "PROBLEM|MODEL".
std::string keyword_of(const std::string& name);

/// Options under one heading of the help. An option may be in several groups, with a different help
/// text and default in each.
struct OptionGroup {
  std::string title;
  std::vector<CommandOption> options;
};

/// The key of an option from its name in Python, JSON or tables: "head_dim" is "head-dim".
std::string key_of(std::string keyword);

/// The options of all groups, each once. Choices and help of an option in several groups are
/// joined.
std::vector<CommandOption> distinct_options(const std::vector<OptionGroup>& groups);

/// Options by key.
class OptionIndex {
 public:
  explicit OptionIndex(const std::vector<OptionGroup>& groups);

  const std::vector<CommandOption>& options() const { return options_; }
  /// nullptr if there is none.
  const CommandOption* find(const std::string& key) const;
  /// By a keyword of Python, also one of an old name; nullptr if there is none.
  const CommandOption* find_keyword(const std::string& keyword) const;

  /// Writes the given values to the question. Throws OptionError for an option that is not in the
  /// index or a value that is invalid, and if a required one is missing.
  void read(const Given& given, void* question) const;

 private:
  std::vector<CommandOption> options_;
  std::unordered_map<std::string, size_t> by_key_, by_keyword_;
};

/// An option that the question needs was not given.
class MissingOption : public OptionError {
 public:
  explicit MissingOption(std::string options)
      : OptionError(options + " is missing"), options_(std::move(options)) {}
  /// "`gpu`", or several, one of which is needed.
  const std::string& options() const { return options_; }

 private:
  std::string options_;
};

// The given values of options that need more than their own text.

bool has(const Given& given, std::string_view key);
/// The given value, else "".
std::string text_of(const Given& given, std::string_view key);

}  // namespace tilecast
