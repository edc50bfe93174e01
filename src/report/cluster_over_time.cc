// The picture of `allocate --arrivals -o cluster.svg`: GPUs in use over time, by job, for each
// policy and kind.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "report/svg.h"
#include "tilecast/allocate.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

constexpr double kClusterWidth = 960, kClusterLeft = 60, kClusterRight = 740,
                 kClusterListLeft = 756;                                 // pixels
constexpr double kClusterTop = 60, kPanel = 56, kGap = 10, kTitle = 26;  // heights
constexpr size_t kBins = 340;

std::string in_hours(double seconds) { return fmt::format("{:.3g} h", seconds / 3600); }

class ClusterPicture {
 public:
  explicit ClusterPicture(const ClusterSimulation& c) : c_(c), svg_(kClusterWidth, height(c)) {
    std::map<std::string, double> used;
    for (const PolicyOutcome& policy : c.policies) {
      end_s_ = std::max(end_s_, policy.makespan_s);
      for (const ClusterSpan& span : policy.spans)
        used[span.job] += span.gpus * (span.end_s - span.begin_s);
    }
    // The jobs that use most have a color each; the last color is for all others.
    std::vector<std::pair<double, std::string>> most;
    for (const auto& [job, gpu_s] : used) most.emplace_back(-gpu_s, job);
    std::sort(most.begin(), most.end());
    for (const auto& [gpu_s, job] : most) {
      if (names_.size() + 1 < kPalette.size()) names_.push_back(job);
      colors_[job] = std::min(colors_.size(), kPalette.size() - 1);
    }
    if (most.size() > names_.size())
      names_.push_back(fmt::format("{} others", most.size() - names_.size()));
  }

  std::string draw() {
    const PolicyOutcome &ours = c_.policies.back(), &first = c_.policies.front();
    svg_.text(
        kClusterLeft, 24,
        fmt::format("{} jobs: {} from arrival to end under {}, {} under {} (mean)", c_.arrivals,
                    in_hours(ours.mean_s), ours.policy, in_hours(first.mean_s), first.policy),
        "font-size=\"15\" font-weight=\"bold\"");
    double y = kClusterTop;
    for (const PolicyOutcome& policy : c_.policies) {
      svg_.text(
          kClusterLeft, y + 12,
          fmt::format("{}: mean {}, p95 {}, {:.0f} % in use", policy.policy,
                      in_hours(policy.mean_s), in_hours(policy.p95_s), 100 * policy.utilization),
          "font-weight=\"bold\"");
      y += kTitle;
      for (size_t kind = 0; kind < c_.pool.size(); ++kind, y += kPanel + kGap)
        panel(policy, kind, y);
    }
    axis(y);
    legend();
    return svg_.done();
  }

 private:
  static double height(const ClusterSimulation& c) {
    return kClusterTop +
           static_cast<double>(c.policies.size()) *
               (kTitle + static_cast<double>(c.pool.size()) * (kPanel + kGap)) +
           50;
  }
  double x_of(double seconds) const {
    return kClusterLeft + (kClusterRight - kClusterLeft) * seconds / end_s_;
  }

  /// The mean number of GPUs in each bin of time, by color.
  std::vector<std::vector<double>> bins_of(const PolicyOutcome& policy, size_t kind) const {
    std::vector<std::vector<double>> bins(kPalette.size(), std::vector<double>(kBins));
    const double width = end_s_ / static_cast<double>(kBins);
    for (const ClusterSpan& span : policy.spans) {
      if (span.kind != kind) continue;
      const size_t color = colors_.at(span.job);
      for (auto bin = static_cast<size_t>(span.begin_s / width); bin < kBins; ++bin) {
        const double from = static_cast<double>(bin) * width;
        if (from >= span.end_s) break;
        bins[color][bin] +=
            span.gpus * (std::min(span.end_s, from + width) - std::max(span.begin_s, from)) / width;
      }
    }
    return bins;
  }

  /// From one height to another at x; below 0: the line begins or ends there.
  static std::string corner(double x, double from, double to) {
    std::string points;
    for (const double y : {from, to})
      if (y >= 0) points += fmt::format("{:.1f},{:.1f} ", x, y);
    return points;
  }

  void panel(const PolicyOutcome& policy, size_t kind, double top) {
    const double bottom = top + kPanel, gpus = static_cast<double>(c_.pool[kind].gpus);
    const auto y_of = [&](double used) { return bottom - kPanel * used / std::max(gpus, 1.0); };
    const std::vector<std::vector<double>> bins = bins_of(policy, kind);
    std::vector<double> below(kBins);
    const double step = (kClusterRight - kClusterLeft) / static_cast<double>(kBins);
    for (size_t color = 0; color < bins.size(); ++color) {
      std::string up, down;
      bool any = false;
      double low_before = -1, high_before = -1;
      for (size_t bin = 0; bin <= kBins; ++bin) {
        const double left = kClusterLeft + step * static_cast<double>(bin);
        // Points only where a line turns.
        const double low = bin < kBins ? y_of(below[bin]) : -1;
        if (bin < kBins) below[bin] += bins[color][bin];
        const double high = bin < kBins ? y_of(below[bin]) : -1;
        any = any || (bin < kBins && bins[color][bin] > 0);
        if (high != high_before) up += corner(left, high_before, high);
        if (low != low_before) down.insert(0, corner(left, low, low_before));
        low_before = low;
        high_before = high;
      }
      if (any)
        svg_.add(
            fmt::format("<polygon points=\"{}{}\" fill=\"{}\"/>\n", up, down, kPalette[color]));
    }
    svg_.line(kClusterLeft, top, kClusterRight, top, "stroke=\"#bbb\" stroke-dasharray=\"3 3\"");
    svg_.line(kClusterLeft, bottom, kClusterRight, bottom, "stroke=\"#444\"");
    svg_.text(kClusterLeft - 8, top + 8, fmt::format("{}", c_.pool[kind].gpus),
              "text-anchor=\"end\"");
    svg_.text(kClusterLeft - 8, bottom, "0", "text-anchor=\"end\"");
    svg_.text(kClusterRight - 4, top + 14, c_.pool[kind].gpu,
              "text-anchor=\"end\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\"");
  }

  void axis(double y) {
    constexpr double kLines = 8, kHour = 3600;
    const bool long_enough = end_s_ > kHour;
    const double unit = long_enough ? kHour : 1, step = round_step(end_s_ / unit, kLines);
    for (double value = 0; value * unit <= end_s_; value += step)
      svg_.text(x_of(value * unit), y + 8, fmt::format("{:g}", value), "text-anchor=\"middle\"");
    svg_.text((kClusterLeft + kClusterRight) / 2, y + 28,
              long_enough ? "hours; GPUs in use" : "seconds; GPUs in use",
              "text-anchor=\"middle\"");
  }

  void legend() {
    constexpr double kLine = 20;
    double y = kClusterTop + kTitle + 10;
    for (size_t i = 0; i < names_.size(); ++i, y += kLine) {
      svg_.add(fmt::format("<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"12\" fill=\"{}\"/>\n",
                           kClusterListLeft, y - 10, kPalette[i]));
      svg_.text(kClusterListLeft + 20, y, shown_name(names_[i], 26));
    }
  }

  const ClusterSimulation& c_;
  double end_s_ = 1e-9;
  std::vector<std::string> names_;        ///< by color
  std::map<std::string, size_t> colors_;  ///< by job
  SvgPicture svg_;
};

}  // namespace

std::string simulation_svg(const ClusterSimulation& simulation) {
  return ClusterPicture(simulation).draw();
}

}  // namespace tilecast
