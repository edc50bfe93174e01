#pragma once

// The parts of an ONNX file that a forecast needs (github.com/onnx/onnx, onnx/onnx.proto): the
// graph, and of tensors their types and shapes. Values of large tensors are not read, wherever they
// are stored.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "importers/model.h"

namespace tilecast {

/// TensorProto.DataType
enum class OnnxType : uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kBfloat16 = 16,
  kFloat8First = 17,  ///< four formats of 8 bits
  kFloat8Last = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4 = 23,
};

bool is_float(OnnxType type);

/// The values of a small tensor. Either `integers` or `numbers` holds them.
struct OnnxConstant {
  OnnxType type = OnnxType::kInt64;
  Shape shape;
  std::vector<int64_t> integers;
  std::vector<double> numbers;

  bool is_float() const { return tilecast::is_float(type); }
  size_t size() const { return is_float() ? numbers.size() : integers.size(); }
  double number(size_t i) const {
    return is_float() ? numbers[i] : static_cast<double>(integers[i]);
  }
};

/// Values of longer tensors are not kept: none of them is a shape.
inline constexpr size_t kMostConstants = 1 << 14;

struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::kUndefined;
  Shape shape;
  /// nullptr: too large, in another file, or of a type whose values nothing depends on.
  std::shared_ptr<const OnnxConstant> values;
  /// Where the values are ("weights.bin:4096"), or a fingerprint of some of them that is the same
  /// for the transposed matrix; "": unknown. Equal ones are the same weight.
  std::string identity;
};

struct OnnxGraph;

struct OnnxAttribute {
  std::string name;
  std::optional<int64_t> integer;
  std::optional<double> number;
  std::optional<std::string> text;
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::shared_ptr<const OnnxTensor> tensor;
  std::shared_ptr<const OnnxGraph> graph;
  std::string refers_to;  ///< in a function: the attribute of its call
};

struct OnnxNode {
  std::string name;
  std::string op;
  std::string domain;               ///< "" for ONNX's own operators
  std::vector<std::string> inputs;  ///< "": left out
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;
  // Notes of PyTorch's exporter in the node's metadata.
  std::string module;  ///< whose code runs: "blocks.0.attn"; "": unknown
  std::string call;    ///< the call of PyTorch's graph that it is a part of: "%addcmul_1"
  std::string aten;    ///< the operator that is called: "addcmul"
  /// For a call of im2col: rows and columns of its windows, dilations, paddings and strides.
  std::vector<int64_t> call_numbers;
  /// For a call of embedding_bag: its arguments as the note words them, "%weight", "0", "None".
  std::vector<std::string> call_arguments;
  bool makes_contiguous = false;  ///< it stands for Tensor.contiguous
  bool packs_weights = false;     ///< of a recurrent layer, whose weights PyTorch stores packed

  const OnnxAttribute* find(std::string_view wanted) const;
};

/// A tensor's type and shape as declared. A dimension without a number has a name, or "".
struct OnnxValueInfo {
  struct Dim {
    std::optional<int64_t> value;
    std::string name;
  };
  std::string name;
  OnnxType type = OnnxType::kUndefined;
  std::optional<std::vector<Dim>> shape;  ///< nullopt: of unknown rank
  bool is_tensor = true;                  ///< false: a sequence, map or optional
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValueInfo> inputs, outputs, values;
};

/// A function of the file: an operator that is defined by nodes.
struct OnnxFunction {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxAttribute> defaults;
};

struct OnnxFile {
  std::string producer;
  int64_t opset = 0;  ///< of ONNX's own operators
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
};

/// Whether the content starts like an ONNX file.
bool is_onnx(std::string_view content);

/// Throws Error{kInput} for anything that the format does not allow, Error{kUnsupported} for an
/// operator set that is too old or too new.
OnnxFile read_onnx(const ModelText& text);

}  // namespace tilecast
