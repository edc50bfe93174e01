#include <memory>

#include "cli/commands.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

struct Request {
  std::string op, gpu, dtype = "fp32", format = "table", predictor = "learned", output, weights,
                       calibration;
  KernelSizes sizes;
  KernelSettings settings;
};

void run(const Request& request) {
  const GpuRef gpu = load_gpu_ref(request.gpu);
  const Forecaster forecaster(request.weights, request.calibration);
  const std::vector<KernelForecast> kernels = forecaster.kernel(
      request.op, gpu, request.dtype, request.sizes, request.predictor, request.settings);
  emit(request.format == "json" ? kernel_json(kernels, gpu.id()) : kernel_table(kernels, gpu.id()),
       request.output);
}

}  // namespace

void add_kernel_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("kernel", "One operator's kernel, explained");
  auto request = std::make_shared<Request>();
  command->add_option("OP", request->op, "operator ('tilecast ops')")->required();
  command->add_option("--gpu", request->gpu, "id, alias or device file")->required();
  command->add_option("--dtype", request->dtype, "fp32, tf32, bf16, fp16, fp8, int8 [fp32]");
  command->add_option("--batch", request->sizes.batch, "products of matmul [1]");
  command->add_option("-m,--m", request->sizes.m, "rows [1]");
  command->add_option("-n,--n", request->sizes.n, "columns, or elements [1]");
  command->add_option("-k,--k", request->sizes.k,
                      "reduction length of a product; rows of a table [1]");
  KernelSettings& s = request->settings;
  command->add_option("--heads", s.heads, "of attention; k is a head's size [8]");
  command->add_option("--kv-heads", s.kv_heads, "of keys and values [as many as heads]");
  command->add_option("--window", s.window, "keys that a query sees at most [all]");
  command->add_flag("--causal", s.causal, "a query sees no later key");
  command->add_option("--kv-dtype", s.kv_dtype, "of keys and values [as the queries]");
  command->add_option(
      "--scheme", s.scheme,
      "of weights: fp8, fp8_block, int8, int8_wo, int4_wo, fp4_wo, fp4, fp8_wo, nvfp4_wo");
  command->add_option("--experts", s.experts, "of a layer; n is an expert's inner width [8]");
  command->add_option("--chosen", s.chosen, "experts that a token goes to [2]");
  command->add_option("--ranks", s.ranks, "that share the experts, or of an all_reduce [1]");
  command->add_option("--skew", s.skew_percent,
                      "100 times the exponent of the experts' popularity [0: even]");
  command->add_option("--software", s.software, "pytorch, vllm, sglang or trtllm [pytorch]")
      ->check(CLI::IsMember(std::vector<std::string>{"pytorch", "vllm", "sglang", "trtllm"}));
  command->add_flag("--warm", s.warm,
                    "operands lie in L2 already, as when a benchmark replays the kernel");
  command->add_option("--predictor", request->predictor, "learned or roofline [learned]")
      ->check(CLI::IsMember(std::vector<std::string>{"learned", "roofline"}));
  command->add_option("--format", request->format, "table or json [table]")
      ->check(CLI::IsMember(std::vector<std::string>{"table", "json"}));
  command->add_option("-o,--output", request->output, "write to a file");
  command->add_option("--weights", request->weights, "folder of other weights");
  command->add_option("--calibration", request->calibration, "file of \'tilecast calibrate\'");
  command->footer(
      "Example:\n  tilecast kernel linear --gpu A100 --dtype fp32 -m 4096 -n 5120 -k 1280");
  command->callback([request] { run(*request); });
}

}  // namespace tilecast
