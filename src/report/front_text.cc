// The front of a plan of serving, as a picture of characters.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/price_text.h"
#include "report/serving_plan_text.h"

namespace tilecast {
namespace {

constexpr size_t kPlotIndent = 2, kPlotHeight = 10, kPlotMostWidth = 78, kPlotLeastWidth = 40;
constexpr char kOther = '.', kOnFront = 'o', kBest = '#';

class CharacterPlot {
 public:
  CharacterPlot(size_t width, double most_x, double most_y)
      : lines_(kPlotHeight, std::string(width, ' ')), most_x_(most_x), most_y_(most_y) {}

  /// Points outside of the picture are left out.
  void mark(double x, double y, char as) {
    if (x > most_x_ || y > most_y_) return;
    const auto cell = [](double value, double most, size_t cells) {
      return static_cast<size_t>(std::lround(value / most * static_cast<double>(cells - 1)));
    };
    const size_t row = kPlotHeight - 1 - cell(y, most_y_, kPlotHeight);
    lines_[row][cell(x, most_x_, lines_[row].size())] = as;
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
  double most_x_, most_y_;
};

/// What the front has on its vertical axis.
double height_of(const ServingPlan& plan, const ServingCandidate& c) {
  return !plan.sized()            ? c.gpu_tokens_per_s
         : plan.ranks_by_energy() ? c.energy_per_token_j.value_or(0)
         : plan.ranks_by_cost()   ? plan.price_per_hour(c)
                                  : static_cast<double>(c.gpus());
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void add_front_picture(std::string& out, const ServingPlan& plan, const TableStyle& style) {
  double most_user = 0, most = 0;
  for (const size_t i : plan.front) {
    most_user = std::max(most_user, plan.candidates[i].user_tokens_per_s);
    most = std::max(most, height_of(plan, plan.candidates[i]));
  }
  if (plan.front.size() < 2 || most_user <= 0 || most <= 0) return;
  const std::string name = !plan.sized()            ? "GPU/s"
                           : plan.ranks_by_energy() ? "J/tok"
                           : plan.ranks_by_cost()   ? currency_sign(plan.prices) + "/h"
                                                    : "GPUs";
  const std::string top = format_count(most), right = format_count(most_user);
  const size_t label = std::max(top.size(), name.size()), frame = kPlotIndent + label + 2;
  const size_t width = std::min(static_cast<size_t>(style.width), kPlotMostWidth);
  if (width < frame + kPlotLeastWidth) return;
  CharacterPlot plot(width - frame, most_user, most);
  for (const ServingCandidate& c : plan.candidates) {
    if (plan.meeting > 0 ? c.meets : c.simulated)
      plot.mark(c.user_tokens_per_s, height_of(plan, c), kOther);
  }
  const auto mark = [&](size_t i, char as) {
    plot.mark(plan.candidates[i].user_tokens_per_s, height_of(plan, plan.candidates[i]), as);
  };
  for (const size_t i : plan.front) mark(i, kOnFront);
  mark(0, kBest);
  const auto line = [&](const std::string& left, const std::string& rest) {
    out += trimmed(fmt::format("{:{}}{:>{}} {}", "", kPlotIndent, left, label, rest)) + "\n";
  };
  out += "\n";
  line(name, "");
  for (size_t row = 0; row < kPlotHeight; ++row) line(row == 0 ? top : "", "|" + plot.lines()[row]);
  line("0", "+" + std::string(width - frame, '-'));
  line("", fmt::format(" 0{:>{}}", "user/s  " + right, width - frame - 1));
  out += wrapped(fmt::format("{}: the {}; {}: the front; {}: others{}", kBest,
                             plan.meeting > 0 ? "best" : "nearest", kOnFront, kOther,
                             plan.limited() && plan.meeting > 0 ? " within the limits" : ""),
                 style);
}

}  // namespace tilecast
