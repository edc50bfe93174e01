#include "scenario/generation/served_layout.h"

#include "request/access.h"
#include "scenario/generation/offered_load.h"

namespace tilecast {
namespace {

const Request& checked(const Request& request) {
  check_request(request);
  return request;
}

}  // namespace

ServedLayout::ServedLayout(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                           const Request& request, KnownServer& known)
    : model_(model),
      gpu_(gpu),
      whole_(with_image_tokens(checked(request), model.content->model)),
      typical_(typical_request(whole_)),
      served_(forecaster, model_, gpu_, typical_),
      workers_(request.deployment.prefill.workers > 0 ? std::make_unique<PrefillWorkers>(served_)
                                                      : nullptr),
      server_(served_, {.prefill = workers_.get()}, known) {}

GenerationForecast ServedLayout::under(int64_t concurrency,
                                       const std::optional<TimeLimits>& stop_beyond) const {
  Request asked = whole_;
  asked.load.concurrency = concurrency;
  GenerationForecast forecast{.continuous = true};
  server_.add_serving(forecast, asked, Advice::kNone, stop_beyond);
  return forecast;
}

}  // namespace tilecast
