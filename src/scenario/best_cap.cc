#include "scenario/best_cap.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "predict/power.h"
#include "scenario/internal.h"
#include "scenario/power.h"
#include "scenario/scenario.h"
#include "tilecast/error.h"

namespace tilecast {
Result at_best_cap(const Inquiry& inquiry) {
  constexpr int kSteps = 20;
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::kUnsupported, fmt::format("`power-cap-w` best: {}", what));
  };
  if (inquiry.accelerator() != nullptr) refuse("the power of accelerators has no cap");
  const Device& device = inquiry.gpu().content->device;
  const Predictor& predictor =
      inquiry.forecaster.impl().predictor(inquiry.request.execution.predictor);
  const std::optional<BoardPower> board = board_power(device, predictor.laws().power);
  if (!board) refuse(fmt::format("the power of {} is not forecast", device.id));
  Request request = inquiry.request;
  request.energy.best_power_cap = false;
  std::optional<Result> best;
  double least_j = 0;
  for (int step = kSteps; step > 0; --step) {
    const double cap_w = std::round(board->limit_w() * step / kSteps);
    if (cap_w <= board->least_limit_w() || cap_w > board->limit_w()) continue;
    request.energy.power_cap_w = cap_w;
    Result result = answer(inquiry.with(request));
    const std::optional<PowerForecast> power = power_in(result);
    if (!power) refuse("the power of this forecast is not stated");
    const double joules = power->energy_per_token_j.value_or(power->energy_j.value);
    if (best && joules >= least_j) continue;
    least_j = joules;
    best = std::move(result);
  }
  if (!best) refuse(fmt::format("{} has no cap that leaves work", device.id));
  return *std::move(best);
}

}  // namespace tilecast
