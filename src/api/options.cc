#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "graph/scheme.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/llm.h"

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

std::vector<std::string> pass_dtypes() {
  std::vector<std::string> names = {"fp32", "tf32", "bf16", "fp16", "amp"};
  for (const std::string& scheme : scheme_names()) names.push_back(scheme);
  return names;
}

std::vector<std::string> serving_dtypes() {
  std::vector<std::string> names = {"bf16", "fp16", "fp32"};
  for (const std::string& scheme : scheme_names()) names.push_back(scheme);
  return names;
}

double number(const std::string& option, const std::string& text, double least, double most) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most))
    throw Error(ErrorKind::kInput, fmt::format("--{}: expected a number from {} to {}, found '{}'",
                                               option, least, most, text));
  return value;
}

double microseconds(const std::string& option, const std::string& text) {
  constexpr double kLongest = 1e6;
  return number(option, text, 0, kLongest) * 1e-6;
}

}  // namespace

template <typename Options>
void set_option(Options& options, const OptionDef<Options>& option, const std::string& text) {
  const std::vector<std::string>& choices = option.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end())
    throw Error(ErrorKind::kInput,
                fmt::format("--{}: unknown value '{}'{}; known: {}", option.name, text,
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
       [](O& o, S t) { o.batch = positive("batch", t); }},
      {"seq", "N", "", "tokens a sequence; default: the length the model was made for",
       [](O& o, S t) { o.seq = positive("seq", t); }},
      {"dtype", "DTYPE", "fp32",
       "type of weights and activations; amp: fp32 weights, products in bf16 (torch.autocast); "
       "fp8, fp8_block, int8, int8_wo, int4_wo, fp4_wo, fp4: linear layers in few bits, for "
       "inference",
       [](O& o, S t) { o.dtype = t; }, pass_dtypes()},
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

const std::vector<OptionDef<LlmOptions>>& llm_options() {
  using O = LlmOptions;
  using S = const std::string&;
  static const std::vector<OptionDef<LlmOptions>> options = {
      {"prompt", "N", "", "tokens of each prompt: forecasts a language model token by token",
       [](O& o, S t) { o.prompt = positive("prompt", t); }},
      {"output", "N", "256", "tokens that each sequence writes",
       [](O& o, S t) { o.output = positive("output", t); }},
      {"batch", "N", "1", "sequences at a time", [](O& o, S t) { o.batch = positive("batch", t); }},
      {"dtype", "DTYPE", "", "of weights; default: as the checkpoint, else bf16",
       [](O& o, S t) { o.dtype = t; }, serving_dtypes()},
      {"kv-dtype",
       "",
       "",
       "of the cache; default: as the activations",
       [](O& o, S t) { o.kv_dtype = t; },
       {"bf16", "fp16", "fp32", "fp8", "int8"}},
      {"tp", "N", "1", "GPUs that share each layer", [](O& o, S t) { o.tp = positive("tp", t); }},
      {"software",
       "",
       "vllm",
       "whose kernels run the operators",
       [](O& o, S t) { o.software = t; },
       {"vllm", "sglang", "trtllm", "pytorch"}},
      {"schedule",
       "",
       "static",
       "static: one batch from prompt to last token; continuous: a server under load",
       [](O& o, S t) { o.continuous = t == "continuous"; },
       {"static", "continuous"}},
      {"rate",
       "R",
       "",
       "requests a second that reach a continuous server",
       [](O& o, S t) { o.rate = number("rate", t, 1e-6, 1e6); },
       {},
       {"concurrency"},
       "schedule=continuous"},
      {"concurrency",
       "C",
       "",
       "clients that ask a continuous server in turn; default: the batch",
       [](O& o, S t) { o.concurrency = positive("concurrency", t); },
       {},
       {"rate"},
       "schedule=continuous"},
      {"chunk", "N", "8192", "tokens that one step prefills at most",
       [](O& o, S t) { o.chunk = positive("chunk", t); }},
      {"cuda-graphs",
       "",
       "on",
       "off: the host launches each kernel of a decode step",
       [](O& o, S t) { o.cuda_graphs = t == "on"; },
       {"on", "off"}},
      {"memory-share", "X", "0.9", "of the GPU's memory that weights and cache may use",
       [](O& o, S t) { o.memory_share = number("memory-share", t, 0.01, 1); }},
      {"skew", "N", "0", "100 times the exponent of the experts' popularity; 0: even",
       [](O& o, S t) { o.skew_percent = static_cast<int64_t>(number("skew", t, 0, 300)); }},
      {"predictor",
       "",
       "learned",
       "roofline is the baseline: data sheet only",
       [](O& o, S t) { o.predictor = t; },
       {"learned", "roofline"}},
      {"host-launch-us", "US", "5", "what the host takes to launch a kernel",
       [](O& o, S t) { o.host_launch_s = microseconds("host-launch-us", t); }},
  };
  return options;
}

}  // namespace tilecast
