// Imports ONNX files, without protobuf's library and without their weights: the graph is read from
// the file, shapes follow from the operator table.

#include "importers/model.h"
#include "importers/onnx/file.h"
#include "importers/onnx/translator.h"

namespace tilecast {
namespace {

bool sniff_onnx(std::string_view file_name, std::string_view content) {
  return file_name.ends_with(".onnx") || is_onnx(content);
}

bool has_open_batch(const OnnxFile& file) {
  for (const OnnxValueInfo& input : file.graph.inputs) {
    if (input.shape && !input.shape->empty() && !(*input.shape)[0].value) return true;
  }
  return false;
}

Model import_onnx(const ModelText& text) {
  const auto file = std::make_shared<const OnnxFile>(read_onnx(text));
  Model model;
  model.family = "onnx";
  model.has_modules = model.has_fused_attention = model.spelled_out = true;
  model.takes_fused_attention = false;
  model.open_batch = has_open_batch(*file);
  if (const std::optional<OnnxType> type = main_type(*file)) {
    model.checkpoint.dtype = *type == OnnxType::kFloat16    ? DType::kFp16
                             : *type == OnnxType::kBfloat16 ? DType::kBf16
                                                            : DType::kFp32;
    model.checkpoint.dtype_field = "onnx";
  }
  const std::string where = text.where;
  model.build = [file, where](const GraphRequest& request) {
    return OnnxTranslator(*file, request, where).run();
  };
  model.remarks = [file, where](const GraphRequest& request) {
    // All remarks are about what was skipped; translating the file takes milliseconds.
    if (!request.skip_unsupported) return std::vector<std::string>{};
    OnnxTranslator translator(*file, request, where);
    translator.run();
    return translator.warnings();
  };
  return model;
}

}  // namespace

ImporterDef onnx_importer() {
  return {.name = "onnx",
          .doc = "ONNX file, operator sets 11 to 23",
          .sniff = sniff_onnx,
          .import = import_onnx,
          .partly_read = true};
}

}  // namespace tilecast
