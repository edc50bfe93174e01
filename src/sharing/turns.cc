#include "sharing/turns.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>

#include "base/budget.h"

namespace tilecast {
namespace {

/// Largest number of states of a chain, which takes some 10 ms then: two jobs that are 16 steps
/// ahead have 289.
constexpr size_t kMostStates = 400;

/// A job with a whole number of units.
struct Ring {
  int units = 1;
  bool parallel = false;  ///< units are processes with hosts of their own
  double host_s = 0;      ///< of a unit
  double held_s = 0;
  double weight = 0;  ///< of the job at the GPU; of each process, if parallel
  double switch_s = 0;

  double arrivals_per_s(int at_gpu) const {
    if (parallel) return (units - at_gpu) / host_s;
    return at_gpu < units ? 1 / host_s : 0;
  }
  double weight_of(int at_gpu) const {
    return parallel ? weight * at_gpu : at_gpu > 0 ? weight : 0;
  }
  /// Of a round in which each process at the GPU has a turn.
  double switches_s(int at_gpu) const {
    return switch_s * (parallel ? at_gpu : at_gpu > 0 ? 1 : 0);
  }
};

/// The share of time in which a job alone has the GPU, with the given host time over GPU time.
double share_alone(const Ring& ring, double host_ratio) {
  double weight = 1, sum = 1;
  for (int k = 0; k < ring.units; ++k) {
    weight *= (ring.parallel ? ring.units - k : 1) / host_ratio;
    sum += weight;
  }
  return 1 - 1 / sum;
}

/// The host's time with which the job alone has the GPU for its share of the time.
double host_of_share(const Ring& ring, double share) {
  double low = 1e-6, high = 1e6;  // over the GPU's time
  for (int i = 0; i < 80; ++i) {
    const double middle = std::sqrt(low * high);
    (share_alone(ring, middle) > share ? low : high) = middle;
  }
  return std::sqrt(low * high) * ring.held_s;
}

Ring ring_of(const TurnTaker& job, int depth) {
  Ring ring{.units = job.processes > 1 ? job.processes : depth,
            .parallel = job.processes > 1,
            .held_s = job.held_s,
            .weight = job.turn_s,
            .switch_s = job.switch_s};
  ring.host_s = host_of_share(ring, job.share);
  return ring;
}

/// Shares of time that jobs have the GPU, by the chain's stationary distribution.
std::vector<double> gpu_shares(const std::vector<Ring>& rings) {
  std::vector<size_t> stride(rings.size() + 1, 1);
  for (size_t i = 0; i < rings.size(); ++i)
    stride[i + 1] = stride[i] * (static_cast<size_t>(rings[i].units) + 1);
  const size_t states = stride.back();
  Eigen::MatrixXd rates =
      Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(states), static_cast<Eigen::Index>(states));
  Eigen::MatrixXd share = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(rings.size()),
                                                static_cast<Eigen::Index>(states));
  std::vector<double> weights(rings.size());
  for (size_t state = 0; state < states; ++state) {
    const auto at = [&](size_t i) { return static_cast<int>(state % stride[i + 1] / stride[i]); };
    double switches = 0;
    for (size_t i = 0; i < rings.size(); ++i) {
      weights[i] = rings[i].weight_of(at(i));
      switches += rings[i].switches_s(at(i));
    }
    double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto is_there = [](double weight) { return weight > 0; };
    if (std::count_if(weights.begin(), weights.end(), is_there) > 1) all += switches;
    const auto from = static_cast<Eigen::Index>(state);
    const auto add = [&](size_t to, double rate) {
      rates(static_cast<Eigen::Index>(to), from) += rate;
      rates(from, from) -= rate;
    };
    for (size_t i = 0; i < rings.size(); ++i) {
      if (const double rate = rings[i].arrivals_per_s(at(i)); rate > 0)
        add(state + stride[i], rate);
      if (weights[i] <= 0) continue;
      share(static_cast<Eigen::Index>(i), from) = weights[i] / all;
      add(state - stride[i], weights[i] / all / rings[i].held_s);
    }
  }
  // The probabilities sum up to 1, which replaces one of the equations.
  rates.row(rates.rows() - 1).setOnes();
  Eigen::VectorXd right = Eigen::VectorXd::Zero(rates.rows());
  right(rates.rows() - 1) = 1;
  const Eigen::VectorXd result = share * rates.partialPivLu().solve(right);
  return {result.begin(), result.end()};
}

int most_units(const TurnTaker& job) {
  return job.processes > 1 ? job.processes : static_cast<int>(std::ceil(job.depth));
}

/// E[1 / (1 + sum of the w_j of those that are there)] with weights and probabilities of being
/// there: the integral over z in 0 to 1 of the product of 1 - v_j + v_j z^w_j. A factor z^s adds s
/// to the sum.
template <typename Product>
double mean_share(const Product& product) {
  // Double exponential quadrature: z^w has an unbounded slope at 0 where w is below 1.
  constexpr double kStep = 0.1, kEnd = 3.2;
  double sum = 0, weights = 0;
  for (double t = -kEnd; t <= kEnd + kStep / 2; t += kStep) {
    const double inner = std::numbers::pi / 2 * std::sinh(t);
    const double z = 1 / (1 + std::exp(-2 * inner));
    const double weight = std::cosh(t) / (std::cosh(inner) * std::cosh(inner));
    sum += weight * product(z);
    weights += weight;
  }
  return sum / weights;
}

/// Whether the chain tells their speeds: their work is their own, and the states are few.
bool is_chain(std::span<const TurnTaker> jobs) {
  size_t states = 1;
  for (const TurnTaker& job : jobs) {
    if (job.open) return false;
    states *= static_cast<size_t>(most_units(job)) + 1;
    if (states > kMostStates) return false;
  }
  return true;
}

}  // namespace

std::vector<double> internal::speeds_by_chain(std::span<const TurnTaker> jobs) {
  std::vector<double> speeds(jobs.size(), 0);
  // Each job with a fraction of a unit is taken with the whole numbers below and above.
  for (size_t corner = 0; corner < size_t{1} << jobs.size(); ++corner) {
    double part = 1;
    std::vector<Ring> rings;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const double depth = jobs[i].processes > 1 ? 1 : jobs[i].depth;
      const double below = std::floor(depth), fraction = depth - below;
      const bool above = (corner >> i & 1) != 0;
      part *= above ? fraction : 1 - fraction;
      if (part == 0) break;
      rings.push_back(ring_of(jobs[i], static_cast<int>(below) + (above ? 1 : 0)));
    }
    if (part == 0) continue;
    const std::vector<double> shares = gpu_shares(rings);
    for (size_t i = 0; i < jobs.size(); ++i)
      speeds[i] += part * std::min(1.0, shares[i] / jobs[i].share);
  }
  return speeds;
}

std::vector<double> internal::speeds_by_meeting(std::span<const TurnTaker> jobs) {
  constexpr int kRounds = 200;
  constexpr double kSame = 1e-10;
  const size_t n = jobs.size();
  std::vector<double> there(n), speed(n, 1), weight(n), switches(n), power(n);
  for (size_t i = 0; i < n; ++i) {
    there[i] = jobs[i].share;
    weight[i] = jobs[i].turn_s * jobs[i].processes;
    switches[i] = jobs[i].switch_s * jobs[i].processes;
    // A host that runs ahead hides waiting; one that is two steps ahead or more hides nearly all.
    const double depth = jobs[i].processes > 1 ? 1 : jobs[i].depth;
    power[i] = depth <= 2 ? 1 + 0.5 * (depth - 1) : 4;
  }
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> next(n);
    for (size_t i = 0; i < n; ++i) {
      double nobody = 1;  // the probability that it has the GPU for itself, without switches
      for (size_t j = 0; j < n; ++j) nobody *= j == i ? 1 : 1 - there[j];
      const double share =
          nobody + mean_share([&](double z) {
            double product = 1;
            for (size_t j = 0; j < n; ++j) {
              if (j == i) continue;
              product *=
                  1 - there[j] + there[j] * std::pow(z, (weight[j] + switches[j]) / weight[i]);
            }
            return std::pow(z, switches[i] / weight[i]) * (product - nobody);
          });
      const double u = jobs[i].share, p = power[i];
      if (jobs[i].open) {
        speed[i] = share;
        next[i] = std::min(1.0, u / share);
      } else {
        const double time = std::pow(1 - std::pow(u, p) + std::pow(u / share, p), 1 / p);
        speed[i] = 1 / time;
        next[i] = std::min(1.0, u / share / time);
      }
    }
    double change = 0;
    for (size_t i = 0; i < n; ++i) {
      change = std::max(change, std::abs(next[i] - there[i]));
      there[i] = 0.5 * (there[i] + next[i]);
    }
    if (change < kSame) break;
    Budget::here().check("sharing a GPU");
  }
  for (double& r : speed) r = std::min(1.0, r);
  return speed;
}

std::vector<double> speeds_by_turns(std::span<const TurnTaker> jobs) {
  if (jobs.size() <= 1) return std::vector<double>(jobs.size(), 1.0);
  if (jobs.size() == 2 && is_chain(jobs)) return internal::speeds_by_chain(jobs);
  std::vector<double> speeds = internal::speeds_by_meeting(jobs);
  if (jobs.size() == 2) return speeds;
  // How much more or less each pair slows down than by meeting. A job that hardly wants the GPU
  // counts for nothing here too.
  std::vector<double> exact(jobs.size()), met(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (size_t j = i + 1; j < jobs.size(); ++j) {
      Budget::here().check("sharing a GPU");
      const std::array pair = {jobs[i], jobs[j]};
      const std::vector<double> meeting = internal::speeds_by_meeting(pair);
      const std::vector<double> chain = is_chain(pair) ? internal::speeds_by_chain(pair) : meeting;
      exact[i] += 1 / chain[0] - 1;
      exact[j] += 1 / chain[1] - 1;
      met[i] += 1 / meeting[0] - 1;
      met[j] += 1 / meeting[1] - 1;
    }
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (met[i] > 0) speeds[i] = 1 / (1 + (1 / speeds[i] - 1) * exact[i] / met[i]);
  }
  return speeds;
}

}  // namespace tilecast
