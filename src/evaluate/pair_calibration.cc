// What measured pairs of jobs say beside the law of sharing, as a file that `share` reads.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "evaluate/job_models.h"
#include "measurements/colocation.h"
#include "measurements/xz.h"
#include "scenario/internal.h"
#include "sharing/alone.h"
#include "sharing/pair_fit.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

constexpr int kPairFileVersion = 1;
/// The fit takes the cube of the number of jobs: some seconds with as many.
constexpr size_t kMostJobsWithPairs = 400;
constexpr double kLargestEffect = 14;  // of a logarithm: a factor of a million

[[noreturn]] void refuse_pair(const std::string& where, size_t line, const std::string& what) {
  throw Error(ErrorKind::kInput, fmt::format("{}: line {}: {}", where, line, what));
}

/// Measured pairs as rows of the fit.
class PairRows {
 public:
  PairRows(const Forecaster& forecaster, const GpuRef& gpu, const std::vector<Job>& jobs,
           ShareHow how, std::string where)
      : forecaster_(forecaster), gpu_(gpu), jobs_(jobs), how_(how), where_(std::move(where)) {
    // The jobs' own order, so that numbers of jobs are indices.
    for (const Job& job : jobs) models_.index(job.name);
    pairs_of_job_.resize(jobs.size());
  }

  void add(const NamedPair& pair) {
    const size_t a = find(pair.job, pair.line), b = find(pair.partner, pair.line);
    const std::vector<double> law = relative_speeds({alone(a), alone(b)});
    rows_.push_back({a, b, law[0], relative(pair, a, pair.speed)});
    rows_.push_back({b, a, law[1], relative(pair, b, pair.partner_speed)});
    ++pairs_of_job_[a];
    if (b != a) ++pairs_of_job_[b];
  }

  const std::vector<PairRow>& rows() const { return rows_; }
  std::span<const size_t> model_of_job() const { return models_.model_of_job(); }
  int64_t pairs_of(size_t job) const { return pairs_of_job_[job]; }

 private:
  size_t find(const std::string& name, size_t line) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].name == name) return i;
      names.push_back(jobs_[i].name);
    }
    refuse_pair(
        where_, line,
        fmt::format("'{}' is not among the jobs{}", shown_name(name), did_you_mean(name, names)));
  }

  const JobAlone& alone(size_t job) {
    const auto [found, fresh] = alone_.try_emplace(job);
    if (!fresh) return found->second;
    if (alone_.size() > kMostJobsWithPairs)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: expected pairs of at most {} jobs: leave out others", where_,
                              kMostJobsWithPairs));
    found->second = alone_on(forecaster_, gpu_, jobs_[job], how_).job;
    return found->second;
  }

  double relative(const NamedPair& pair, size_t job, double speed) {
    if (pair.relative) return speed;
    if (!jobs_[job].bounds.steps_per_s)
      refuse_pair(where_, pair.line,
                  fmt::format("steps a second of '{}', whose speed alone is not known: give the "
                              "job steps_per_s, or the table relative_speed",
                              jobs_[job].name));
    return speed / *jobs_[job].bounds.steps_per_s;
  }

  const Forecaster& forecaster_;
  const GpuRef& gpu_;
  const std::vector<Job>& jobs_;
  const ShareHow how_;
  const std::string where_;
  JobModels models_;
  std::map<size_t, JobAlone> alone_;
  std::vector<PairRow> rows_;
  std::vector<int64_t> pairs_of_job_;
};

void check_rows(const std::vector<PairRow>& rows, const std::vector<NamedPair>& pairs,
                const std::string& where) {
  // Noise lets a job be a little faster than alone; twice as fast is another quantity.
  constexpr double kLargestSpeed = 2;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].measured > kLargestSpeed)
      refuse_pair(where, pairs[i / 2].line,
                  fmt::format("a relative speed of {:.3g}: expected at most 1, as a job beside "
                              "another is not faster than alone",
                              rows[i].measured));
  }
}

double law_error_percent(const std::vector<PairRow>& rows) {
  double sum = 0;
  for (const PairRow& row : rows) sum += std::abs(row.law / row.measured - 1);
  return 100 * sum / static_cast<double>(rows.size());
}

std::optional<double> left_out_error_percent(const PairRows& pairs) {
  constexpr size_t kMostFits = 100;
  const std::vector<LeftOutRow> left_out =
      leave_out_pairs(pairs.rows(), pairs.model_of_job(), kMostFits);
  if (pairs.rows().size() <= 2) return std::nullopt;
  double sum = 0;
  for (const LeftOutRow& row : left_out)
    sum += std::abs(row.speed / pairs.rows()[row.row].measured - 1);
  return 100 * sum / static_cast<double>(left_out.size());
}

Json pair_file(const PairCalibration& result, const PairFit& fit, const std::vector<Job>& jobs,
               const std::string& source) {
  Json effects = Json::array();
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!fit.jobs[i].known) continue;
    effects.push_back({{"job", jobs[i].name},
                       {"slowed_log", fit.jobs[i].slowed_log},
                       {"slows_log", fit.jobs[i].slows_log}});
  }
  return {{"what", "effects of jobs beside the law of sharing (tilecast share --pairs)"},
          {"version", kPairFileVersion},
          {"gpu", result.gpu},
          {"how", result.how},
          {"source", fmt::format("{} pairs of {}", result.pairs, source)},
          {"spread_log", fit.spread_log},
          {"effects", std::move(effects)}};
}

[[noreturn]] void broken_pairs(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: not a usable calibration of pairs: {}; make one with 'tilecast "
                          "calibrate --pairs'",
                          where, what));
}

double effect_of(const JsonObject& object, const std::string& key, const std::string& where) {
  const double value = object.number(key);
  if (!(std::abs(value) < kLargestEffect))
    broken_pairs(where, fmt::format("{} is out of range: {:g}", key, value));
  return value;
}

}  // namespace

PairCalibration calibrate_pairs(const Forecaster& forecaster, const GpuRef& gpu,
                                const std::vector<Job>& jobs,
                                const PairCalibrationOptions& options) {
  if (options.how == ShareHow::kMig)
    throw Error(ErrorKind::kInput,
                "jobs on slices do not slow each other: `how` is time-slice, mps or streams");
  const std::string where = printable(options.pairs.string());
  const std::vector<NamedPair> named =
      read_named_pairs(parse_csv(read_measurement_text(options.pairs), where));
  if (named.empty())
    throw Error(ErrorKind::kInput, where + ": no pair is in it: expected at least one row");
  PairRows pairs(forecaster, gpu, jobs, options.how, where);
  for (const NamedPair& pair : named) pairs.add(pair);
  check_rows(pairs.rows(), named, where);

  const PairFit fit = fit_pairs(pairs.rows(), pairs.model_of_job());
  PairCalibration result{.gpu = gpu.id(),
                         .how = std::string(choice_word(options.how)),
                         .pairs = static_cast<int64_t>(named.size()),
                         .before_percent = law_error_percent(pairs.rows()),
                         .after_percent = left_out_error_percent(pairs)};
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!fit.jobs[i].known) continue;
    result.jobs.push_back({.job = jobs[i].name,
                           .pairs = pairs.pairs_of(i),
                           .slowed_ratio = std::exp(fit.jobs[i].slowed_log),
                           .slows_ratio = std::exp(fit.jobs[i].slows_log)});
  }
  if (!options.output.empty())
    write_file(options.output,
               pair_file(result, fit, jobs, options.pairs.filename().string()).dump(1) + "\n");
  return result;
}

PairEffects load_pair_effects(const std::filesystem::path& path, const GpuRef& gpu, ShareHow how) {
  const std::string where = printable(path.string());
  const Json json = parse_json(read_file(path), where);
  if (!json.is_object() || !json.contains("effects")) broken_pairs(where, "it has no \"effects\"");
  const JsonObject file(json, where);
  file.reject_unknown({"what", "version", "gpu", "how", "source", "spread_log", "effects"});
  if (file.integer({"version"}, 0, 1'000'000) != kPairFileVersion)
    broken_pairs(where, fmt::format("it is not of version {}", kPairFileVersion));
  const std::string of_gpu = file.string("gpu"), of_how = file.string("how");
  if (of_gpu != gpu.id() || of_how != choice_word(how))
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: its pairs shared {} by {}, asked is {} by {}: measure pairs there", where,
                    shown_name(of_gpu), shown_name(of_how), gpu.id(), choice_word(how)));
  PairEffects effects;
  effects.spread_log = effect_of(file, "spread_log", where);
  if (effects.spread_log < 0) broken_pairs(where, "spread_log is below 0");
  if (!json["effects"].is_array()) broken_pairs(where, "\"effects\" is no list");
  for (const Json& item : json["effects"]) {
    const JsonObject effect(item, where + ": effects");
    effect.reject_unknown({"job", "slowed_log", "slows_log"});
    effects.effects.push_back({.job = effect.string("job"),
                               .slowed_log = effect_of(effect, "slowed_log", where),
                               .slows_log = effect_of(effect, "slows_log", where)});
  }
  return effects;
}

}  // namespace tilecast
