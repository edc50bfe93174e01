#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

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

std::optional<int64_t> find_positive(const std::string& text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 1 || value > kLargest)
    return std::nullopt;
  return value;
}

int64_t positive(const std::string& option, const std::string& text) {
  if (const std::optional<int64_t> value = find_positive(text)) return *value;
  throw Error(ErrorKind::kInput,
              fmt::format("--{}: expected a whole number from 1 to {}, found '{}'", option,
                          kLargest, shown_name(text)));
}

int64_t at_most(int64_t value, const std::string& option, int64_t most) {
  if (value > most)
    throw Error(ErrorKind::kInput,
                fmt::format("--{}: expected at most {}, found {}", option, most, value));
  return value;
}

/// "800" or "800:1000"; one number is a range of itself.
std::pair<int64_t, int64_t> range(const std::string& option, const std::string& text) {
  const size_t colon = text.find(':');
  const std::optional<int64_t> low = find_positive(text.substr(0, colon));
  const std::optional<int64_t> high =
      colon == std::string::npos ? low : find_positive(text.substr(colon + 1));
  if (low && high && *low <= *high) return {*low, *high};
  throw Error(ErrorKind::kInput,
              fmt::format("--{}: expected a whole number from 1 to {}, or a range LOW:HIGH of two, "
                          "found '{}'",
                          option, kLargest, shown_name(text)));
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
      {"prompt", "N|LOW:HIGH", "",
       "tokens of each prompt: forecasts a language model token by token; a range for servers",
       [](O& o, S t) {
         std::tie(o.prompt, o.prompt_most) = range("prompt", t);
         o.lengths_given = true;
       }},
      {"output", "N|LOW:HIGH", "256", "tokens that each sequence writes; a range for servers",
       [](O& o, S t) {
         std::tie(o.output, o.output_most) = range("output", t);
         o.lengths_given = true;
       }},
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
      {"rate", "R", "", "load of a server: requests a second, at random (Poisson)",
       [](O& o, S t) { o.rate = number("rate", t, 1e-6, 1e6); }},
      {"concurrency", "C", "",
       "load of a server: clients that send a request each, and the next when it is answered",
       [](O& o, S t) { o.concurrency = positive("concurrency", t); }},
      {"trace", "FILE.csv", "",
       "load of a server: requests of a file with the columns arrival_s, prompt, output",
       [](O& o, S t) { o.trace = read_trace(t); }},
      {"requests", "N", "",
       "requests to simulate; default: 1000 at a rate, 6 for each client, all of a trace",
       [](O& o, S t) {
         o.requests = at_most(positive("requests", t), "requests", kMostServedRequests);
       }},
      {"max-num-seqs", "N", "",
       fmt::format("sequences that a server runs at once [{}]", kDefaultMaxNumSeqs),
       [](O& o, S t) { o.max_num_seqs = positive("max-num-seqs", t); }},
      {"max-num-batched-tokens", "N", "8192",
       "tokens of one step at most; SGLang: of the prompts in a step (chunked_prefill_size)",
       [](O& o, S t) { o.max_num_batched_tokens = positive("max-num-batched-tokens", t); }},
      {"gpu-memory-utilization", "X", "0.9", "share of the GPU's memory that may be used",
       [](O& o, S t) { o.gpu_memory_utilization = number("gpu-memory-utilization", t, 0.01, 1); }},
      {"prefix-hit-rate", "X", "0", "share of each prompt that a server has in its cache already",
       [](O& o, S t) { o.prefix_hit_rate = number("prefix-hit-rate", t, 0, 1); }},
      {"server-overhead-s", "S", "0", "HTTP and tokenizer, before a request is scheduled",
       [](O& o, S t) { o.server_overhead_s = number("server-overhead-s", t, 0, 1e3); }},
      {"ttft-s", "S", "", "time to first token that goodput allows",
       [](O& o, S t) { o.ttft_s = number("ttft-s", t, 0, 1e6); }},
      {"tpot-s", "S", "", "time per output token that goodput allows",
       [](O& o, S t) { o.tpot_s = number("tpot-s", t, 0, 1e6); }},
      {"cuda-graphs", "on|off", "on", "off: the host launches each kernel of a decode step",
       [](O& o, S t) { o.cuda_graphs = one_of("cuda-graphs", t, {"on", "off"}) == "on"; }},
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
