// The picture of `forecast --memory-timeline svg`: bytes in use, by part, over the nodes of a pass.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/memory_blocks.h"
#include "report/svg.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

constexpr double kMemoryWidth = 960, kMemoryHeight = 600;  // pixels
constexpr double kMemoryLeft = 80, kMemoryTop = 56, kMemoryRight = 700,
                 kMemoryBottom = 530;    // of the plot
constexpr double kMemoryListLeft = 716;  // legend and contents
constexpr size_t kColumns = 600;         // at most so many points are drawn

/// A color for each of kMemoryParts, from the palette of Okabe and Ito, which color-blind readers
/// can tell apart.
constexpr std::array<std::string_view, kMemoryParts.size()> kMemoryColors = {
    "#0072b2", "#56b4e9", "#999999", "#44aa99", "#e69f00", "#009e73", "#cc79a7", "#d55e00"};

class Picture {
 public:
  explicit Picture(const MemoryTimeline& t) : t_(t) {
    const auto peak = static_cast<double>(t.points[t.peak_point].parts.sum());
    constexpr double kRoom = 1.08;  // above the peak
    top_bytes_ = std::max(peak * kRoom, 1.0);
    const auto device = static_cast<double>(usable());
    if (device < 2 * peak) top_bytes_ = std::max(top_bytes_, device * kRoom);
  }

  std::string draw() {
    text(kMemoryLeft, 24, memory_title(t_), "font-size=\"15\" font-weight=\"bold\"");
    grid();
    areas();
    phases();
    limit();
    peak();
    legend();
    return svg_.done();
  }

 private:
  int64_t usable() const { return t_.device_bytes - t_.workspace_bytes - t_.framework_bytes; }

  double x_of(size_t point) const {
    const double last = std::max<double>(1, static_cast<double>(t_.points.size()) - 1);
    return kMemoryLeft + (kMemoryRight - kMemoryLeft) * static_cast<double>(point) / last;
  }
  double y_of(double bytes) const {
    return kMemoryBottom - (kMemoryBottom - kMemoryTop) * bytes / top_bytes_;
  }

  void text(double x, double y, const std::string& content, const std::string& style = "") {
    svg_.text(x, y, content, style);
  }
  void line(double x1, double y1, double x2, double y2, const std::string& style) {
    svg_.line(x1, y1, x2, y2, style);
  }

  /// Lines at round numbers of bytes: 1, 2 or 5 times a power of two of a GiB would not be round,
  /// so powers of two are.
  void grid() {
    double step = 1;
    constexpr double kLines = 8;
    while (top_bytes_ / step > kLines) step *= 2;
    for (double bytes = 0; bytes <= top_bytes_; bytes += step) {
      line(kMemoryLeft, y_of(bytes), kMemoryRight, y_of(bytes), "stroke=\"#ddd\"");
      text(kMemoryLeft - 8, y_of(bytes) + 4, format_bytes(static_cast<int64_t>(bytes)),
           "text-anchor=\"end\"");
    }
  }

  /// The points to draw: the highest of each column, so that no peak is lost.
  std::vector<size_t> columns() const {
    std::vector<size_t> chosen;
    const size_t count = std::min(kColumns, t_.points.size());
    for (size_t c = 0; c < count; ++c) {
      const size_t first = c * t_.points.size() / count, end = (c + 1) * t_.points.size() / count;
      size_t highest = first;
      for (size_t i = first; i < end; ++i) {
        if (t_.points[i].parts.sum() > t_.points[highest].parts.sum()) highest = i;
      }
      chosen.push_back(highest);
    }
    return chosen;
  }

  void areas() {
    const std::vector<size_t> shown = columns();
    std::vector<double> below(shown.size(), 0);
    for (size_t p = 0; p < kMemoryParts.size(); ++p) {
      std::string upper, lower;
      bool any = false;
      for (size_t c = 0; c < shown.size(); ++c) {
        const int64_t bytes = t_.points[shown[c]].parts.*kMemoryParts[p].bytes;
        any = any || bytes > 0;
        const double top = below[c] + static_cast<double>(bytes);
        upper += fmt::format("{:.1f},{:.1f} ", x_of(shown[c]), y_of(top));
        lower.insert(0, fmt::format("{:.1f},{:.1f} ", x_of(shown[c]), y_of(below[c])));
        below[c] = top;
      }
      drawn_[p] = any;
      if (any)
        svg_.add(fmt::format("<polygon points=\"{}{}\" fill=\"{}\"/>\n", upper, lower,
                             kMemoryColors[p]));
    }
  }

  /// The name of a phase stands below its part of the axis; where that is too narrow, a line below,
  /// with a tick from the middle of the part, within the picture and beside other such names.
  void phases() {
    size_t first = 0;
    double taken = kMemoryLeft;  // where the last name of the second line ends
    for (size_t i = 1; i <= t_.points.size(); ++i) {
      if (i < t_.points.size() && t_.points[i].phase == t_.points[first].phase) continue;
      if (first > 0)
        line(x_of(first), kMemoryTop, x_of(first), kMemoryBottom + 8, "stroke=\"#444\"");
      constexpr double kLetter = 7.5;  // the mean width of a letter at this size
      const std::string name(t_.points[first].phase);
      const double width = kLetter * static_cast<double>(name.size());
      const double middle = (x_of(first) + x_of(i - 1)) / 2;
      if (x_of(i - 1) - x_of(first) >= width) {
        text(middle, kMemoryBottom + 20, name, "text-anchor=\"middle\"");
      } else {
        const double left = std::max(taken, std::min(middle - width / 2, kMemoryRight - width));
        line(middle, kMemoryBottom, middle, kMemoryBottom + 24, "stroke=\"#444\"");
        text(left, kMemoryBottom + 36, name, "");
        taken = left + width + kLetter;
      }
      first = i;
    }
    line(kMemoryLeft, kMemoryBottom, kMemoryRight, kMemoryBottom, "stroke=\"#444\"");
    text((kMemoryLeft + kMemoryRight) / 2, kMemoryBottom + 54,
         "operators in the order of execution", "text-anchor=\"middle\" fill=\"#444\"");
  }

  void limit() {
    const auto bytes = static_cast<double>(usable());
    if (bytes > top_bytes_) return;
    line(kMemoryLeft, y_of(bytes), kMemoryRight, y_of(bytes),
         "stroke=\"#c00\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"");
    text(kMemoryLeft + 6, y_of(bytes) - 5,
         fmt::format("what {} leaves to tensors: {}", t_.gpu_name, format_bytes(usable())),
         "fill=\"#c00\"");
  }

  void peak() {
    const MemoryPoint& point = t_.points[t_.peak_point];
    const double x = x_of(t_.peak_point), y = y_of(static_cast<double>(point.parts.sum()));
    svg_.add(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"black\"/>\n", x, y));
    const bool left = x > (kMemoryLeft + kMemoryRight) / 2;
    text(left ? x - 8 : x + 8, y - 6,
         fmt::format("peak {}: {}", format_bytes(point.parts.sum()), shorten(point.node, 34)),
         fmt::format("font-weight=\"bold\" text-anchor=\"{}\"", left ? "end" : "start"));
  }

  /// The end of a name says most: "…mlp.up_proj.weight".
  static std::string shorten(const std::string& name, size_t width) {
    return name.size() <= width ? name : "…" + name.substr(name.size() - width + 1);
  }

  void legend() {
    const MemoryPoint& point = t_.points[t_.peak_point];
    double y = kMemoryTop + 4;
    constexpr double kLine = 18;
    text(kMemoryListLeft, y, "At the peak", "font-weight=\"bold\"");
    for (size_t p = kMemoryParts.size(); p-- > 0;) {  // as they are stacked
      const int64_t bytes = point.parts.*kMemoryParts[p].bytes;
      if (!drawn_[p]) continue;
      y += kLine;
      svg_.add(
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" height=\"11\" fill=\"{}\"/>\n",
                      kMemoryListLeft, y - 10, kMemoryColors[p]));
      text(kMemoryListLeft + 18, y, std::string(kMemoryParts[p].name));
      text(kMemoryWidth - 12, y, format_bytes(bytes), "text-anchor=\"end\"");
    }
    y += 2 * kLine;
    text(kMemoryListLeft, y, "Largest contents", "font-weight=\"bold\"");
    constexpr size_t kHolders = 12;
    for (size_t i = 0; i < t_.holders.size() && i < kHolders; ++i) {
      const MemoryHolder& h = t_.holders[i];
      y += kLine;
      const std::string name = shorten(h.name, h.count > 1 ? 21 : 26);
      text(kMemoryListLeft, y, h.count > 1 ? fmt::format("{} × {}", h.count, name) : name,
           "font-size=\"11\"");
      text(kMemoryWidth - 12, y, format_bytes(h.bytes), "text-anchor=\"end\" font-size=\"11\"");
    }
  }

  const MemoryTimeline& t_;
  double top_bytes_ = 1;
  std::array<bool, kMemoryParts.size()> drawn_{};  // the legend explains their colors
  SvgPicture svg_{kMemoryWidth, kMemoryHeight};
};

}  // namespace

std::string memory_svg(const MemoryTimeline& t) {
  if (t.points.empty()) return "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n";
  return Picture(t).draw();
}

}  // namespace tilecast
