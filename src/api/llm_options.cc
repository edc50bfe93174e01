#include <fmt/format.h>

#include <tuple>

#include "api/option_values.h"
#include "api/precision.h"
#include "tilecast/llm.h"

namespace tilecast {

const std::vector<OptionDef<LlmOptions>>& llm_options() {
  using O = LlmOptions;
  using S = const std::string&;
  const std::string server = "schedule=continuous";
  static const std::vector<OptionDef<LlmOptions>> options = {
      {"prompt", "N|LOW:HIGH", "",
       "tokens of each prompt: forecasts a language model token by token; a range for servers",
       [](O& o, S t) {
         std::tie(o.prompt, o.prompt_most) = range_value("prompt", t);
         o.lengths_given = true;
       }},
      {"output", "N|LOW:HIGH", "256", "tokens that each sequence writes; a range for servers",
       [](O& o, S t) {
         std::tie(o.output, o.output_most) = range_value("output", t);
         o.lengths_given = true;
       }},
      {"batch", "N", "1", "sequences at a time",
       [](O& o, S t) { o.batch = positive_value("batch", t); }},
      {"dtype", "DTYPE", "", "of weights; default: as the checkpoint says, else bf16",
       [](O& o, S t) { o.dtype = t; }, precision_names(false)},
      {.name = "kv-dtype",
       .help = "of the cache; default: as the checkpoint says, else as the activations",
       .set = [](O& o, S t) { o.kv_dtype = t; },
       .choices = {"bf16", "fp16", "fp32", "fp8", "int8"}},
      {"tp", "N", "1", "GPUs that share each layer",
       [](O& o, S t) { o.tp = positive_value("tp", t); }},
      {.name = "software",
       .initial = "vllm",
       .help = "whose kernels run the operators",
       .set = [](O& o, S t) { o.software = t; },
       .choices = {"vllm", "sglang", "trtllm", "pytorch"}},
      {.name = "schedule",
       .initial = "static",
       .help = "static: one batch from prompt to last token; continuous: a server under load",
       .set = [](O& o, S t) { o.continuous = t == "continuous"; },
       .choices = {"static", "continuous"}},
      {.name = "rate",
       .value = "R",
       .help = "load of a server: requests a second, at random (Poisson)",
       .set = [](O& o, S t) { o.rate = number_value("rate", t, 1e-6, 1e6); },
       .excludes = {"concurrency", "trace"},
       .needs = server},
      {.name = "concurrency",
       .value = "C",
       .help =
           "load of a server: clients that send a request each, and the next when it is answered",
       .set = [](O& o, S t) { o.concurrency = positive_value("concurrency", t); },
       .excludes = {"rate", "trace"},
       .needs = server},
      {.name = "trace",
       .value = "FILE.csv",
       .help = "load of a server: requests of a file with the columns arrival_s, prompt, output",
       .set = [](O& o, S t) { o.trace = read_trace(t); },
       .excludes = {"rate", "concurrency"},
       .needs = server},
      {.name = "requests",
       .value = "N",
       .help = "requests to simulate; default: 1000 at a rate, 6 for each client, all of a trace",
       .set = [](O& o, S t) { o.requests = positive_value("requests", t, kMostServedRequests); },
       .needs = server},
      {.name = "max-num-seqs",
       .value = "N",
       .help = fmt::format("sequences that a server runs at once [{}]", kDefaultMaxNumSeqs),
       .set = [](O& o, S t) { o.max_num_seqs = positive_value("max-num-seqs", t); },
       .needs = server},
      {.name = "max-num-batched-tokens",
       .value = "N",
       .initial = "8192",
       .help =
           "tokens of one step at most; SGLang: of the prompts in a step (chunked_prefill_size)",
       .set = [](O& o,
                 S t) { o.max_num_batched_tokens = positive_value("max-num-batched-tokens", t); },
       .old_names = {"chunk"}},
      {.name = "gpu-memory-utilization",
       .value = "X",
       .initial = "0.9",
       .help = "share of the GPU's memory that may be used",
       .set =
           [](O& o, S t) {
             o.gpu_memory_utilization = number_value("gpu-memory-utilization", t, 0.01, 1);
           },
       .old_names = {"memory-share"}},
      {.name = "prefix-hit-rate",
       .value = "X",
       .initial = "0",
       .help = "share of each prompt that a server has in its cache already",
       .set = [](O& o, S t) { o.prefix_hit_rate = number_value("prefix-hit-rate", t, 0, 1); },
       .needs = server},
      {.name = "server-overhead-s",
       .value = "S",
       .initial = "0",
       .help = "HTTP and tokenizer, before a request is scheduled",
       .set = [](O& o, S t) { o.server_overhead_s = number_value("server-overhead-s", t, 0, 1e3); },
       .needs = server},
      {.name = "ttft-s",
       .value = "S",
       .help = "time to first token that goodput allows",
       .set = [](O& o, S t) { o.ttft_s = number_value("ttft-s", t, 0, 1e6); },
       .needs = server},
      {.name = "tpot-s",
       .value = "S",
       .help = "time per output token that goodput allows",
       .set = [](O& o, S t) { o.tpot_s = number_value("tpot-s", t, 0, 1e6); },
       .needs = server},
      {.name = "cuda-graphs",
       .initial = "on",
       .help = "off: the host launches each kernel of a decode step",
       .set = [](O& o, S t) { o.cuda_graphs = t == "on"; },
       .choices = {"on", "off"}},
      {"skew", "N", "0", "100 times the exponent of the experts' popularity; 0: even",
       [](O& o, S t) { o.skew_percent = static_cast<int64_t>(number_value("skew", t, 0, 300)); }},
      {.name = "predictor",
       .initial = "learned",
       .help = "roofline is the baseline: data sheet only",
       .set = [](O& o, S t) { o.predictor = t; },
       .choices = {"learned", "roofline"}},
      {"host-launch-us", "US", "5", "what the host takes to launch a kernel",
       [](O& o, S t) { o.host_launch_s = microseconds_value("host-launch-us", t); }},
  };
  return options;
}

}  // namespace tilecast
