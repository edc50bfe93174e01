#include "scenario/generation/served_layout.h"

#include "request/access.h"
#include "scenario/generation/offered_load.h"
#include "scenario/generation/single_request.h"

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
      encoders_(request.deployment.encode.workers > 0 ? std::make_unique<EncodeWorkers>(served_)
                                                      : nullptr),
      server_(served_, others(), known) {}

GenerationForecast ServedLayout::under(int64_t concurrency,
                                       const std::optional<TimeLimits>& stop_beyond,
                                       const WatchSteps& watch) const {
  Request asked = whole_;
  asked.load.concurrency = concurrency;
  GenerationForecast forecast{.continuous = true};
  server_.add_serving(forecast, asked, Advice::kNone, stop_beyond, watch);
  return forecast;
}

std::optional<PowerForecast> ServedLayout::power(const GenerationForecast::Serving& serving) const {
  return power_under_load(served_, others(), whole_, serving);
}

}  // namespace tilecast
