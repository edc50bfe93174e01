// The picture of `forecast --power-timeline svg`: watts over time, a panel for each rank. Points
// closer than a pixel are drawn as their mean and the band of their lowest and highest.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "report/power_timeline_text.h"
#include "report/svg.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

constexpr double kPowerWidth = 960, kPowerTop = 56, kPowerPanel = 220, kPowerGap = 50;  // pixels
constexpr double kPowerLeft = 80, kPowerRight = 900;
constexpr size_t kMostPanels = 8;  // ranks that are drawn
constexpr size_t kPowerColumns = static_cast<size_t>(kPowerRight - kPowerLeft);

/// What a column of pixels shows.
struct PowerColumn {
  double seconds = 0, joules = 0, lowest_w = 0, highest_w = 0;

  double mean_w() const { return seconds > 0 ? joules / seconds : 0; }
  void add(double more_s, double watts) {
    lowest_w = seconds > 0 ? std::min(lowest_w, watts) : watts;
    highest_w = std::max(highest_w, watts);
    seconds += more_s;
    joules += more_s * watts;
  }
};

class PowerPicture {
 public:
  explicit PowerPicture(const PowerTimeline& t)
      : t_(t),
        panels_(std::clamp<size_t>(t.ranks.size(), 1, kMostPanels)),
        svg_(kPowerWidth, kPowerTop + static_cast<double>(panels_) * (kPowerPanel + kPowerGap)) {}

  std::string draw() {
    svg_.text(kPowerLeft, 24, fmt::format("{}: {:.0f} W in the mean", power_title(t_), t_.mean_w()),
              "font-size=\"15\" font-weight=\"bold\"");
    for (size_t i = 0; i < std::min(panels_, t_.ranks.size()); ++i) {
      top_ = kPowerTop + static_cast<double>(i) * (kPowerPanel + kPowerGap);
      axes(t_.ranks[i]);
      curve(columns(t_.ranks[i]));
    }
    if (t_.ranks.size() > panels_)
      svg_.text(kPowerRight, 40, fmt::format("{} more ranks", t_.ranks.size() - panels_),
                "text-anchor=\"end\"");
    return svg_.done();
  }

 private:
  double most_w() const { return t_.limit_w * 1.08; }
  double x_of(double seconds) const {
    return kPowerLeft + (kPowerRight - kPowerLeft) * seconds / std::max(t_.seconds, 1e-12);
  }
  double y_of(double watts) const { return top_ + kPowerPanel * (1 - watts / most_w()); }

  void axes(const RankPower& rank) {
    constexpr double kLines = 6;
    const double step = round_step(most_w(), kLines), across = round_step(t_.seconds, kLines);
    for (double watts = 0; watts <= most_w(); watts += step) {
      svg_.line(kPowerLeft, y_of(watts), kPowerRight, y_of(watts), "stroke=\"#ddd\"");
      svg_.text(kPowerLeft - 8, y_of(watts) + 4, fmt::format("{:.0f} W", watts),
                "text-anchor=\"end\"");
    }
    for (double seconds = 0; seconds <= t_.seconds * (1 + 1e-9); seconds += across)
      svg_.text(x_of(seconds), top_ + kPowerPanel + 18, seconds > 0 ? format_seconds(seconds) : "0",
                "text-anchor=\"middle\"");
    if (t_.ranks.size() > 1) svg_.text(kPowerLeft, top_ - 6, fmt::format("rank {}", rank.rank));
    level(t_.limit_w, "limit");
    level(t_.idle_w, "idle");
  }

  void level(double watts, const char* name) {
    svg_.line(kPowerLeft, y_of(watts), kPowerRight, y_of(watts),
              "stroke=\"#444\" stroke-dasharray=\"4 3\"");
    svg_.text(kPowerRight + 4, y_of(watts) + 4, name);
  }

  /// Points that end within a column count for it, longer ones for all that they cover.
  std::vector<PowerColumn> columns(const RankPower& rank) const {
    std::vector<PowerColumn> all(kPowerColumns);
    const double width_s = t_.seconds / static_cast<double>(kPowerColumns);
    for (size_t i = 0; i < rank.points.size(); ++i) {
      const double end_s = i + 1 < rank.points.size() ? rank.points[i + 1].start_s : t_.seconds;
      double at = rank.points[i].start_s;
      while (at < end_s) {
        const auto column = std::min(kPowerColumns - 1, static_cast<size_t>(at / width_s));
        const double column_end = width_s * static_cast<double>(column + 1);
        const double until = column + 1 == kPowerColumns ? end_s : std::min(end_s, column_end);
        if (until > at) all[column].add(until - at, rank.points[i].power_w);
        at = std::max(until, std::nextafter(at, end_s));
      }
    }
    return all;
  }

  void curve(const std::vector<PowerColumn>& all) {
    std::string mean, upper, lower;
    for (size_t c = 0; c < all.size(); ++c) {
      if (all[c].seconds <= 0) continue;
      const double left = kPowerLeft + static_cast<double>(c), right = left + 1;
      for (const double x : {left, right}) {
        mean += fmt::format("{:.0f},{:.1f} ", x, y_of(all[c].mean_w()));
        upper += fmt::format("{:.0f},{:.1f} ", x, y_of(all[c].highest_w));
        lower.insert(0, fmt::format("{:.0f},{:.1f} ", x, y_of(all[c].lowest_w)));
      }
    }
    const std::string color(kPalette.front());
    svg_.add(fmt::format("<polygon points=\"{}{}\" fill=\"{}\" fill-opacity=\"0.25\"/>\n", upper,
                         lower, color));
    svg_.add(
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
                    mean, color));
  }

  const PowerTimeline& t_;
  size_t panels_;
  SvgPicture svg_;
  double top_ = kPowerTop;
};

}  // namespace

std::string power_svg(const PowerTimeline& timeline) { return PowerPicture(timeline).draw(); }

}  // namespace tilecast
