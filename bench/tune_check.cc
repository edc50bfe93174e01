// Not a test: accuracy and speed of 'tilecast tune' on rows of MIOpen's public databases.
//   tune_check rules ALIAS SOLVER.csv.xz                    rows accepted, moved tokens rejected
//   tune_check parameters ARCH ALIAS SOLVER.csv.xz FOLD N   whole sets and tokens of N held-out
//   rows
//   tune_check legal ALIAS COUNT                            random problems: all answers legal
//   tune_check choice ALIAS COUNT                           time of a choice of solver
//   tune_check tensile GPU ALIAS gemm.csv.xz FOLD N         kernels of N held-out products
// FOLD: the layers that the weights were not trained on (docs/explanation/tuning.md); -1: all rows.
// Solver choice and times: 'tilecast evaluate find_ARCH.csv.xz'.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/rng.h"
#include "base/text.h"
#include "devices/registry.h"
#include "measurements/xz.h"
#include "tilecast/error.h"
#include "tuning/beam.h"
#include "tuning/gemm_problem.h"
#include "tuning/layer_fold.h"
#include "tuning/problem_rows.h"
#include "tuning/solver_model.h"

namespace tilecast::tuning {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int kFolds = 10;

class Rows {
 public:
  explicit Rows(const std::string& path) : table_(parse_csv(read_measurement_text(path), path)) {
    for (size_t i = 0; i < table_.header.size(); ++i) columns_[table_.header[i]] = i;
  }
  size_t size() const { return table_.rows.size(); }
  bool has(const std::string& column) const { return columns_.contains(column); }
  const std::string& text(size_t row, const std::string& column) const {
    return table_.rows[row][columns_.at(column)];
  }
  int64_t integer(size_t row, const std::string& column) const {
    return std::stoll(text(row, column));
  }
  std::vector<std::string> tokens() const {
    const size_t first = columns_.at("params") + 1;
    return {table_.header.begin() + static_cast<ptrdiff_t>(first), table_.header.end()};
  }
  ConvProblem problem(size_t i) const { return problem_of_row(table_, i); }

 private:
  CsvTable table_;
  std::map<std::string, size_t> columns_;
};

template <class Problem>
bool held_out(const Problem& problem, int fold) {
  return fold < 0 || layer_fold(problem, kSeed, kFolds) == fold;
}

/// Time of this process: other programs of the machine do not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::vector<int64_t> tokens_of(const Rows& rows, size_t row,
                               const std::vector<std::string>& names) {
  std::vector<int64_t> tokens;
  for (const std::string& name : names) tokens.push_back(rows.integer(row, name));
  return tokens;
}

std::string solver_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

void check_rules(const std::string& path) {
  const Rows rows(path);
  const RuleFile& rules = *find_rules(solver_of(path));
  Rng rng(kSeed);
  size_t accepted = 0, moved = 0, rejected = 0;
  std::map<std::string, size_t> broken;
  for (size_t i = 0; i < rows.size(); ++i) {
    const BoundRules bound(rules, sizes_of(rows.problem(i)));
    std::vector<int64_t> tokens = tokens_of(rows, i, rows.tokens());
    if (bound.accepts(tokens)) {
      ++accepted;
    } else {
      ++broken[bound.broken_rule(tokens)];
    }
    // One token at a random place gets a number that is none of its values.
    const size_t at = static_cast<size_t>(rng.next() % tokens.size());
    const std::vector<int64_t>& values = rules.tokens()[at].values;
    int64_t value = values.front();
    while (std::binary_search(values.begin(), values.end(), value))
      value = static_cast<int64_t>(rng.next() % static_cast<uint64_t>(2 * values.back() + 2));
    tokens[at] = value;
    ++moved;
    rejected += !bound.accepts(tokens);
  }
  fmt::print("{}: {} of {} rows accepted, {} of {} with a moved token rejected\n", rules.solver(),
             accepted, rows.size(), rejected, moved);
  for (const auto& [rule, count] : broken) fmt::print("  {} rows break: {}\n", count, rule);
}

void check_parameters(const std::string& arch, const std::string& alias, const std::string& path,
                      int fold, size_t most, bool without_defaults) {
  const Device device = find_device(alias);
  const Rows rows(path);
  const RuleFile& rules = *find_rules(solver_of(path));
  const std::vector<std::string> names = rows.tokens();
  std::vector<size_t> chosen;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows.text(i, "arch") != arch || !held_out(rows.problem(i), fold)) continue;
    if (without_defaults && rows.integer(i, "grp_tile1") != 1) continue;
    chosen.push_back(i);
  }
  Rng rng(kSeed);
  for (size_t i = chosen.size(); i > 1; --i)
    std::swap(chosen[i - 1], chosen[static_cast<size_t>(rng.next() % i)]);
  if (chosen.size() > most) chosen.resize(most);
  size_t first = 0, five = 0, twenty = 0, same = 0, tokens = 0, legal = 0, answers = 0;
  std::vector<double> millis;
  for (const size_t i : chosen) {
    const ConvProblem problem = rows.problem(i);
    const std::vector<int64_t> truth = tokens_of(rows, i, names);
    const double start = cpu_seconds();
    const auto sets = search_parameters(Translator::bundled(), rules, problem,
                                        tuned_chip(device, problem.dtype), 20, 20);
    millis.push_back(1e3 * (cpu_seconds() - start));
    const BoundRules bound(rules, sizes_of(problem));
    for (size_t j = 0; j < sets.size(); ++j) {
      ++answers;
      legal += bound.accepts(sets[j].tokens);
      if (sets[j].tokens != truth) continue;
      first += j == 0;
      five += j < 5;
      ++twenty;
    }
    tokens += truth.size();
    for (size_t t = 0; !sets.empty() && t < truth.size(); ++t)
      same += sets[0].tokens[t] == truth[t];
  }
  const auto percent = [&](size_t count, size_t of) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(std::max<size_t>(of, 1));
  };
  fmt::print(
      "{} {}{}: {} rows: whole {:.1f} %, best 5 {:.1f} %, best 20 {:.1f} %, tokens {:.1f} %; "
      "{} of {} answers legal; {:.2f} ms (median)\n",
      rules.solver(), arch, without_defaults ? " without defaults" : "", chosen.size(),
      percent(first, chosen.size()), percent(five, chosen.size()), percent(twenty, chosen.size()),
      percent(same, tokens), legal, answers, median(millis));
}

/// Sizes as networks have them, and any others.
ConvProblem random_problem(Rng& rng) {
  const auto up_to = [&](int64_t most) {
    return 1 + static_cast<int64_t>(rng.next() % static_cast<uint64_t>(most));
  };
  ConvProblem p;
  p.pass = static_cast<ConvPass>(rng.next() % 3);
  p.dtype = std::array{DType::kFp32, DType::kFp16, DType::kBf16}[rng.next() % 3];
  p.n = up_to(256);
  p.c = rng.next() % 2 == 0 ? 16 * up_to(64) : up_to(1024);
  p.k = rng.next() % 2 == 0 ? 16 * up_to(64) : up_to(1024);
  p.h = p.w = up_to(120);
  if (rng.next() % 2 == 0) {
    p.r = p.s = 3;
    p.pad_h = p.pad_w = 1;
  }
  p.stride_h = p.stride_w = 1 + static_cast<int64_t>(rng.next() % 2);
  complete_problem(p, "random problem");
  return p;
}

void check_legal(const std::string& alias, size_t count) {
  const Device device = find_device(alias);
  Rng rng(kSeed);
  size_t problems = 0, answers = 0, legal = 0, empty = 0, searches = 0;
  while (problems < count) {
    const ConvProblem problem = random_problem(rng);
    bool any = false;
    for (const RuleFile* rules : bundled_rules()) {
      const BoundRules bound(*rules, sizes_of(problem));
      if (!bound.takes()) continue;
      any = true;
      ++searches;
      // A narrow beam is as legal as a wide one, and quicker.
      const auto sets = search_parameters(Translator::bundled(), *rules, problem,
                                          tuned_chip(device, problem.dtype), 2, 2);
      empty += sets.empty() && bound.complete({}, Translator::bundled().values()).has_value();
      for (const LegalSet& set : sets) {
        ++answers;
        legal += bound.accepts(set.tokens);
      }
      if (!sets.empty()) break;
    }
    problems += any;
  }
  fmt::print("{} random problems, {} searches: {} of {} answers legal, {} beams died\n", problems,
             searches, legal, answers, empty);
}

GemmProblem product(const Rows& rows, size_t i) {
  return parse_gemm(
      fmt::format("gemm m={} n={} k={} batch={} trans_a={} trans_b={} dtype={} acc={} out={}",
                  rows.text(i, "m"), rows.text(i, "n"), rows.text(i, "k"), rows.text(i, "batch"),
                  rows.text(i, "trans_a"), rows.text(i, "trans_b"), rows.text(i, "in"),
                  rows.text(i, "acc"), rows.text(i, "out")),
      fmt::format("row {}", i));
}

std::vector<int64_t> kernel_tokens(const Rows& rows, size_t i) {
  std::vector<int64_t> tokens = {rows.integer(i, "tile_m"), rows.integer(i, "tile_n"),
                                 rows.integer(i, "depth_u"), rows.integer(i, "split")};
  const std::string& instruction = rows.text(i, "matrix_instruction");
  for (const std::string& part : split(instruction.empty() ? "0x0x0x0" : instruction, 'x'))
    tokens.push_back(std::stoll(part));
  return tokens;
}

/// How many rows the rules accept, and how many of them with one token moved out of its range.
void check_tensile_rules(const Rows& rows, const std::string& gpu, const Device& device) {
  const RuleFile& rules = *find_rules("Tensile");
  Rng rng(kSeed);
  size_t count = 0, accepted = 0, rejected = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows.text(i, "gpu") != gpu) continue;
    const GemmProblem problem = product(rows, i);
    const BoundRules bound(rules, sizes_of(problem, tuned_chip(device, problem.dtype)));
    std::vector<int64_t> tokens = kernel_tokens(rows, i);
    ++count;
    accepted += bound.accepts(tokens);
    const size_t at = static_cast<size_t>(rng.next() % tokens.size());
    const std::vector<int64_t>& values = rules.tokens()[at].values;
    while (std::binary_search(values.begin(), values.end(), tokens[at]))
      tokens[at] = static_cast<int64_t>(rng.next() % static_cast<uint64_t>(2 * values.back() + 2));
    rejected += !bound.accepts(tokens);
  }
  fmt::print("{}: {} of {} rows accepted, {} with a moved token rejected\n", gpu, accepted, count,
             rejected);
}

void check_tensile(const std::string& gpu, const std::string& alias, const std::string& path,
                   int fold, size_t most) {
  constexpr std::array<const char*, 5> kParts = {"macro_tile", "depth_u", "split",
                                                 "matrix_instruction", "kernel"};
  const Device device = find_device(alias);
  const Rows rows(path);
  check_tensile_rules(rows, gpu, device);
  std::vector<size_t> chosen;
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows.text(i, "gpu") == gpu && held_out(product(rows, i), fold)) chosen.push_back(i);
  Rng rng(kSeed);
  for (size_t i = chosen.size(); i > 1; --i)
    std::swap(chosen[i - 1], chosen[static_cast<size_t>(rng.next() % i)]);
  if (chosen.size() > most) chosen.resize(most);
  std::array<size_t, kParts.size()> first{}, five{};
  std::array<size_t, 2> tile{};
  std::vector<double> millis;
  for (const size_t i : chosen) {
    const GemmProblem problem = product(rows, i);
    const double start = cpu_seconds();
    const TensileAnswer answer = search_tensile(problem, tuned_chip(device, problem.dtype), 20);
    millis.push_back(1e3 * (cpu_seconds() - start));
    const std::string instruction = rows.text(i, "matrix_instruction");
    const std::array<std::string, 4> truth = {
        fmt::format("{}x{}", rows.integer(i, "tile_m"), rows.integer(i, "tile_n")),
        rows.text(i, "depth_u"), rows.text(i, "split"), instruction.empty() ? "none" : instruction};
    for (size_t part = 0; part < truth.size(); ++part) {
      const auto& values = answer.parts[part].values;
      for (size_t j = 0; j < std::min<size_t>(values.size(), 5); ++j) {
        if (values[j].first != truth[part]) continue;
        first[part] += j == 0;
        ++five[part];
      }
    }
    tile[0] += answer.kernels[0].tile_m == rows.integer(i, "tile_m");
    tile[1] += answer.kernels[0].tile_n == rows.integer(i, "tile_n");
    for (size_t j = 0; j < std::min<size_t>(answer.kernels.size(), 5); ++j) {
      const TensileKernel& k = answer.kernels[j];
      if (fmt::format("{}x{}", k.tile_m, k.tile_n) != truth[0] ||
          std::to_string(k.depth_u) != truth[1] || std::to_string(k.split) != truth[2] ||
          matrix_instruction_name(k) != truth[3])
        continue;
      first[4] += j == 0;
      ++five[4];
    }
  }
  const auto percent = [&](size_t count) {
    return 100.0 * static_cast<double>(count) /
           static_cast<double>(std::max<size_t>(chosen.size(), 1));
  };
  fmt::print("{}: {} products; {:.2f} ms (median); tile_m {:.1f} %, tile_n {:.1f} %\n", gpu,
             chosen.size(), median(millis), percent(tile[0]), percent(tile[1]));
  for (size_t part = 0; part < kParts.size(); ++part)
    fmt::print("  {}: {:.1f} %, best 5 {:.1f} %\n", kParts[part], percent(first[part]),
               percent(five[part]));
}

void check_choice(const std::string& alias, size_t count) {
  const Device device = find_device(alias);
  const SolverModel& model = SolverModel::bundled();
  Rng rng(kSeed);
  std::vector<double> micros;
  size_t solvers = 0;
  for (size_t i = 0; i < count; ++i) {
    const ConvProblem problem = random_problem(rng);
    const TunedChip chip = tuned_chip(device, problem.dtype);
    const double start = cpu_seconds();
    solvers += model.rank(problem, chip).size();
    micros.push_back(1e6 * (cpu_seconds() - start));
  }
  fmt::print("{} problems, {} solvers ranked: {:.1f} us a problem (median)\n", count, solvers,
             median(micros));
}

int run(const std::vector<std::string>& a) {
  const auto is = [&](const char* what, size_t size) { return a.size() == size && a[0] == what; };
  if (is("rules", 2))
    check_rules(a[1]);
  else if (is("parameters", 6) || is("parameters", 7))
    check_parameters(a[1], a[2], a[3], std::stoi(a[4]), std::stoul(a[5]), a.size() == 7);
  else if (is("tensile", 6))
    check_tensile(a[1], a[2], a[3], std::stoi(a[4]), std::stoul(a[5]));
  else if (is("legal", 3))
    check_legal(a[1], std::stoul(a[2]));
  else if (is("choice", 3))
    check_choice(a[1], std::stoul(a[2]));
  else
    return fmt::print(stderr, "usage: see bench/tune_check.cc\n"), 2;
  return 0;
}

}  // namespace
}  // namespace tilecast::tuning

int main(int argc, char** argv) {
  try {
    return tilecast::tuning::run({argv + 1, argv + argc});
  } catch (const tilecast::Error& error) {
    fmt::print(stderr, "tune_check: {}\n", error.what());
    return 1;
  }
}
