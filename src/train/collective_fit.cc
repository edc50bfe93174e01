#include "train/collective_fit.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>

namespace tilecast {
namespace {

/// Penalties of the four terms: on a row of 1, and on a step of 1 between neighbouring sizes,
/// relative to one measurement of weight 1. The latter makes sizes without measurements lie between
/// their neighbours. Chosen by the held-out errors of all GPUs (research/experiments.md).
constexpr double kCommon = 0.01, kByWidth = 0.05, kByLink = 0.05, kByBoth = 0.1, kStep = 3;
/// Times launched by the host are many, dense in size, and hold its jitter.
constexpr double kHostPacedWeight = 0.05;
constexpr int64_t kHostPacedBytes = 1 << 20;

using LinkId = std::pair<std::string, int64_t>;

/// The fit of one curve.
class CurveFit {
 public:
  explicit CurveFit(std::vector<LinkId> links)
      : links_(std::move(links)),
        unknowns_(static_cast<Eigen::Index>((links_.size() + 1) * kBlock)) {
    normal_ = Eigen::MatrixXd::Zero(unknowns_, unknowns_);
    right_ = Eigen::VectorXd::Zero(unknowns_);
    covered_.resize(links_.size() + 1);
  }

  void add(const CollectiveRow& row) {
    const Between size = Between::of(std::log2(row.law.size_s / 1e-6), kFirstSize, kSizeCount);
    const Between width = Between::of(std::log2(row.law.width), 0, kWidthCount);
    const LinkId link{row.law.level->kind, row.law.level->generation.value_or(0)};
    const size_t l =
        1 + static_cast<size_t>(std::find(links_.begin(), links_.end(), link) - links_.begin());
    std::vector<std::pair<Eigen::Index, double>> terms;
    for (int s = 0; s < 2; ++s) {
      const double part = s == 0 ? 1 - size.share : size.share;
      if (part == 0) continue;
      const int knot = size.first + s;
      terms.emplace_back(at(0, 0, knot), part);
      terms.emplace_back(at(l, 0, knot), part);
      for (int w = 0; w < 2; ++w) {
        const double both = part * (w == 0 ? 1 - width.share : width.share);
        if (both == 0) continue;
        terms.emplace_back(at(0, 1 + width.first + w, knot), both);
        terms.emplace_back(at(l, 1 + width.first + w, knot), both);
        for (const size_t table : {size_t{0}, l})
          covered_[table].try_emplace(width.first + w).first->second.push_back(knot);
      }
    }
    const double y = std::log(row.measured->measured_s / row.law.seconds());
    for (const auto& [i, a] : terms) {
      right_[i] += row.weight * a * y;
      for (const auto& [j, b] : terms) normal_(i, j) += row.weight * a * b;
    }
    ++rows_;
  }

  bool empty() const { return rows_ == 0; }

  void solve() {
    for (size_t l = 0; l <= links_.size(); ++l) {
      for (int w = 0; w <= kWidthCount; ++w) {
        const double penalty =
            l == 0 ? (w == 0 ? kCommon : kByWidth) : (w == 0 ? kByLink : kByBoth);
        for (int knot = 0; knot < kSizeCount; ++knot)
          normal_(at(l, w, knot), at(l, w, knot)) += penalty;
        for (int knot = 0; knot + 1 < kSizeCount; ++knot) {
          const Eigen::Index i = at(l, w, knot), j = at(l, w, knot + 1);
          normal_(i, i) += kStep;
          normal_(j, j) += kStep;
          normal_(i, j) -= kStep;
          normal_(j, i) -= kStep;
        }
      }
    }
    solution_ = normal_.ldlt().solve(right_);
  }

  /// The curve of link `l` (0: all links). Beyond the measured sizes a row keeps its last value.
  CurveTable table(size_t l) const {
    CurveTable table{};
    for (int w = 0; w < kWidthCount; ++w) {
      for (int knot = 0; knot < kSizeCount; ++knot) {
        double sum = solution_[at(0, 0, knot)] + solution_[at(0, 1 + w, knot)];
        if (l > 0) sum += solution_[at(l, 0, knot)] + solution_[at(l, 1 + w, knot)];
        table[static_cast<size_t>(w)][static_cast<size_t>(knot)] = sum;
      }
    }
    for (int w = 0; w < kWidthCount; ++w) extend(l, w, table);
    return table;
  }
  bool known(size_t l) const { return !covered_[l].empty(); }

 private:
  static constexpr int kBlock = (kWidthCount + 1) * kSizeCount;
  static Eigen::Index at(size_t link, int width, int knot) {
    return static_cast<Eigen::Index>(link) * kBlock + width * kSizeCount + knot;
  }

  void extend(size_t l, int w, CurveTable& table) const {
    // The widths nearest to w that were measured on these links, or on any.
    for (const size_t source : {l, size_t{0}}) {
      const auto found = covered_[source].find(w);
      if (found == covered_[source].end()) continue;
      const auto [low, high] = std::minmax_element(found->second.begin(), found->second.end());
      auto& row = table[static_cast<size_t>(w)];
      for (int knot = 0; knot < kSizeCount; ++knot)
        row[static_cast<size_t>(knot)] = row[static_cast<size_t>(std::clamp(knot, *low, *high))];
      return;
    }
    // No collective has this width: that of the nearest one.
    int nearest = -1;
    for (const auto& [width, knots] : covered_[0]) {
      if (nearest < 0 || std::abs(width - w) < std::abs(nearest - w)) nearest = width;
    }
    if (nearest < 0) return;
    extend(l, nearest, table);
    table[static_cast<size_t>(w)] = table[static_cast<size_t>(nearest)];
  }

  std::vector<LinkId> links_;
  Eigen::Index unknowns_;
  Eigen::MatrixXd normal_;
  Eigen::VectorXd right_, solution_;
  /// For all links and for each: the knots that rows of a width touch.
  std::vector<std::map<int, std::vector<int>>> covered_;
  size_t rows_ = 0;
};

}  // namespace

std::optional<CollectiveRow> collective_row(const CollectiveMeasurement& measured,
                                            const Cluster& cluster) {
  if (measured.host_paced && measured.bytes < kHostPacedBytes) return std::nullopt;
  const CollectiveOptions options = {.software = measured.software};
  std::vector<CollectiveLawTime> laws;
  if (measured.exchange)
    laws = {law_of(measured.kind, *measured.exchange, measured.group, cluster, options)};
  else
    laws = laws_of(measured.kind, measured.bytes, measured.dtype, measured.group, cluster, options);
  const CollectiveLawTime& law = *std::min_element(
      laws.begin(), laws.end(), [](const CollectiveLawTime& a, const CollectiveLawTime& b) {
        return a.seconds() < b.seconds();
      });
  if (!law.curve || law.level == nullptr || !(law.size_s > 0)) return std::nullopt;
  return CollectiveRow{.measured = &measured,
                       .cluster = &cluster,
                       .device = cluster.device.id,
                       .law = law,
                       .weight = measured.host_paced ? kHostPacedWeight : 1};
}

CollectiveWeights fit_collectives(const std::vector<CollectiveRow>& rows) {
  std::vector<LinkId> links;
  for (const CollectiveRow& row : rows)
    links.emplace_back(row.law.level->kind, row.law.level->generation.value_or(0));
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  CollectiveWeights weights;
  weights.links.resize(links.size() + 1);
  for (size_t l = 0; l < links.size(); ++l) {
    weights.links[l + 1].kind = links[l].first;
    weights.links[l + 1].generation = links[l].second;
  }
  for (size_t c = 0; c < kCurveCount; ++c) {
    CurveFit fit(links);
    for (const CollectiveRow& row : rows) {
      if (*row.law.curve == static_cast<Curve>(c)) fit.add(row);
    }
    if (fit.empty()) continue;
    fit.solve();
    for (size_t l = 0; l <= links.size(); ++l) {
      weights.links[l].values[c] = fit.table(l);
      weights.links[l].known[c] = fit.known(l);
    }
  }
  return weights;
}

}  // namespace tilecast
