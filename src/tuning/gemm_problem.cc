#include "tuning/gemm_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "base/fail.h"
#include "base/text.h"
#include "tuning/features.h"
#include "tuning/problem_words.h"

namespace tilecast::tuning {
namespace {

constexpr std::string_view kGemmFields = "m, n, k, batch, trans_a, trans_b, dtype, acc, out";
constexpr double kMostGemmElements = 1e12;

struct GemmSizeField {
  std::string_view name;
  int64_t GemmProblem::* member;
  bool required;
};
constexpr std::array kGemmSizes = {
    GemmSizeField{"m", &GemmProblem::m, true}, GemmSizeField{"n", &GemmProblem::n, true},
    GemmSizeField{"k", &GemmProblem::k, true}, GemmSizeField{"batch", &GemmProblem::batch, false}};

bool read_transpose(std::string_view text, std::string_view name, const std::string& where) {
  if (in_capitals(text) == "T") return true;
  if (in_capitals(text) == "N") return false;
  fail_input(where, fmt::format("{} is '{}'; expected N (as stored) or T (transposed)", name,
                                shown_name(text)));
}

/// The sums and results of products that rocBLAS has; the first is the default.
std::vector<DType> sums_of(DType dtype) {
  if (dtype == DType::kInt8) return {DType::kInt32};
  if (dtype == DType::kFp16) return {DType::kFp32, DType::kFp16};
  return {DType::kFp32};
}
std::vector<DType> results_of(DType dtype) {
  if (dtype == DType::kInt8) return {DType::kInt32};
  if (dtype == DType::kFp32) return {DType::kFp32};
  return {dtype, DType::kFp32};
}

DType choose(std::string_view name, const std::optional<std::string>& text,
             const std::vector<DType>& known, const GemmProblem& problem,
             const std::string& where) {
  if (!text) return known.front();
  std::vector<std::string> names;
  for (const DType dtype : known) {
    names.emplace_back(dtype_name(dtype));
    if (in_capitals(*text) == in_capitals(names.back())) return dtype;
  }
  fail_input(where, fmt::format("{} is '{}'; of {} products it is {}", name, shown_name(*text),
                                dtype_name(problem.dtype), join(names, " or ")));
}

double bytes_of(DType dtype) { return static_cast<double>(dtype_bits(dtype)) / 8; }
/// How often 2 divides the size, at most 7 times.
int twos(int64_t size) {
  int count = 0;
  while (count < 7 && size % 2 == 0) size /= 2, ++count;
  return count;
}

void add_times(std::vector<float>& x, const GemmProblem& p, const TunedChip& chip) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
  const auto k = static_cast<double>(p.k), batch = static_cast<double>(p.batch);
  const double flops = 2 * m * n * k * batch;
  const double bytes = batch * (bytes_of(p.dtype) * (m * k + k * n) + bytes_of(p.out) * m * n);
  const double compute_us = flops / chip.peak_tflops * 1e-6;
  const double memory_us = bytes / chip.gbytes_per_s * 1e-3;
  for (const double value : {compute_us, memory_us, compute_us / memory_us})
    x.push_back(static_cast<float>(log2_size(value)));
}

void add_tiles(std::vector<float>& x, const GemmProblem& p, const TunedChip& chip) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
  for (const double size : {m, n})
    for (const double tile : {16, 32, 64, 80, 96, 128, 144, 160, 256})
      x.push_back(static_cast<float>(log2_size(tile_waste(size, tile))));
  for (const double depth : {8, 16, 32, 64})
    x.push_back(static_cast<float>(log2_size(tile_waste(static_cast<double>(p.k), depth))));
  constexpr std::array<std::pair<double, double>, 9> kTiles = {{{32, 32},
                                                                {64, 32},
                                                                {32, 64},
                                                                {64, 64},
                                                                {128, 64},
                                                                {64, 128},
                                                                {128, 128},
                                                                {256, 128},
                                                                {128, 256}}};
  for (const auto& [tile_m, tile_n] : kTiles) {
    const double waves =
        std::ceil(m / tile_m) * std::ceil(n / tile_n) * static_cast<double>(p.batch) / chip.units;
    x.push_back(static_cast<float>(log2_size(waves)));
    x.push_back(static_cast<float>(log2_size(std::ceil(waves) / waves)));
  }
}

const RuleFile& tensile_rules() {
  const RuleFile* const rules = find_rules("Tensile");
  TILECAST_CHECK(rules != nullptr);
  return *rules;
}

void add_value(TensileParameter& part, const std::string& value, double probability) {
  const auto it = std::find_if(part.values.begin(), part.values.end(),
                               [&](const auto& known) { return known.first == value; });
  if (it == part.values.end())
    part.values.emplace_back(value, probability);
  else
    it->second += probability;
}

std::vector<TensileParameter> parts_of(const std::vector<TensileKernel>& kernels) {
  std::vector<TensileParameter> parts = {
      {"macro_tile", {}}, {"depth_u", {}}, {"split", {}}, {"matrix_instruction", {}}};
  for (const TensileKernel& k : kernels) {
    add_value(parts[0], fmt::format("{}x{}", k.tile_m, k.tile_n), k.probability);
    add_value(parts[1], std::to_string(k.depth_u), k.probability);
    add_value(parts[2], std::to_string(k.split), k.probability);
    add_value(parts[3], matrix_instruction_name(k), k.probability);
  }
  for (TensileParameter& part : parts)
    std::stable_sort(part.values.begin(), part.values.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

}  // namespace

bool is_gemm_text(std::string_view text) { return text == "gemm" || text.starts_with("gemm "); }

GemmProblem parse_gemm(std::string_view text, const std::string& where) {
  text = trim(text);
  if (!is_gemm_text(text))
    fail_input(where,
               fmt::format("'{}' is no product; expected gemm m=4096 n=512 k=1024 dtype=fp16",
                           shown_name(text)));
  GemmProblem p;
  std::vector<std::string> given;
  std::optional<std::string> acc, out;
  for (const ProblemWord& word : split_problem_words(text.substr(4), where)) {
    if (std::find(given.begin(), given.end(), word.name) != given.end())
      fail_input(where, shown_name(word.name) + " is given twice");
    given.push_back(word.name);
    const auto field = std::find_if(kGemmSizes.begin(), kGemmSizes.end(),
                                    [&](const GemmSizeField& f) { return f.name == word.name; });
    if (field != kGemmSizes.end())
      p.*field->member = read_problem_size(word.value, field->name, 1, where);
    else if (word.name == "trans_a" || word.name == "trans_b")
      (word.name == "trans_a" ? p.trans_a : p.trans_b) =
          read_transpose(word.value, word.name, where);
    else if (word.name == "dtype")
      p.dtype = read_problem_dtype(word.value, where);
    else if (word.name == "acc")
      acc = word.value;
    else if (word.name == "out")
      out = word.value;
    else
      fail_input(where, fmt::format("unknown field '{}'; a product has {}", shown_name(word.name),
                                    kGemmFields));
  }
  for (const GemmSizeField& field : kGemmSizes)
    if (field.required && std::find(given.begin(), given.end(), field.name) == given.end())
      fail_input(where, fmt::format("{} is missing; a product has {}", field.name, kGemmFields));
  p.acc = choose("acc", acc, sums_of(p.dtype), p, where);
  p.out = choose("out", out, results_of(p.dtype), p, where);
  if (p.acc == DType::kFp16 && p.out != DType::kFp16)
    fail_input(where, "out is 'fp32'; sums in fp16 give results in fp16");
  const auto size = [&](int64_t rows, int64_t columns) {
    return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(p.batch);
  };
  const double largest = std::max({size(p.m, p.k), size(p.k, p.n), size(p.m, p.n)});
  if (largest > kMostGemmElements)
    fail_input(where,
               fmt::format("a matrix of {:.3g} elements; at most {:.3g}, more than any GPU stores",
                           largest, kMostGemmElements));
  return p;
}

std::string format_gemm(const GemmProblem& p) {
  std::string text = fmt::format("gemm m={} n={} k={}", p.m, p.n, p.k);
  if (p.batch != 1) text += fmt::format(" batch={}", p.batch);
  if (p.trans_a) text += " trans_a=T";
  if (p.trans_b) text += " trans_b=T";
  text += fmt::format(" dtype={}", dtype_name(p.dtype));
  if (p.acc != sums_of(p.dtype).front()) text += fmt::format(" acc={}", dtype_name(p.acc));
  if (p.out != results_of(p.dtype).front()) text += fmt::format(" out={}", dtype_name(p.out));
  return text;
}

Sizes sizes_of(const GemmProblem& p, const TunedChip& chip) {
  const auto flag = [](bool value) { return value ? 1.0 : 0.0; };
  const auto size = [](int64_t value) { return static_cast<double>(value); };
  return {{"m", size(p.m)},
          {"n", size(p.n)},
          {"k", size(p.k)},
          {"batch", size(p.batch)},
          {"trans_a", flag(p.trans_a)},
          {"trans_b", flag(p.trans_b)},
          {"bytes", bytes_of(p.dtype)},
          {"fp32", flag(p.dtype == DType::kFp32)},
          {"fp16", flag(p.dtype == DType::kFp16)},
          {"bf16", flag(p.dtype == DType::kBf16)},
          {"int8", flag(p.dtype == DType::kInt8)},
          {"matrix_unit", flag(chip.matrix_unit)}};
}

SourceText source_text(const GemmProblem& p, const TunedChip& chip) {
  SourceText text;
  text.sizes = {p.m, p.n, p.k, p.batch};
  for (const int64_t tile : {32, 64, 128})
    text.sizes.push_back(((p.m + tile - 1) / tile) * ((p.n + tile - 1) / tile) * p.batch);
  std::vector<float>& x = text.features;
  for (const int64_t size : {p.m, p.n, p.k, p.batch})
    x.push_back(static_cast<float>(log2_size(static_cast<double>(size))));
  x.push_back(static_cast<float>(log2_size(static_cast<double>(p.m) / static_cast<double>(p.n))));
  const auto flag = [&](bool value) { x.push_back(value ? 1.0F : 0.0F); };
  flag(p.trans_a);
  flag(p.trans_b);
  for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt8})
    flag(p.dtype == dtype);
  flag(p.acc != p.dtype);
  flag(bytes_of(p.out) > bytes_of(p.dtype));
  add_times(x, p, chip);
  for (const int64_t size : {p.m, p.n, p.k}) x.push_back(static_cast<float>(twos(size)));
  add_tiles(x, p, chip);
  return text;
}

std::string matrix_instruction_name(const TensileKernel& k) {
  if (k.mi_m == 0) return "none";
  return fmt::format("{}x{}x{}x{}", k.mi_m, k.mi_n, k.mi_k, k.mi_blocks);
}

TensileAnswer search_tensile(const GemmProblem& problem, const TunedChip& chip, size_t beam) {
  const auto sets =
      search_parameters(Translator::tensile(), tensile_rules(),
                        {sizes_of(problem, chip), source_text(problem, chip), chip}, beam, beam);
  TensileAnswer answer;
  for (const LegalSet& set : sets) {
    const std::vector<int64_t>& t = set.tokens;
    TILECAST_CHECK(t.size() == 8);
    answer.kernels.push_back(
        {t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], std::exp(set.log_probability)});
  }
  answer.parts = parts_of(answer.kernels);
  return answer;
}

}  // namespace tilecast::tuning
