#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

/// No batch or length beyond this is meant.
constexpr int64_t kLargest = int64_t{1} << 31;

int64_t positive(const std::string& option, const std::string& text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 1 || value > kLargest)
    throw Error(ErrorKind::kInput,
                fmt::format("--{}: expected a whole number from 1 to {}, found '{}'", option,
                            kLargest, text));
  return value;
}

std::string one_of(const std::string& option, const std::string& text,
                   const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) == choices.end())
    throw Error(ErrorKind::kInput,
                fmt::format("--{}: unknown value '{}'{}; known: {}", option, text,
                            did_you_mean(text, choices), join(choices, ", ")));
  return text;
}

double microseconds(const std::string& option, const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr double kLongest = 1e6;
  if (code != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= kLongest))
    throw Error(ErrorKind::kInput,
                fmt::format("--{}: expected microseconds from 0 to {:.0f}, found '{}'", option,
                            kLongest, text));
  return value * 1e-6;
}

}  // namespace

const std::vector<OptionDef>& forecast_options() {
  using O = ForecastOptions;
  using S = const std::string&;
  static const std::vector<OptionDef> options = {
      {"mode", "inference|training", "inference",
       "inference: one forward pass; training: forward and backward",
       [](O& o, S t) {
         o.mode = one_of("mode", t, {"inference", "training"}) == "training" ? Mode::kTraining
                                                                             : Mode::kInference;
       }},
      {"batch", "N", "1", "sequences, of all ranks together",
       [](O& o, S t) { o.batch = positive("batch", t); }},
      {"seq", "N", "", "tokens a sequence; default: the length the model was made for",
       [](O& o, S t) { o.seq = positive("seq", t); }},
      {"dtype", "fp32|tf32|bf16|fp16", "fp32", "type of weights and activations",
       [](O& o, S t) { o.dtype = one_of("dtype", t, {"fp32", "tf32", "bf16", "fp16"}); }},
      {"attention", "eager", "eager", "how attention runs: eager launches each step",
       [](O& o, S t) {
         if (t == "flash")
           throw Error(ErrorKind::kUnsupported,
                       "--attention flash: fused attention is not forecast yet; use eager");
         o.attention = one_of("attention", t, {"eager"});
       }},
      {"fusion", "none|pointwise", "none",
       "pointwise: chains of pointwise operators are one kernel",
       [](O& o, S t) { o.fusion = one_of("fusion", t, {"none", "pointwise"}); }},
      {"optimizer", "none|sgd|adam|adamw", "none", "adds the optimizer's step to training",
       [](O& o, S t) { o.optimizer = one_of("optimizer", t, {"none", "sgd", "adam", "adamw"}); }},
      {"predictor", "learned|roofline", "learned", "roofline is the baseline: data sheet only",
       [](O& o, S t) { o.predictor = one_of("predictor", t, {"learned", "roofline"}); }},
      {"software", "pytorch|vllm|sglang|trtllm", "pytorch", "whose kernels run the operators",
       [](O& o, S t) {
         o.software = one_of("software", t, {"pytorch", "vllm", "sglang", "trtllm"});
       }},
      {"host-launch-us", "US", "5",
       "what the host takes to launch a kernel; 0: nothing, as with CUDA graphs",
       [](O& o, S t) { o.host_launch_s = microseconds("host-launch-us", t); }},
      {"dp", "N", "1", "data-parallel ranks (only 1 so far)",
       [](O& o, S t) { o.dp = positive("dp", t); }},
      {"tp", "N", "1", "tensor-parallel ranks (only 1 so far)",
       [](O& o, S t) { o.tp = positive("tp", t); }},
      {"pp", "N", "1", "pipeline stages (only 1 so far)",
       [](O& o, S t) { o.pp = positive("pp", t); }},
      {"microbatches", "N", "1", "micro-batches of a pipeline (only 1 so far)",
       [](O& o, S t) { o.microbatches = positive("microbatches", t); }},
  };
  return options;
}

}  // namespace tilecast
