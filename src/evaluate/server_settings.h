#pragma once

// What the rows of measured servers do not say: the models behind their names, and options of the
// forecasts that follow from the software's launch scripts.
//
//   {"models": {"meta-llama--Meta-Llama-3.1-70B": "llama-3.1-70b", "tiny": {"model_type": ...}},
//    "rules": [{"match": {"software": "vllm", "gpu": ["nvidia-h100-sxm5-80gb"]},
//               "options": {"max_num_seqs": "{clients}"},
//               "source": "launch scripts"},
//              {"match": {"task": "image-chat"}, "skip": "images", "source": "..."}]}

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "measurements/served_rows.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// One rule: it applies to rows that have one of the values in each column.
struct ServerRule {
  std::vector<std::pair<std::string, std::vector<std::string>>> match;
  /// By names of forecasts' options; "{column}" in a value stands for the row's cell, and an empty
  /// value takes the option back.
  std::vector<std::pair<std::string, std::string>> options;
  std::string skip;  ///< why such rows are not compared; "": they are

  bool applies_to(const ServedRow& row) const;
};

struct ServerSettings {
  std::map<std::string, std::string> models;  ///< bundled models, paths, or contents of configs
  std::vector<ServerRule> rules;              ///< later ones win

  /// Reads a file, or its content, which starts with "{". Throws Error{kInput} for unknown keys,
  /// columns and options, and for a rule without a source.
  static ServerSettings read(const std::string& file);

  /// Why the row is not compared; "": it is.
  std::string why_skipped(const ServedRow& row) const;
  /// The options of the row's forecast: what its columns say, then the rules.
  std::vector<GivenOption> options_of(const ServedRow& row) const;
  /// The model of that name: as `models` has it, else a bundled one, with or without the owner in
  /// front ("openai--gpt-oss-120b"). Throws Error.
  ModelRef model_of(const std::string& name) const;
};

}  // namespace tilecast
