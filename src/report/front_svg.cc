// The picture of `plan -o front.svg`: tokens/s for each GPU against tokens/s of a user.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/serving_plan_text.h"
#include "report/svg.h"
#include "request/access.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

constexpr double kFrontWidth = 900, kFrontHeight = 560;  // pixels
constexpr double kFrontLeft = 80, kFrontTop = 56, kFrontRight = 660,
                 kFrontBottom = 480;    // of the plot
constexpr double kFrontListLeft = 680;  // legend

class FrontPicture {
 public:
  explicit FrontPicture(const ServingPlan& plan) : plan_(plan) {
    for (const ServingCandidate& c : plan.candidates) {
      if (!c.simulated) continue;
      most_user_ = std::max(most_user_, c.user_tokens_per_s);
      most_gpu_ = std::max(most_gpu_, c.gpu_tokens_per_s);
    }
    constexpr double kRoom = 1.08;
    most_user_ = most_user_ > 0 ? most_user_ * kRoom : 1;
    most_gpu_ = most_gpu_ > 0 ? most_gpu_ * kRoom : 1;
  }

  std::string draw() {
    svg_.text(kFrontLeft, 24,
              fmt::format("{}: {}, prompt {}, output {}", plan_.model, load_text(plan_),
                          plan_.prompt, plan_.output),
              "font-size=\"15\" font-weight=\"bold\"");
    axes();
    limit();
    points();
    for (size_t h = 0; h < plan_.gpu_ids.size(); ++h) front_of(h);
    winner();
    legend();
    return svg_.done();
  }

 private:
  double x_of(double user) const {
    return kFrontLeft + (kFrontRight - kFrontLeft) * user / most_user_;
  }
  double y_of(double gpu) const {
    return kFrontBottom - (kFrontBottom - kFrontTop) * gpu / most_gpu_;
  }
  static std::string color(size_t h) { return std::string(kPalette[h % kPalette.size()]); }

  void axes() {
    constexpr double kLines = 8;
    const double step = round_step(most_gpu_, kLines), across = round_step(most_user_, kLines);
    for (double value = 0; value <= most_gpu_; value += step) {
      svg_.line(kFrontLeft, y_of(value), kFrontRight, y_of(value), "stroke=\"#ddd\"");
      svg_.text(kFrontLeft - 8, y_of(value) + 4, fmt::format("{:g}", value), "text-anchor=\"end\"");
    }
    for (double value = 0; value <= most_user_; value += across) {
      svg_.line(x_of(value), kFrontTop, x_of(value), kFrontBottom, "stroke=\"#eee\"");
      svg_.text(x_of(value), kFrontBottom + 18, fmt::format("{:g}", value),
                "text-anchor=\"middle\"");
    }
    svg_.line(kFrontLeft, kFrontBottom, kFrontRight, kFrontBottom, "stroke=\"#444\"");
    svg_.line(kFrontLeft, kFrontTop, kFrontLeft, kFrontBottom, "stroke=\"#444\"");
    svg_.text((kFrontLeft + kFrontRight) / 2, kFrontBottom + 40,
              "tokens/s of a user (1 / mean TPOT)", "text-anchor=\"middle\"");
    svg_.text(kFrontLeft - 60, kFrontTop - 12, "tokens/s for each GPU");
  }

  /// A user's speed at the limit on TPOT.
  void limit() {
    if (!plan_.tpot_s || 1 / *plan_.tpot_s > most_user_) return;
    const double x = x_of(1 / *plan_.tpot_s);
    svg_.line(x, kFrontTop, x, kFrontBottom,
              "stroke=\"#c00\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"");
    svg_.text(x + 5, kFrontTop + 12, "TPOT " + format_seconds(*plan_.tpot_s), "fill=\"#c00\"");
  }

  void circle(const ServingCandidate& c, double radius, const std::string& style) {
    svg_.add(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" {}/>\n",
                         x_of(c.user_tokens_per_s), y_of(c.gpu_tokens_per_s), radius, style));
  }

  void points() {
    for (const ServingCandidate& c : plan_.candidates) {
      if (!c.simulated) continue;
      circle(c, 2.2,
             fmt::format("fill=\"{}\" fill-opacity=\"{}\"", color(c.hardware),
                         c.meets ? "0.55" : "0.2"));
    }
  }

  /// Points of one kind of GPU: of the candidates that keep the limits, if any does.
  void front_of(size_t h) {
    const bool any =
        std::any_of(plan_.candidates.begin(), plan_.candidates.end(),
                    [&](const ServingCandidate& c) { return c.meets && c.hardware == h; });
    std::vector<const ServingCandidate*> own;
    for (const ServingCandidate& c : plan_.candidates) {
      if ((any ? c.meets : c.simulated) && c.hardware == h) own.push_back(&c);
    }
    std::stable_sort(own.begin(), own.end(), [](const auto* a, const auto* b) {
      return a->user_tokens_per_s > b->user_tokens_per_s;
    });
    double most = 0;
    std::string line;
    for (const ServingCandidate* c : own) {
      if (c->gpu_tokens_per_s <= most) continue;
      most = c->gpu_tokens_per_s;
      line += fmt::format("{:.1f},{:.1f} ", x_of(c->user_tokens_per_s), y_of(most));
    }
    svg_.add(
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                    line, color(h)));
  }

  void winner() {
    if (plan_.meeting == 0) return;
    const ServingCandidate& c = plan_.candidates.front();
    circle(c, 6, "fill=\"none\" stroke=\"black\" stroke-width=\"1.5\"");
    const double x = x_of(c.user_tokens_per_s), y = y_of(c.gpu_tokens_per_s);
    const bool left = x > (kFrontLeft + kFrontRight) / 2;
    svg_.text(left ? x - 10 : x + 10, y - 8,
              plan_.sized() ? fmt::format("best: tp {}, {} GPUs", c.tp, c.gpus())
                            : fmt::format("best: tp {}, {} clients", c.tp, c.concurrency),
              fmt::format("font-weight=\"bold\" text-anchor=\"{}\"", left ? "end" : "start"));
  }

  void legend() {
    constexpr double kLine = 20;
    double y = kFrontTop + 6;
    for (size_t h = 0; h < plan_.gpu_ids.size(); ++h, y += kLine) {
      svg_.line(kFrontListLeft, y - 4, kFrontListLeft + 22, y - 4,
                fmt::format("stroke=\"{}\" stroke-width=\"2\"", color(h)));
      svg_.text(kFrontListLeft + 28, y, plan_.gpu_ids[h]);
    }
    svg_.text(kFrontListLeft, y + 8, "lines: Pareto fronts", "fill=\"#444\"");
    svg_.text(kFrontListLeft, y + 26, "pale dots miss a limit", "fill=\"#444\"");
  }

  const ServingPlan& plan_;
  double most_user_ = 0, most_gpu_ = 0;
  SvgPicture svg_{kFrontWidth, kFrontHeight};
};

}  // namespace

std::string plan_svg(const ServingPlan& plan) { return FrontPicture(plan).draw(); }

}  // namespace tilecast
