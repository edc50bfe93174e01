#include <fmt/format.h>

#include <algorithm>

#include "api/option_values.h"
#include "api/precision.h"
#include "base/text.h"
#include "graph/scheme.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/llm.h"

namespace tilecast {

template <typename Options>
void set_option(Options& options, const OptionDef<Options>& option, const std::string& text) {
  const std::vector<std::string>& choices = option.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end())
    throw Error(ErrorKind::kInput,
                fmt::format("--{}: unknown value '{}'{}; known: {}", option.name, shown_name(text),
                            did_you_mean(text, choices), join(choices, ", ")));
  option.set(options, text);
}
template void set_option(ForecastOptions&, const OptionDef<ForecastOptions>&, const std::string&);
template void set_option(LlmOptions&, const OptionDef<LlmOptions>&, const std::string&);

const std::vector<OptionDef<ForecastOptions>>& forecast_options() {
  using O = ForecastOptions;
  using S = const std::string&;
  static const std::vector<OptionDef<ForecastOptions>> options = {
      {"mode",
       "",
       "inference",
       "inference: one forward pass; training: forward and backward",
       [](O& o, S t) { o.mode = t == "training" ? Mode::kTraining : Mode::kInference; },
       {"inference", "training"}},
      {"batch", "N", "1", "sequences, of all ranks together",
       [](O& o, S t) { o.batch = positive_value("batch", t); }},
      {"seq", "N", "", "tokens a sequence; default: the length the model was made for",
       [](O& o, S t) { o.seq = positive_value("seq", t); }},
      {"dtype", "DTYPE", "",
       "type of weights and activations; default: as the checkpoint says, else fp32; amp, "
       "amp-fp16: "
       "fp32 weights, matrix products, convolutions and attention in bf16 or fp16 "
       "(torch.autocast); " +
           join(scheme_names(), ", ") + ": linear layers in few bits, for inference",
       [](O& o, S t) { o.dtype = t; }, precision_names(true)},
      {"attention",
       "",
       "eager",
       "how attention runs: eager launches each step, flash is one fused kernel",
       [](O& o, S t) { o.attention = t; },
       {"eager", "flash"}},
      {"fusion",
       "",
       "none",
       "pointwise: chains of pointwise operators are one kernel",
       [](O& o, S t) { o.fusion = t; },
       {"none", "pointwise"}},
      {"optimizer",
       "",
       "none",
       "adds the optimizer's step to training",
       [](O& o, S t) { o.optimizer = t; },
       {"none", "sgd", "adam", "adamw"},
       {},
       "mode=training"},
      {"predictor",
       "",
       "learned",
       "roofline is the baseline: data sheet only",
       [](O& o, S t) { o.predictor = t; },
       {"learned", "roofline"}},
      {"software",
       "",
       "pytorch",
       "whose kernels run the operators",
       [](O& o, S t) { o.software = t; },
       {"pytorch", "vllm", "sglang", "trtllm"}},
      {"host-launch-us", "US", "5",
       "what the host takes to launch a kernel; 0: nothing, as with CUDA graphs",
       [](O& o, S t) { o.host_launch_s = microseconds_value("host-launch-us", t); }},
      {"dp", "N", "1", "data-parallel ranks (only 1 so far)",
       [](O& o, S t) { o.dp = positive_value("dp", t); }},
      {"tp", "N", "1", "tensor-parallel ranks (only 1 so far)",
       [](O& o, S t) { o.tp = positive_value("tp", t); }},
      {"pp", "N", "1", "pipeline stages (only 1 so far)",
       [](O& o, S t) { o.pp = positive_value("pp", t); }},
      {"microbatches", "N", "1", "micro-batches of a pipeline (only 1 so far)",
       [](O& o, S t) { o.microbatches = positive_value("microbatches", t); }},
  };
  return options;
}

}  // namespace tilecast
