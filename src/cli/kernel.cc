#include "cli/terminal.h"
#include "cli/values.h"
#include "graph/scheme.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

constexpr int64_t kLargest = int64_t{1} << 40;  ///< no size beyond this is meant

int64_t size_of(const Given& given, const std::string& key, int64_t initial, int64_t least = 1) {
  return integer_of(given, key, initial, least, kLargest);
}

void run(const Given& given) {
  const KernelSizes sizes = {.batch = size_of(given, "batch", 1),
                             .m = size_of(given, "m", 1),
                             .n = size_of(given, "n", 1),
                             .k = size_of(given, "k", 1)};
  constexpr int64_t kMostSkew = 300;
  const KernelSettings settings = {.heads = size_of(given, "heads", 8),
                                   .kv_heads = size_of(given, "kv-heads", 0),
                                   .window = size_of(given, "window", 0),
                                   .causal = given.count("causal") > 0,
                                   .kv_dtype = text_of(given, "kv-dtype"),
                                   .scheme = text_of(given, "scheme"),
                                   .experts = size_of(given, "experts", 8),
                                   .chosen = size_of(given, "chosen", 2),
                                   .ranks = size_of(given, "ranks", 1),
                                   .skew_percent = integer_of(given, "skew", 0, 0, kMostSkew),
                                   .software = text_of(given, "software", "pytorch"),
                                   .warm = given.count("warm") > 0};
  const std::string output = text_of(given, "output-file");
  const GpuRef gpu = load_gpu_ref(text_of(given, "gpu"));
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  const std::vector<KernelForecast> kernels =
      forecaster.kernel(text_of(given, "OP"), gpu, text_of(given, "dtype", "fp32"), sizes,
                        text_of(given, "predictor", "learned"), settings);
  std::vector<std::string> warnings = gpu.warnings();
  for (const std::string& warning : kernel_warnings(kernels)) warnings.push_back(warning);
  if (text_of(given, "format") == "json")
    return emit(kernel_json(kernels, gpu.id(), warnings), output);
  emit(kernel_table(kernels, gpu.id(), output_style(output)), output, warnings);
}

CommandOption number(const std::string& names, const std::string& initial,
                     const std::string& help) {
  return {.names = names, .value = "N", .initial = initial, .help = help};
}

}  // namespace

Command kernel_command() {
  const std::vector<std::string> dtypes = {"fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"};
  const std::vector<std::string> stored = {"fp32", "bf16", "fp16", "fp8", "int8"};
  const OptionGroup arguments = {"Arguments",
                                 {{.names = "OP",
                                   .help = "operator ('tilecast ops')",
                                   .kind = ValueKind::kOperator,
                                   .required = true}}};
  const OptionGroup options = {
      "Options",
      {gpu_option(),
       {.names = "--dtype", .initial = "fp32", .help = "of the operands", .choices = dtypes},
       number("--batch", "1", "products of matmul, sequences of attention"),
       number("-m,--m", "1", "rows"),
       number("-n,--n", "1", "columns, or elements"),
       number("-k,--k", "1", "reduction length of a product; rows of a table"),
       {.names = "--software",
        .initial = "pytorch",
        .help = "whose kernels run the operator",
        .choices = {"pytorch", "vllm", "sglang", "trtllm"}},
       {.names = "--warm",
        .help = "operands lie in L2 already, as when a benchmark replays the kernel"},
       predictor_option(),
       format_option({"table", "json"}),
       output_option(),
       weights_option(),
       calibration_option()}};
  const OptionGroup attention = {
      "Attention",
      {number("--heads", "8", "query heads; k is a head's size"),
       number("--kv-heads", "as many as heads", "heads of keys and values"),
       number("--window", "all", "keys that a query sees at most"),
       {.names = "--causal", .help = "a query sees no later key"},
       {.names = "--kv-dtype",
        .initial = "as the queries",
        .help = "of keys and values",
        .choices = stored}}};
  const OptionGroup layers = {
      "Quantized layers, experts and collectives",
      {{.names = "--scheme",
        .value = "SCHEME",
        .help = "how weights are stored and multiplied",
        .choices = scheme_names()},
       number("--experts", "8", "of a layer; n is an expert's inner width"),
       number("--chosen", "2", "experts that a token goes to"),
       number("--ranks", "1", "GPUs that share the experts, or of an all_reduce"),
       number("--skew", "0: even", "100 times the exponent of the experts' popularity")}};
  return {.name = "kernel",
          .help = "One operator's kernel, explained",
          .usage = {"OP --gpu GPU [options]"},
          .groups = {arguments, options, attention, layers},
          .examples = {"tilecast kernel linear --gpu A100 -m 4096 -n 5120 -k 1280",
                       "tilecast kernel cached_attention --gpu H100 --dtype bf16 --batch 64 -m 1 "
                       "-n 4096 -k 128"},
          .run = run};
}

}  // namespace tilecast
