#include "sharing/pair_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/rng.h"

namespace tilecast {
namespace {

// Found on Gavel's pairs (research/sharing): errors of pairs that are left out are flat around
// these values.
constexpr double kJobSpread = 0.25, kModelSpread = 0.35;  // of effects
constexpr double kPairNoise = 0.05;                       // of a measured speed
constexpr double kFarFromTheRest = 1.5;                   // noises; Huber's loss is linear beyond

/// The law's own error, which counts as so many pairs: a few pairs that agree by chance do not make
/// a forecast certain.
constexpr double kLawSpread = 0.12, kLawCountsAs = 4;

/// Pairs that are left out spread more than those that the fit has seen, beyond the effects that it
/// takes up: with this, 77 to 82 % of them are inside their 80 % interval.
constexpr double kUnseenSpread = 1.1;

constexpr double kLeastSpeed = 0.02;  // slower ones count as this: they are no forecast's fault

/// Index of what has an effect: jobs and models that rows name, each as slowed and as one that
/// slows.
class EffectIndex {
 public:
  EffectIndex(std::span<const PairRow> rows, std::span<const size_t> model_of_job)
      : model_of_job_(model_of_job) {
    for (const PairRow& row : rows) {
      for (const size_t job : {row.job, row.partner}) {
        jobs_.try_emplace(job, 0);
        models_.try_emplace(model_of_job[job], 0);
      }
    }
    size_t next = 0;
    for (auto& entry : jobs_) entry.second = next++;
    for (auto& entry : models_) entry.second = next++;
    half_ = next;
  }

  Eigen::Index size() const { return static_cast<Eigen::Index>(2 * half_); }

  /// The row's four effects, and by what each is scaled so that its spread is 1.
  std::array<std::pair<Eigen::Index, double>, 4> of(const PairRow& row) const {
    return {{{at(jobs_, row.job, 0), kJobSpread},
             {at(models_, model_of_job_[row.job], 0), kModelSpread},
             {at(jobs_, row.partner, half_), kJobSpread},
             {at(models_, model_of_job_[row.partner], half_), kModelSpread}}};
  }

  PairFit::Effect effect(size_t job, const Eigen::VectorXd& w) const {
    PairFit::Effect effect;
    const auto add = [&](const std::map<size_t, size_t>& index, size_t key, double spread) {
      if (!index.contains(key)) return;
      effect.known = true;
      effect.slowed_log += spread * w(at(index, key, 0));
      effect.slows_log += spread * w(at(index, key, half_));
    };
    add(jobs_, job, kJobSpread);
    add(models_, model_of_job_[job], kModelSpread);
    return effect;
  }

 private:
  static Eigen::Index at(const std::map<size_t, size_t>& index, size_t key, size_t from) {
    return static_cast<Eigen::Index>(index.at(key) + from);
  }

  std::span<const size_t> model_of_job_;
  std::map<size_t, size_t> jobs_, models_;
  size_t half_ = 0;
};

/// Errors of the rows and how they change with the effects.
struct Linear {
  double loss = 0;
  double squares = 0, weights = 0;
  Eigen::VectorXd gradient;
  Eigen::MatrixXd curvature;
};

Linear linear_at(std::span<const PairRow> rows, const EffectIndex& index,
                 const Eigen::VectorXd& w) {
  Linear x{.loss = w.squaredNorm() / 2,
           .gradient = w,
           .curvature = Eigen::MatrixXd::Identity(index.size(), index.size())};
  for (const PairRow& row : rows) {
    const auto effects = index.of(row);
    double log = 0;
    for (const auto& [i, scale] : effects) log += scale * w(i);
    const double fitted = with_pair_effects(row.law, log);
    const double measured = std::clamp(row.measured, kLeastSpeed, 1.0);
    // A logarithm: the ratio to a speed that is near 0 by mistake would weigh more than all others.
    const double log_error = std::log(fitted / measured);
    const double error = log_error / kPairNoise, far = std::abs(error);
    const double weight = far > kFarFromTheRest ? kFarFromTheRest / far : 1;
    x.loss +=
        far > kFarFromTheRest ? kFarFromTheRest * (far - kFarFromTheRest / 2) : error * error / 2;
    const double slope = -(1 - fitted) / kPairNoise;
    for (const auto& [i, scale] : effects) {
      x.gradient(i) += weight * error * slope * scale;
      for (const auto& [j, other] : effects)
        x.curvature(i, j) += weight * slope * slope * scale * other;
    }
    x.squares += weight * log_error * log_error;
    x.weights += weight;
  }
  return x;
}

/// The effects of the least loss: Gauss and Newton's steps, halved where they go too far.
Eigen::VectorXd best_effects(std::span<const PairRow> rows, const EffectIndex& index) {
  constexpr int kMostSteps = 40;
  Eigen::VectorXd w = Eigen::VectorXd::Zero(index.size());
  Linear now = linear_at(rows, index, w);
  for (int step = 0; step < kMostSteps; ++step) {
    Eigen::VectorXd change = -now.curvature.llt().solve(now.gradient);
    Linear next = linear_at(rows, index, w + change);
    for (int half = 0; half < 20 && !(next.loss < now.loss); ++half) {
      change /= 2;
      next = linear_at(rows, index, w + change);
    }
    if (!(next.loss < now.loss)) break;
    w += change;
    const bool done = now.loss - next.loss < 1e-9 * now.loss;
    now = std::move(next);
    if (done) break;
  }
  return w;
}

/// Adds the rows of `fold` by a fit of all others.
void left_out_rows(std::span<const PairRow> rows, std::span<const size_t> model_of_job,
                   const std::vector<size_t>& fold, std::vector<LeftOutRow>& out) {
  if (fold.empty()) return;
  std::vector<bool> is_out(rows.size(), false);
  for (const size_t i : fold) is_out[i] = true;
  std::vector<PairRow> others;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!is_out[i]) others.push_back(rows[i]);
  }
  const PairFit fit = fit_pairs(others, model_of_job);
  for (const size_t i : fold) out.push_back({i, fitted_speed(fit, rows[i]), fit.spread_log});
}

}  // namespace

double with_pair_effects(double law, double log) { return 1 / (1 + (1 / law - 1) * std::exp(log)); }

double fitted_speed(const PairFit& fit, const PairRow& row) {
  return with_pair_effects(row.law, fit.jobs[row.job].slowed_log + fit.jobs[row.partner].slows_log);
}

Interval fitted_interval(double speed, double spread_log) {
  constexpr double kTenthPercentile = 1.2816;  // of the normal distribution
  const double factor = std::exp(kTenthPercentile * spread_log);
  return {speed, speed / factor, std::min(1.0, speed * factor)};
}

PairFit fit_pairs(std::span<const PairRow> rows, std::span<const size_t> model_of_job) {
  PairFit fit;
  fit.jobs.resize(model_of_job.size());
  fit.spread_log = kLawSpread;
  if (rows.empty()) return fit;
  // In one order, so that sums round in the same way.
  std::vector<PairRow> sorted(rows.begin(), rows.end());
  const auto key = [](const PairRow& r) { return std::tie(r.job, r.partner, r.measured, r.law); };
  std::sort(sorted.begin(), sorted.end(),
            [&](const PairRow& a, const PairRow& b) { return key(a) < key(b); });

  const EffectIndex index(sorted, model_of_job);
  const Eigen::VectorXd w = best_effects(sorted, index);
  for (size_t job = 0; job < model_of_job.size(); ++job) fit.jobs[job] = index.effect(job, w);

  const Linear end = linear_at(sorted, index, w);
  // As many rows as effects follow the rows rather than the other way round.
  const double followed =
      static_cast<double>(index.size()) -
      end.curvature.llt().solve(Eigen::MatrixXd::Identity(index.size(), index.size())).trace();
  fit.spread_log =
      kUnseenSpread * std::sqrt((end.squares + kLawCountsAs * kLawSpread * kLawSpread) /
                                (std::max(0.0, end.weights - followed) + kLawCountsAs));
  return fit;
}

std::vector<LeftOutRow> leave_out_pairs(std::span<const PairRow> rows,
                                        std::span<const size_t> model_of_job, size_t most_fits) {
  std::map<std::pair<size_t, size_t>, std::vector<size_t>> pairs;
  for (size_t i = 0; i < rows.size(); ++i)
    pairs[std::minmax(rows[i].job, rows[i].partner)].push_back(i);
  std::vector<std::vector<size_t>> folds(std::min(pairs.size(), most_fits));
  size_t next = 0;
  for (const auto& entry : pairs) {
    std::vector<size_t>& fold = folds[next++ % folds.size()];
    fold.insert(fold.end(), entry.second.begin(), entry.second.end());
  }
  std::vector<LeftOutRow> out;
  for (const std::vector<size_t>& fold : folds) left_out_rows(rows, model_of_job, fold, out);
  return out;
}

std::vector<LeftOutRow> leave_out_jobs(std::span<const PairRow> rows,
                                       std::span<const size_t> model_of_job, size_t kept,
                                       uint64_t seed) {
  std::vector<LeftOutRow> out;
  Rng rng(seed);
  for (size_t job = 0; job < model_of_job.size(); ++job) {
    std::set<size_t> known;
    for (const PairRow& row : rows) {
      if (row.job == job) known.insert(row.partner);
      if (row.partner == job) known.insert(row.job);
    }
    std::vector<size_t> partners(known.begin(), known.end());
    rng.shuffle(partners);
    partners.resize(std::min(partners.size(), kept));
    const std::set<size_t> stay(partners.begin(), partners.end());
    std::vector<size_t> fold;
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool mine = rows[i].job == job || rows[i].partner == job;
      const size_t other = rows[i].job == job ? rows[i].partner : rows[i].job;
      if (mine && !stay.contains(other)) fold.push_back(i);
    }
    left_out_rows(rows, model_of_job, fold, out);
  }
  return out;
}

}  // namespace tilecast
