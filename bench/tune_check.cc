// Not a test: accuracy and speed of 'tilecast tune' on rows of MIOpen's public databases.
//   tune_check solvers ARCH ALIAS find_ARCH.csv.xz FOLD     slow-down and errors of held-out layers
//   tune_check rules ALIAS SOLVER.csv.xz                    rows accepted, moved tokens rejected
//   tune_check parameters ARCH ALIAS SOLVER.csv.xz FOLD N   whole sets and tokens of N held-out
//   rows tune_check legal ALIAS COUNT                            random problems: all answers legal
// FOLD: the layers that the weights were not trained on (docs/tuning.md); -1: all rows.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/rng.h"
#include "devices/registry.h"
#include "measurements/xz.h"
#include "tilecast/error.h"
#include "tuning/beam.h"
#include "tuning/layer_fold.h"
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
  ConvProblem problem(size_t i) const {
    ConvProblem p;
    p.pass = static_cast<ConvPass>(std::string("FBW").find(text(i, "direction")));
    const std::string& precision = text(i, "precision");
    for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt8})
      if (miopen_precision(dtype) == precision) p.dtype = dtype;
    p.channels_last = text(i, "layout") == "NHWC";
    const std::pair<const char*, int64_t ConvProblem::*> sizes[] = {
        {"n", &ConvProblem::n},
        {"c", &ConvProblem::c},
        {"h", &ConvProblem::h},
        {"w", &ConvProblem::w},
        {"k", &ConvProblem::k},
        {"oh", &ConvProblem::oh},
        {"ow", &ConvProblem::ow},
        {"r", &ConvProblem::r},
        {"s", &ConvProblem::s},
        {"pad_h", &ConvProblem::pad_h},
        {"pad_w", &ConvProblem::pad_w},
        {"stride_h", &ConvProblem::stride_h},
        {"stride_w", &ConvProblem::stride_w},
        {"dil_h", &ConvProblem::dil_h},
        {"dil_w", &ConvProblem::dil_w},
        {"group", &ConvProblem::group}};
    for (const auto& [name, member] : sizes) p.*member = integer(i, name);
    // Only the output is known of gradients with a stride: the least input that gives it.
    if (p.h == 0)
      p.h = std::max<int64_t>(1, (p.oh - 1) * p.stride_h + 1 - 2 * p.pad_h + (p.r - 1) * p.dil_h);
    if (p.w == 0)
      p.w = std::max<int64_t>(1, (p.ow - 1) * p.stride_w + 1 - 2 * p.pad_w + (p.s - 1) * p.dil_w);
    return p;
  }

 private:
  CsvTable table_;
  std::map<std::string, size_t> columns_;
};

bool held_out(const ConvProblem& problem, int fold) {
  return fold < 0 || layer_fold(problem, kSeed, kFolds) == fold;
}

/// Of this process: other programs of the machine do not count.
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

void check_solvers(const std::string& alias, const std::string& path, int fold) {
  const Device device = find_device(alias);
  const SolverModel& model = SolverModel::bundled();
  const Rows rows(path);
  std::map<std::string, std::map<std::string, double>> measured;
  std::map<std::string, ConvProblem> problems;
  for (size_t i = 0; i < rows.size(); ++i) {
    const ConvProblem p = rows.problem(i);
    if (!held_out(p, fold)) continue;
    const std::string key = miopen_key(p);
    problems[key] = p;
    measured[key][rows.text(i, "solver")] = std::stod(rows.text(i, "time_ms")) / 1000;
  }
  double log_sum = 0;
  size_t several = 0, near = 0, listed = 0, missing = 0;
  std::vector<double> errors, micros;
  for (const auto& [key, problem] : problems) {
    const TunedChip chip = tuned_chip(device, problem.dtype);
    const double start = cpu_seconds();
    const std::vector<SolverTime> times = model.rank(problem, chip);
    micros.push_back(1e6 * (cpu_seconds() - start));
    const auto& known = measured[key];
    double best = 1e30, picked = 0;
    for (const auto& [name, seconds] : known) best = std::min(best, seconds);
    for (const SolverTime& time : times) {
      const auto it = known.find(time.solver->name);
      if (it == known.end()) continue;
      errors.push_back(std::abs(time.seconds / it->second - 1));
      if (picked == 0) picked = it->second;
    }
    if (picked == 0) ++missing;
    listed += !times.empty() && known.contains(times.front().solver->name);
    if (known.size() < 2 || picked == 0) continue;
    ++several;
    log_sum += std::log(picked / best);
    near += picked <= 1.05 * best;
  }
  double mean = 0;
  for (const double error : errors) mean += error / static_cast<double>(errors.size());
  fmt::print(
      "{}: {} problems, {} with several solvers: slow-down {:.4f}, within 5 % {:.1f} %; {} times: "
      "mean error {:.1f} %, median {:.1f} %; first choice listed {:.1f} %; without a listed "
      "solver {}; {:.1f} us a choice (median)\n",
      alias, problems.size(), several, std::exp(log_sum / static_cast<double>(several)),
      100.0 * static_cast<double>(near) / static_cast<double>(several), errors.size(), 100 * mean,
      100 * median(errors),
      100.0 * static_cast<double>(listed) / static_cast<double>(problems.size()), missing,
      median(micros));
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

int run(const std::vector<std::string>& a) {
  const auto is = [&](const char* what, size_t size) { return a.size() == size && a[0] == what; };
  if (is("solvers", 4))
    check_solvers(a[1], a[2], std::stoi(a[3]));
  else if (is("rules", 2))
    check_rules(a[1]);
  else if (is("parameters", 6) || is("parameters", 7))
    check_parameters(a[1], a[2], a[3], std::stoi(a[4]), std::stoul(a[5]), a.size() == 7);
  else if (is("legal", 3))
    check_legal(a[1], std::stoul(a[2]));
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
