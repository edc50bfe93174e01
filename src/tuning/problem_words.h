#pragma once

// The text form of a problem: a kind, then "name=value" words.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dtype.h"

namespace tilecast::tuning {

struct ProblemWord {
  std::string name, value;
};

/// "m=64 n=32" apart. Throws Error{kInput} for a word without '='.
std::vector<ProblemWord> split_problem_words(std::string_view text, const std::string& where);

/// A size of at least `least`. Throws Error{kInput} that names the field and the limits.
int64_t read_problem_size(std::string_view text, std::string_view name, int64_t least,
                          const std::string& where);

/// "fp32", "FP16", "bf16" or "int8". Throws Error{kInput} that names them.
DType read_problem_dtype(std::string_view text, const std::string& where);

/// "FP32", "FP16", "BF16", "INT8": as MIOpen names them; "" for others.
std::string_view miopen_precision(DType dtype);

/// `text` in capitals.
std::string in_capitals(std::string_view text);

}  // namespace tilecast::tuning
