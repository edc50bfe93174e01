#include "importers/onnx/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/budget.h"
#include "base/text.h"
#include "importers/clean_names.h"
#include "importers/onnx/calls.h"
#include "importers/onnx/tensor.h"
#include "importers/onnx/wire.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Graphs within graphs (If, Loop); deeper ones would overflow the stack.
constexpr int kDeepestMessage = 32;
constexpr size_t kLongestOnnxList = 1 << 16;  ///< of numbers in an attribute
/// Operator sets whose operators are known. Source: onnx/docs/Versioning.md; 11 is of 2019, 23 of
/// 2025.
constexpr int64_t kOldestOpset = 11, kNewestOpset = 23;

class Reader {
 public:
  explicit Reader(const ModelText& text) : text_(text), where_(text.where) {}

  OnnxFile run() {
    OnnxFile result;
    WireMessage model(text_);
    WireField field;
    bool has_graph = false;
    while (model.next(field)) {
      if (field.number == 2) result.producer = text(model, field);
      if (field.number == 8) opset(model.message(field), result.opset);
      if (field.number == 25) add(result.functions, function(model.message(field)), model);
      if (field.number != 7) continue;
      result.graph = graph(model.message(field));
      has_graph = true;
    }
    if (!has_graph) throw Error(ErrorKind::kInput, where_ + ": no graph; expected an ONNX model");
    check_opset(result.opset);
    join_torch_calls(result.graph);
    return result;
  }

 private:
  void check_opset(int64_t opset) const {
    if (opset >= kOldestOpset && opset <= kNewestOpset) return;
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: operator set {}; expected {} to {}; {}", where_, opset,
                            kOldestOpset, kNewestOpset,
                            opset > kNewestOpset ? "export the model with an older `opset_version`"
                                                 : "export the model again, or convert it with "
                                                   "onnx.version_converter"));
  }

  void opset(WireMessage message, int64_t& version) {
    std::string domain;
    int64_t found = 0;
    WireField field;
    while (message.next(field)) {
      if (field.number == 1) domain = text(message, field);
      if (field.number == 2) found = message.integer(field);
    }
    if (domain.empty() || domain == "ai.onnx") version = found;
  }

  /// Adds a part of the file, whose texts are counted when they are read.
  template <typename T>
  void add(std::vector<T>& list, T part, const WireMessage& message) {
    count(sizeof(T), message);
    // A list that grows is there twice for a moment.
    if (list.size() == list.capacity()) allow(bytes_ + list.size() * sizeof(T), message);
    list.push_back(std::move(part));
  }

  std::string text(const WireMessage& message, const WireField& field) {
    count(field.bytes.size(), message);
    return message.text(field);
  }

  void count(size_t bytes, const WireMessage& message) {
    bytes_ += bytes;
    allow(bytes_, message);
  }

  static void allow(size_t bytes, const WireMessage& message) {
    go_on("reading an ONNX file");
    const int64_t most = Budget::here().most(kOnnxBytes);
    if (static_cast<int64_t>(bytes) > most)
      message.fail(
          fmt::format("the graph takes more than {} of memory; is it an ONNX file of a model? "
                      "`max-memory` allows more",
                      format_bytes(most)));
  }

  OnnxTensor tensor(const WireMessage& message) {
    OnnxTensor result = read_onnx_tensor(message);
    count(result.name.size() + (result.values != nullptr ? 8 * result.values->size() : 0), message);
    return result;
  }

  OnnxGraph graph(WireMessage message) {
    if (++depth_ > kDeepestMessage) message.fail("graphs are nested too deeply");
    OnnxGraph result;
    WireField field;
    while (message.next(field)) {
      switch (field.number) {
        case 1:
          add(result.nodes, node(message.message(field)), message);
          break;
        case 2:
          result.name = text(message, field);
          break;
        case 5:
          add(result.initializers, tensor(message.message(field)), message);
          break;
        case 11:
          add(result.inputs, value_info(message.message(field)), message);
          break;
        case 12:
          add(result.outputs, value_info(message.message(field)), message);
          break;
        case 13:
          add(result.values, value_info(message.message(field)), message);
          break;
        case 15:
          message.fail("a sparse initializer; only dense ones are supported");
        default:
          break;
      }
    }
    --depth_;
    return result;
  }

  /// The whole numbers in lists: "(%x, [3, 3], [1, 1])".
  static std::vector<int64_t> numbers_in(std::string_view call) {
    std::vector<int64_t> numbers;
    constexpr size_t kMost = 16;
    for (size_t i = 1; i < call.size() && numbers.size() < kMost; ++i) {
      if (call[i - 1] != '[' && call[i - 1] != ' ') continue;
      int64_t number = 0;
      const auto [end, error] = std::from_chars(call.data() + i, call.data() + call.size(), number);
      const bool whole =
          error == std::errc() && end < call.data() + call.size() && (*end == ',' || *end == ']');
      if (whole) numbers.push_back(number);
    }
    return numbers;
  }

  /// The arguments of a call without keywords: "args = (%weight, %ids, 0), kwargs = {}".
  static std::vector<std::string> arguments_of(std::string_view call) {
    constexpr std::string_view kOpen = "(args = (", kClose = "), kwargs";
    const size_t open = call.find(kOpen);
    if (open == std::string_view::npos) return {};
    const size_t first = open + kOpen.size(), close = call.find(kClose, first);
    if (close == std::string_view::npos) return {};
    std::vector<std::string> arguments;
    for (const std::string& part : split(std::string(call.substr(first, close - first)), ','))
      arguments.emplace_back(trim(part));
    return arguments;
  }

  /// An input or output of a node. Its name is copied into tables of who makes and who reads it.
  void add_name(std::vector<std::string>& names, const WireField& field,
                const WireMessage& message) {
    constexpr size_t kBytesInTables = 128;
    count(kBytesInTables, message);
    add(names, text(message, field), message);
  }

  /// A name that nothing refers to. A node of a loop is there once for each trip, so a long one is
  /// cut here, and not in the graph alone.
  static std::string label(std::string name) {
    constexpr size_t kLongestLabel = 500;
    return name.size() > kLongestLabel ? clean_name(std::move(name)) : name;
  }

  /// PyTorch's notes: "['', 'blocks', 'blocks.0', 'clone']", the modules and the operator, and the
  /// call of the operator, "%clone : [...] =
  /// call_function[target=torch.ops.aten.clone.default](...)".
  static void read_metadata(WireMessage message, OnnxNode& node) {
    std::string key, value;
    WireField field;
    while (message.next(field)) {
      if (field.number == 1) key = message.text(field);
      if (field.number == 2) value = message.text(field);
    }
    if (key == "pkg.torch.onnx.name_scopes") {
      constexpr std::string_view kBetween = "', '";
      const size_t end = value.rfind(kBetween);
      if (end == std::string::npos) return;
      const size_t quote = value.rfind('\'', end - 1);
      if (quote != std::string::npos) node.module = label(value.substr(quote + 1, end - quote - 1));
    }
    if (key == "pkg.torch.onnx.fx_node") {
      node.call = value.substr(0, value.find(' '));
      constexpr std::string_view kTarget = "[target=torch.ops.aten.";
      const size_t target = value.find(kTarget);
      if (target == std::string::npos) return;
      const size_t start = target + kTarget.size();
      node.aten = value.substr(start, value.find_first_of(".]", start) - start);
      if (node.aten == "im2col") node.call_numbers = numbers_in(value);
      if (is_embedding_bag(node.aten)) node.call_arguments = arguments_of(value);
      node.makes_contiguous =
          node.aten == "clone" && value.find("torch.contiguous_format") != std::string::npos;
    }
  }

  OnnxNode node(WireMessage message) {
    OnnxNode result;
    WireField field;
    while (message.next(field)) {
      if (field.number == 1) add_name(result.inputs, field, message);
      if (field.number == 2) add_name(result.outputs, field, message);
      if (field.number == 3) result.name = label(text(message, field));
      if (field.number == 4) result.op = text(message, field);
      if (field.number == 5) add(result.attributes, attribute(message.message(field)), message);
      if (field.number == 7) result.domain = text(message, field);
      if (field.number == 9) read_metadata(message.message(field), result);
    }
    if (result.domain == "ai.onnx") result.domain.clear();
    if (result.name.empty() && !result.outputs.empty()) result.name = result.outputs[0];
    return result;
  }

  OnnxAttribute attribute(WireMessage message) {
    OnnxAttribute result;
    WireField field;
    while (message.next(field)) {
      switch (field.number) {
        case 1:
          result.name = text(message, field);
          break;
        case 2: {
          std::vector<double> one;
          message.numbers(field, sizeof(float), one, 1);
          if (!one.empty()) result.number = one[0];
          break;
        }
        case 3:
          result.integer = message.integer(field);
          break;
        case 4:
          result.text = text(message, field);
          break;
        case 5:
          result.tensor = std::make_shared<const OnnxTensor>(tensor(message.message(field)));
          break;
        case 6:
          result.graph = std::make_shared<const OnnxGraph>(graph(message.message(field)));
          break;
        case 7:
          message.numbers(field, sizeof(float), result.numbers, kLongestOnnxList);
          break;
        case 8:
          message.integers(field, result.integers, kLongestOnnxList);
          break;
        case 21:
          result.refers_to = text(message, field);
          break;
        default:
          break;
      }
    }
    return result;
  }

  OnnxValueInfo value_info(WireMessage message) {
    OnnxValueInfo result;
    WireField field;
    while (message.next(field)) {
      if (field.number == 1) result.name = text(message, field);
      if (field.number != 2) continue;
      WireMessage type = message.message(field);
      while (type.next(field)) {
        result.is_tensor = field.number == 1;
        if (result.is_tensor) tensor_type(type.message(field), result);
      }
    }
    return result;
  }

  void tensor_type(WireMessage message, OnnxValueInfo& result) {
    WireField field;
    while (message.next(field)) {
      if (field.number == 1) result.type = onnx_type(message, message.integer(field));
      if (field.number != 2) continue;
      WireMessage shape = message.message(field);
      result.shape.emplace();
      while (shape.next(field)) {
        if (field.number == 1) add(*result.shape, dimension(shape.message(field)), shape);
      }
    }
  }

  OnnxValueInfo::Dim dimension(WireMessage message) {
    OnnxValueInfo::Dim result;
    WireField field;
    while (message.next(field)) {
      if (field.number == 1) result.value = message.integer(field);
      if (field.number == 2) result.name = text(message, field);
    }
    return result;
  }

  OnnxFunction function(WireMessage message) {
    OnnxFunction result;
    WireField field;
    while (message.next(field)) {
      if (field.number == 1) result.name = text(message, field);
      if (field.number == 4) add(result.inputs, text(message, field), message);
      if (field.number == 5) add(result.outputs, text(message, field), message);
      if (field.number == 7) add(result.nodes, node(message.message(field)), message);
      if (field.number == 10) result.domain = text(message, field);
      if (field.number == 11) add(result.defaults, attribute(message.message(field)), message);
    }
    return result;
  }

  const ModelText& text_;
  const std::string& where_;
  size_t bytes_ = 0;
  int depth_ = 0;
};

}  // namespace

const OnnxAttribute* OnnxNode::find(std::string_view wanted) const {
  for (const OnnxAttribute& attribute : attributes) {
    if (attribute.name == wanted) return &attribute;
  }
  return nullptr;
}

bool is_float(OnnxType type) {
  return type == OnnxType::kFloat || type == OnnxType::kFloat16 || type == OnnxType::kDouble ||
         type == OnnxType::kBfloat16 ||
         (type >= OnnxType::kFloat8First && type <= OnnxType::kFloat8Last) ||
         type == OnnxType::kFloat4;
}

/// A model begins with its format's version (field 1, today 1 to 13), then the producer's name or
/// another field of a model.
bool is_onnx(std::string_view content) {
  constexpr uint8_t kVersionField = 0x08, kNewestVersion = 32;
  if (content.size() < 3) return false;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(content[i]); };
  if (byte(0) != kVersionField || byte(1) == 0 || byte(1) > kNewestVersion) return false;
  constexpr std::string_view kNext = "\x12\x1a\x22\x28\x32\x3a\x42\x72";
  return kNext.find(content[2]) != std::string_view::npos;
}

OnnxFile read_onnx(const ModelText& text) { return Reader(text).run(); }

}  // namespace tilecast
