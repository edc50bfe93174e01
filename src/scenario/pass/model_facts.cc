#include "scenario/pass/model_facts.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "scenario/parallel/adapter_remarks.h"
#include "scenario/warnings.h"

namespace tilecast {

std::string input_text(const Model& model, const Graph& graph, int64_t seq,
                       std::optional<int64_t> decoder_seq) {
  if (model.recommendation) return "";
  std::vector<std::string> sizes;
  for (const Tensor& tensor : graph.tensors) {
    const Shape& s = tensor.shape;
    const bool image =
        tensor.kind == TensorKind::kInput && s.size() == 4 && s[1] > 1 && s[2] > 1 && s[3] > 1;
    if (image) sizes.push_back(fmt::format("{} {}x{}x{}", tensor.name, s[1], s[2], s[3]));
  }
  if (sizes.empty() || !model.fixed_seq) sizes.push_back("seq " + format_integer(seq));
  if (decoder_seq) sizes.push_back("decoder " + format_integer(*decoder_seq));
  return join(sizes, ", ");
}

void describe_modules(Forecast& forecast, const Graph& modules, const PassSetup& setup) {
  forecast.parameters = modules.parameter_count();
  forecast.input = input_text(setup.model, modules, forecast.seq, setup.request.decoder_seq);
  add_messages(forecast.warnings, WarningCode::kModelFile, setup.model.name,
               adapter_remarks(modules, setup.request, setup.precision));
}

}  // namespace tilecast
