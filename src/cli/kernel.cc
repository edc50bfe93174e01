#include <memory>

#include "cli/commands.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

struct Request {
  std::string op, gpu, dtype = "fp32", format = "table", predictor = "learned", output, weights,
                       calibration;
  KernelSizes sizes;
};

void run(const Request& request) {
  const GpuRef gpu = load_gpu_ref(request.gpu);
  const Forecaster forecaster(request.weights, request.calibration);
  const std::vector<KernelForecast> kernels =
      forecaster.kernel(request.op, gpu, request.dtype, request.sizes, request.predictor);
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
