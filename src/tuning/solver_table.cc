#include "tuning/solver_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/embedded.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::tuning {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;
constexpr std::array<std::string_view, 5> kAlgorithms = {"GEMM", "Direct", "Winograd",
                                                         "ImplicitGEMM", "FFT"};
constexpr std::array<std::string_view, 3> kMatrixUnits = {"needed", "not_used", "either"};

IntRange range_of(const JsonObject& entry, const std::string& key) {
  const Json& list = entry.json().contains(key) ? entry.json()[key] : Json();
  if (!list.is_array() || list.size() != 2) entry.fail(key, "expected [least, most]");
  const auto least = whole_number(list[0], 0, kMost);
  const auto most = whole_number(list[1], 0, kMost);
  if (!least || !most || *least > *most)
    entry.fail(key, fmt::format("expected two whole numbers from 0 to {}, the least first; found "
                                "{}",
                                kMost, list.dump()));
  return {*least, *most};
}

template <size_t kCount>
size_t word_of(const JsonObject& entry, const std::string& key, const std::string& word,
               const std::array<std::string_view, kCount>& words) {
  const auto it = std::find(words.begin(), words.end(), word);
  if (it == words.end())
    entry.fail(key, fmt::format("'{}' is none of {}", shown_name(word),
                                join({words.begin(), words.end()}, ", ")));
  return static_cast<size_t>(it - words.begin());
}

std::vector<DType> dtypes_of(const JsonObject& entry) {
  std::vector<DType> dtypes;
  for (const std::string& name : entry.strings("dtypes")) {
    dtypes.push_back(parse_dtype(lower_case(name), entry.where()));
  }
  return dtypes;
}

void set_workspace(Solver& solver, const JsonObject& entry) {
  if (!entry.has("workspace")) entry.fail("workspace", "it is missing");
  const Json& value = entry.json()["workspace"];
  if (value.is_number()) {
    solver.workspace = Workspace::kBound;
    solver.workspace_factor = entry.number("workspace");
    if (!(solver.workspace_factor >= 0)) entry.fail("workspace", "expected no negative number");
    return;
  }
  constexpr std::array<std::string_view, 4> kRules = {"none", "unrolled", "strided",
                                                      "strided_input"};
  solver.workspace =
      static_cast<Workspace>(word_of(entry, "workspace", entry.string("workspace"), kRules));
}

void set_transform(Solver& solver, const JsonObject& entry) {
  if (solver.algorithm != "Winograd") {
    if (entry.has("transform")) entry.fail("transform", "only Winograd's solvers have one");
    return;
  }
  const Json& list = entry.has("transform") ? entry.json()["transform"] : Json();
  if (!list.is_array() || list.size() != solver.transform.size())
    entry.fail("transform", "expected [results, taps, results, taps], in height and in width");
  for (size_t i = 0; i < solver.transform.size(); ++i) {
    constexpr int64_t kLargestTile = 100;
    const auto number = whole_number(list[i], 1, kLargestTile);
    if (!number)
      entry.fail("transform", fmt::format("expected whole numbers from 1 to {}, found {}",
                                          kLargestTile, list.dump()));
    solver.transform[i] = *number;
  }
}

Solver solver_of(const Json& json, const std::string& where) {
  const JsonObject entry(json, where);
  entry.reject_unknown({"name", "algorithm", "passes", "dtypes", "layouts", "r", "s", "stride",
                        "dil", "pad", "group", "measured_on", "matrix_unit", "unit", "square_only",
                        "workspace", "transform", "fallback_rank", "head"});
  Solver solver;
  solver.name = entry.string("name");
  solver.predictor = "miopen:" + solver.name;
  solver.algorithm =
      kAlgorithms[word_of(entry, "algorithm", entry.string("algorithm"), kAlgorithms)];
  solver.head = static_cast<size_t>(entry.integer({"head"}, 0, 1000));
  solver.passes = entry.string("passes");
  if (solver.passes.find_first_not_of("FBW") != std::string::npos)
    entry.fail("passes", "expected letters of FBW");
  solver.dtypes = dtypes_of(entry);
  for (const std::string& layout : entry.strings("layouts")) {
    if (layout != "NCHW" && layout != "NHWC") entry.fail("layouts", "expected NCHW or NHWC");
    solver.channels_last.push_back(layout == "NHWC");
  }
  solver.r = range_of(entry, "r");
  solver.s = range_of(entry, "s");
  solver.stride = range_of(entry, "stride");
  solver.dil = range_of(entry, "dil");
  solver.pad = range_of(entry, "pad");
  solver.group = range_of(entry, "group");
  constexpr auto kWords = choice_words(Architecture{});
  for (const std::string& name : entry.strings("measured_on"))
    solver.measured_on.push_back(
        static_cast<Architecture>(word_of(entry, "measured_on", name, kWords)));
  solver.matrix_unit = static_cast<MatrixUnit>(
      word_of(entry, "matrix_unit", entry.string("matrix_unit"), kMatrixUnits));
  constexpr std::array<std::string_view, 2> kUnits = {"fastest", "vector"};
  solver.on_vector_unit = word_of(entry, "unit", entry.string("unit"), kUnits) == 1;
  set_workspace(solver, entry);
  set_transform(solver, entry);
  solver.square_only = entry.boolean("square_only", false);
  if (entry.has("fallback_rank")) solver.fallback_rank = entry.integer({"fallback_rank"}, 0, 1000);
  return solver;
}

/// Products over the definition's, along one axis: a tile of m results and r taps has m + r - 1 in
/// place of m * r, and no transform has fewer than one for each result.
double least_share(int64_t results, int64_t taps, int64_t window) {
  const auto m = static_cast<double>(results), r = static_cast<double>(taps);
  return std::max(1 / static_cast<double>(window), (m + r - 1) / (m * r));
}

template <class T>
bool has(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

bool Solver::takes(const ConvProblem& p, const TunedChip& chip) const {
  if (matrix_unit == MatrixUnit::kNeeded && !chip.matrix_unit) return false;
  if (matrix_unit == MatrixUnit::kNotUsed && chip.matrix_unit) return false;
  if (chip.kernel_class >= 0 && !has(measured_on, chip.architecture)) return false;
  return passes.find(pass_letter(p.pass)) != std::string::npos && has(dtypes, p.dtype) &&
         has(channels_last, p.channels_last) && r.holds(p.r) && s.holds(p.s) &&
         (!square_only || p.r == p.s) && stride.holds(p.stride_h) && stride.holds(p.stride_w) &&
         dil.holds(p.dil_h) && dil.holds(p.dil_w) && pad.holds(p.pad_h) && pad.holds(p.pad_w) &&
         (group.most > 1 || p.group == 1);
}

double Solver::least_compute_s(const ConvProblem& p, const TunedChip& chip) const {
  // Spectra of real images have half as many points as these have pixels, and a product of two
  // complex points is four multiplications.
  constexpr double kFftProductsOfPixel = 2;
  double share = 1;
  if (algorithm == "Winograd") {
    share =
        least_share(transform[0], transform[1], p.r) * least_share(transform[2], transform[3], p.s);
  } else if (algorithm == "FFT") {
    share = std::min(1.0, kFftProductsOfPixel / static_cast<double>(p.r * p.s));
  }
  const double tflops = on_vector_unit ? chip.vector_dtype_tflops : chip.peak_tflops;
  return share * p.flops() / (tflops * 1e12);
}

SolverTable SolverTable::parse(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  const JsonObject file(json, where);
  file.reject_unknown({"schema_version", "source", "solvers"});
  file.integer({"schema_version"}, 1, 1);
  if (!file.has("solvers") || !file.json()["solvers"].is_array())
    file.fail("solvers", "expected a list");
  SolverTable table;
  for (const Json& item : file.json()["solvers"]) {
    const std::string place = fmt::format("{}: solver {}", where, table.solvers_.size() + 1);
    Solver solver = solver_of(item, place);
    if (table.find(solver.name) != nullptr)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: '{}' is there twice", place, shown_name(solver.name)));
    table.solvers_.push_back(std::move(solver));
  }
  return table;
}

const SolverTable& SolverTable::bundled() {
  static const SolverTable table = [] {
    const std::vector<EmbeddedFile> files = embedded_files("tuning/solvers.json");
    if (files.empty())
      throw Error(ErrorKind::kInternal, "this build has no data/tuning/solvers.json");
    return parse(files.front().content, "data/tuning/solvers.json");
  }();
  return table;
}

const Solver* SolverTable::find(std::string_view name) const {
  const auto it = std::find_if(solvers_.begin(), solvers_.end(),
                               [&](const Solver& solver) { return solver.name == name; });
  return it == solvers_.end() ? nullptr : &*it;
}

const Solver& SolverTable::require(const std::string& name) const {
  if (const Solver* solver = find(name)) return *solver;
  std::vector<std::string> names;
  for (const Solver& solver : solvers_) names.push_back(solver.name);
  throw Error(ErrorKind::kNotFound,
              fmt::format("unknown solver '{}'{}; data/tuning/solvers.json names all",
                          shown_name(name), did_you_mean(name, names)));
}

std::string miopen_algorithm(const Solver& solver, ConvPass pass) {
  constexpr std::array<std::string_view, 3> kPasses = {"Fwd", "BwdData", "BwdWeights"};
  return fmt::format("miopenConvolution{}Algo{}", kPasses[static_cast<size_t>(pass)],
                     solver.algorithm);
}

}  // namespace tilecast::tuning
