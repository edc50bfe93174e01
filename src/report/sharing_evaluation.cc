// Tables and the picture of measured jobs that share a GPU.
//
//   Relative speeds in gavel.csv.xz, series motivation
//
//     gpu                    how         rows  mean %  median %  p90 %   bias  in interval %
//     nvidia-k80             time-slice   288     7.6       6.2   15.5  1.001           79.2

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "report/svg.h"
#include "report/text_table.h"
#include "tilecast/learn.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string percent_of(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}", *value) : "-";
}

bool has_slices(const SharingEvaluation& e) {
  return std::any_of(e.errors.begin(), e.errors.end(),
                     [](const SharingErrors& x) { return x.how == "mig"; });
}

bool has_fits(const SharingEvaluation& e) {
  return std::any_of(e.errors.begin(), e.errors.end(),
                     [](const SharingErrors& x) { return x.left_out_pair_mape_percent; });
}

std::string how_or_slice(const SharingErrors& x) {
  if (x.how != "mig") return x.how;
  return x.slice.empty() ? "all slices" : x.slice;
}

TextTable error_rows(const SharingEvaluation& e) {
  TextTable table{.header = {"gpu", has_slices(e) ? "slice" : "how", "rows", "mean %", "median %",
                             "p90 %", "bias", "in interval %"},
                  .right = {false, false, true, true, true, true, true, true},
                  .fit = {Fit::kFront}};
  for (const SharingErrors& x : e.errors)
    table.rows.push_back({x.gpu, how_or_slice(x), format_integer(x.count),
                          percent_of(x.mape_percent), percent_of(x.median_percent),
                          percent_of(x.p90_percent), fmt::format("{:.3f}", x.bias_ratio),
                          percent_of(x.coverage_percent)});
  return table;
}

/// The same rows by rules that know no job.
TextTable rule_rows(const SharingEvaluation& e) {
  const bool slices = has_slices(e);
  TextTable table{.header = {"gpu", slices ? "slice" : "how", "forecast %",
                             slices ? "median %" : "half %", "alone %"},
                  .right = {false, false, true, true, true},
                  .fit = {Fit::kFront}};
  for (const SharingErrors& x : e.errors)
    table.rows.push_back({x.gpu, how_or_slice(x), percent_of(x.mape_percent),
                          percent_of(slices ? x.median_mape_percent : x.half_mape_percent),
                          percent_of(x.alone_mape_percent)});
  return table;
}

TextTable fit_rows(const SharingEvaluation& e) {
  TextTable table{.header = {"gpu", "how", "law %", "pair out %", "covered %", "job out %"},
                  .right = {false, false, true, true, true, true},
                  .fit = {Fit::kFront}};
  for (const SharingErrors& x : e.errors)
    table.rows.push_back(
        {x.gpu, x.how, percent_of(x.mape_percent), percent_of(x.left_out_pair_mape_percent),
         percent_of(x.left_out_pair_coverage_percent), percent_of(x.left_out_job_mape_percent)});
  return table;
}

TextTable memory_rows(const SharingEvaluation& e) {
  TextTable table{.header = {"gpu", "did not run", "called", "ran", "false alarms"},
                  .right = {false, true, true, true, true},
                  .fit = {Fit::kFront}};
  for (const SharingErrors& x : e.errors)
    table.rows.push_back({x.gpu, format_integer(x.did_not_run.value_or(0)),
                          format_integer(x.called.value_or(0)), format_integer(x.count),
                          format_integer(x.false_alarms.value_or(0))});
  return table;
}

std::string part(const std::string& title, const TextTable& table, const TableStyle& style) {
  return title_lines(title, style) + "\n" + format_text_table(table, style, 2) + "\n";
}

// The picture: a panel for each GPU.

constexpr double kPanelWidth = 300, kPanelGap = 56;  // pixels
constexpr double kPanelTop = 64, kPanelLeft = 56, kPanelBelow = 56;
constexpr double kKeyLine = 18;

std::string_view model_color(size_t model) {
  constexpr std::string_view kOneMore = "#999933";
  const size_t index = model % (kPalette.size() + 1);
  return index < kPalette.size() ? kPalette[index] : kOneMore;
}

class SharingPicture {
 public:
  explicit SharingPicture(const SharingEvaluation& evaluation) : evaluation_(evaluation) {
    for (const SharingPoint& p : evaluation.points) {
      panels_[p.gpu].push_back(&p);
      models_.try_emplace(without_number(p.job), 0);
    }
    size_t next = 0;
    for (auto& entry : models_) entry.second = next++;
  }

  std::string draw() {
    const double width =
        kPanelLeft + static_cast<double>(panels_.size()) * (kPanelWidth + kPanelGap) + 120;
    SvgPicture svg(std::max(width, 480.0), kPanelTop + kPanelWidth + kPanelBelow);
    svg.text(kPanelLeft, 24,
             "Relative speed of jobs that share a GPU" +
                 (evaluation_.series.empty() ? "" : ", series " + evaluation_.series),
             "font-size=\"15\" font-weight=\"bold\"");
    double left = kPanelLeft;
    for (const auto& [gpu, points] : panels_) {
      panel(svg, left, gpu, points);
      left += kPanelWidth + kPanelGap;
    }
    key(svg, left - kPanelGap + 16);
    return svg.done();
  }

 private:
  void panel(SvgPicture& svg, double left, const std::string& gpu,
             const std::vector<const SharingPoint*>& points) const {
    const auto x_of = [&](double r) { return left + kPanelWidth * std::min(r, 1.0); };
    const auto y_of = [&](double r) { return kPanelTop + kPanelWidth * (1 - std::min(r, 1.0)); };
    for (int tick = 0; tick <= 5; ++tick) {
      const double r = 0.2 * tick;
      svg.line(left, y_of(r), left + kPanelWidth, y_of(r), "stroke=\"#ddd\"");
      svg.line(x_of(r), kPanelTop, x_of(r), kPanelTop + kPanelWidth, "stroke=\"#eee\"");
      svg.text(x_of(r), kPanelTop + kPanelWidth + 18, fmt::format("{:g}", r),
               "text-anchor=\"middle\"");
      svg.text(left - 6, y_of(r) + 4, fmt::format("{:g}", r), "text-anchor=\"end\"");
    }
    svg.line(x_of(0), y_of(0), x_of(1), y_of(1), "stroke=\"#444\"");
    for (const SharingPoint* p : points)
      svg.add(fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.4\" fill=\"{}\" fill-opacity=\"0.7\"/>\n",
          x_of(p->measured), y_of(p->forecast.value),
          model_color(models_.at(without_number(p->job)))));
    svg.text(left, kPanelTop - 10, title_of(gpu));
    svg.text(left + kPanelWidth / 2, kPanelTop + kPanelWidth + 40, "measured",
             "text-anchor=\"middle\"");
    if (left == kPanelLeft)
      svg.add(fmt::format(
          "<text transform=\"translate({:.1f},{:.1f}) rotate(-90)\" text-anchor=\"middle\">"
          "forecast</text>\n",
          left - 36, kPanelTop + kPanelWidth / 2));
  }

  std::string title_of(const std::string& gpu) const {
    for (const SharingErrors& x : evaluation_.errors) {
      if (x.gpu == gpu && x.slice.empty())
        return fmt::format("{}, {}: mean error {:.1f} %", gpu, x.how, x.mape_percent);
    }
    return gpu;
  }

  void key(SvgPicture& svg, double left) const {
    double y = kPanelTop + 8;
    for (const auto& [model, index] : models_) {
      svg.add(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", left,
                          y - 4, model_color(index)));
      svg.text(left + 10, y, model);
      y += kKeyLine;
    }
  }

  const SharingEvaluation& evaluation_;
  std::map<std::string, std::vector<const SharingPoint*>> panels_;
  std::map<std::string, size_t> models_;
};

}  // namespace

std::string sharing_evaluation_table(const SharingEvaluation& e, const TableStyle& style) {
  const bool slices = has_slices(e);
  std::string out = part(fmt::format("Relative speeds in {}{}{}", e.file,
                                     e.series.empty() ? "" : ", series " + e.series,
                                     slices ? ", over those on the largest slice" : ""),
                         error_rows(e), style);
  out += part(slices ? "Beside rules: the median of each slice; as fast as on the largest"
                     : "Beside rules: each job gets half; no job is slowed",
              rule_rows(e), style);
  if (has_fits(e))
    out += part("With measured pairs fitted (calibrate --pairs), those that are left out",
                fit_rows(e), style) +
           wrapped(
               "pair out: a pair, with all others fitted (covered: share inside its 80 % "
               "interval); job out: the pairs of a job but three, with these and all others fitted",
               style) +
           "\n";
  if (!slices)
    out += part("Rows of pairs that did not run: the memory forecast is tight or does not fit",
                memory_rows(e), style);
  return out + unmatched_lines(e.unmatched, style);
}

std::string sharing_evaluation_svg(const SharingEvaluation& evaluation) {
  return SharingPicture(evaluation).draw();
}

std::string pair_calibration_table(const PairCalibration& result, const TableStyle& style) {
  TextTable table{.header = {"job", "pairs", "slowed, x", "slows, x"},
                  .right = {false, true, true, true},
                  .fit = {Fit::kEnd}};
  for (const PairEffectRow& row : result.jobs)
    table.rows.push_back({row.job, format_integer(row.pairs),
                          fmt::format("{:.2f}", row.slowed_ratio),
                          fmt::format("{:.2f}", row.slows_ratio)});
  const std::string after =
      result.after_percent
          ? fmt::format("; of pairs that are left out {:.1f} %", *result.after_percent)
          : std::string();
  return title_lines(fmt::format("Measured pairs on {}, {}", result.gpu, result.how), style) +
         "\n" +
         wrapped(fmt::format("{} pairs; mean error of relative speeds by the law {:.1f} %{}",
                             format_integer(result.pairs), result.before_percent, after),
                 style) +
         "\n" + format_text_table(table, style, 2);
}

}  // namespace tilecast
