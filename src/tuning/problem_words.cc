#include "tuning/problem_words.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/fail.h"
#include "base/number.h"
#include "base/text.h"

namespace tilecast::tuning {
namespace {

/// Sizes beyond are no problem that runs on a GPU; it keeps all products exact in a double.
constexpr int64_t kMostSize = int64_t{1} << 24;

constexpr std::array kDTypes = {std::pair{DType::kFp32, std::string_view("FP32")},
                                std::pair{DType::kFp16, std::string_view("FP16")},
                                std::pair{DType::kBf16, std::string_view("BF16")},
                                std::pair{DType::kInt8, std::string_view("INT8")}};

}  // namespace

std::string in_capitals(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return result;
}

std::vector<ProblemWord> split_problem_words(std::string_view text, const std::string& where) {
  std::vector<ProblemWord> words;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      fail_input(where, fmt::format("'{}' is no field; expected name=value, as in n=32",
                                    shown_name(word)));
    words.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  return words;
}

int64_t read_problem_size(std::string_view text, std::string_view name, int64_t least,
                          const std::string& where) {
  const auto value = parse_number<int64_t>(text);
  if (!value || *value < least || *value > kMostSize)
    fail_input(where, fmt::format("{} is '{}'; expected a whole number from {} to {}", name,
                                  shown_name(text), least, kMostSize));
  return *value;
}

DType read_problem_dtype(std::string_view text, const std::string& where) {
  for (const auto& [dtype, name] : kDTypes)
    if (in_capitals(text) == name) return dtype;
  fail_input(where,
             fmt::format("dtype is '{}'; expected fp32, fp16, bf16 or int8", shown_name(text)));
}

std::string_view miopen_precision(DType dtype) {
  for (const auto& [known, name] : kDTypes)
    if (known == dtype) return name;
  return "";
}

}  // namespace tilecast::tuning
