#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/precision.h"
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
                            kLargest, shown_name(text)));
  return value;
}

std::string one_of(const std::string& option, const std::string& text,
                   const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) == choices.end())
    throw Error(ErrorKind::kInput,
                fmt::format("--{}: unknown value '{}'{}; known: {}", option, shown_name(text),
                            did_you_mean(text, choices), join(choices, ", ")));
  return text;
}

double number(const std::string& option, const std::string& text, double least, double most) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most))
    throw Error(ErrorKind::kInput, fmt::format("--{}: expected a number from {} to {}, found '{}'",
                                               option, least, most, shown_name(text)));
  return value;
}

double microseconds(const std::string& option, const std::string& text) {
  constexpr double kLongest = 1e6;
  return number(option, text, 0, kLongest) * 1e-6;
}

}  // namespace

const std::vector<OptionDef<ForecastOptions>>& forecast_options() {
  using O = ForecastOptions;
  using S = const std::string&;
  static const std::vector<OptionDef<ForecastOptions>> options = {
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
      {"dtype", "fp32|tf32|bf16|fp16|amp|fp8|…", "",
       "type of weights and activations; default: as the checkpoint says, else fp32; amp, "
       "amp-fp16: "
       "fp32 weights, products in bf16 or fp16 (torch.autocast); " +
           join(scheme_names(), ", ") + ": linear layers in few bits, for inference",
       [](O& o, S t) { o.dtype = one_of("dtype", t, precision_names(true)); }},
      {"attention", "eager|flash", "eager",
       "how attention runs: eager launches each step, flash is one fused kernel",
       [](O& o, S t) { o.attention = one_of("attention", t, {"eager", "flash"}); }},
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

const std::vector<OptionDef<LlmOptions>>& llm_options() {
  using O = LlmOptions;
  using S = const std::string&;
  static const std::vector<OptionDef<LlmOptions>> options = {
      {"prompt", "N", "", "tokens of each prompt: forecasts a language model token by token",
       [](O& o, S t) { o.prompt = positive("prompt", t); }},
      {"output", "N", "256", "tokens that each sequence writes",
       [](O& o, S t) { o.output = positive("output", t); }},
      {"batch", "N", "1", "sequences at a time", [](O& o, S t) { o.batch = positive("batch", t); }},
      {"dtype", "bf16|fp16|fp32|fp8|…", "",
       "of weights; default: as the checkpoint says, else bf16",
       [](O& o, S t) { o.dtype = one_of("dtype", t, precision_names(false)); }},
      {"kv-dtype", "bf16|fp8|…", "",
       "of the cache; default: as the checkpoint says, else as the activations",
       [](O& o, S t) { o.kv_dtype = t; }},
      {"tp", "N", "1", "GPUs that share each layer", [](O& o, S t) { o.tp = positive("tp", t); }},
      {"software", "vllm|sglang|trtllm|pytorch", "vllm", "whose kernels run the operators",
       [](O& o, S t) {
         o.software = one_of("software", t, {"vllm", "sglang", "trtllm", "pytorch"});
       }},
      {"schedule", "static|continuous", "static",
       "static: one batch from prompt to last token; continuous: a server under load",
       [](O& o, S t) {
         o.continuous = one_of("schedule", t, {"static", "continuous"}) == "continuous";
       }},
      {"rate", "R", "", "requests a second that reach a continuous server",
       [](O& o, S t) { o.rate = number("rate", t, 1e-6, 1e6); }},
      {"concurrency", "C", "", "clients that ask a continuous server in turn; default: the batch",
       [](O& o, S t) { o.concurrency = positive("concurrency", t); }},
      {"chunk", "N", "8192", "tokens that one step prefills at most",
       [](O& o, S t) { o.chunk = positive("chunk", t); }},
      {"cuda-graphs", "on|off", "on", "off: the host launches each kernel of a decode step",
       [](O& o, S t) { o.cuda_graphs = one_of("cuda-graphs", t, {"on", "off"}) == "on"; }},
      {"memory-share", "X", "0.9", "of the GPU's memory that weights and cache may use",
       [](O& o, S t) { o.memory_share = number("memory-share", t, 0.01, 1); }},
      {"skew", "N", "0", "100 times the exponent of the experts' popularity; 0: even",
       [](O& o, S t) { o.skew_percent = static_cast<int64_t>(number("skew", t, 0, 300)); }},
      {"predictor", "learned|roofline", "learned", "roofline is the baseline: data sheet only",
       [](O& o, S t) { o.predictor = one_of("predictor", t, {"learned", "roofline"}); }},
      {"host-launch-us", "US", "5", "what the host takes to launch a kernel",
       [](O& o, S t) { o.host_launch_s = microseconds("host-launch-us", t); }},
  };
  return options;
}

}  // namespace tilecast
