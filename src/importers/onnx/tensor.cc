#include "importers/onnx/tensor.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr size_t kMostOnnxDims = 16;  // ONNX sets no limit; PyTorch's is 64, kernels use up to 8

template <typename T>
T value_at(std::string_view data, size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

/// IEEE 754 binary16.
double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) return sign * (fraction == 0 ? HUGE_VAL : NAN);
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 0x400, exponent - 25);
}

/// A value of raw_data; nullopt for types whose values nothing depends on.
std::optional<double> raw_number(OnnxType type, std::string_view raw, size_t i) {
  switch (type) {
    case OnnxType::kFloat:
      return value_at<float>(raw, i);
    case OnnxType::kDouble:
      return value_at<double>(raw, i);
    case OnnxType::kFloat16:
      return half_value(value_at<uint16_t>(raw, i));
    case OnnxType::kBfloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(value_at<uint16_t>(raw, i)) << 16);
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> raw_integer(OnnxType type, std::string_view raw, size_t i) {
  switch (type) {
    case OnnxType::kInt64:
    case OnnxType::kUint64:
      return value_at<int64_t>(raw, i);
    case OnnxType::kInt32:
      return value_at<int32_t>(raw, i);
    case OnnxType::kUint32:
      return value_at<uint32_t>(raw, i);
    case OnnxType::kInt16:
      return value_at<int16_t>(raw, i);
    case OnnxType::kUint16:
      return value_at<uint16_t>(raw, i);
    case OnnxType::kInt8:
      return value_at<int8_t>(raw, i);
    case OnnxType::kUint8:
    case OnnxType::kBool:
      return value_at<uint8_t>(raw, i);
    default:
      return std::nullopt;
  }
}

size_t type_bytes(OnnxType type) {
  switch (type) {
    case OnnxType::kInt64:
    case OnnxType::kUint64:
    case OnnxType::kDouble:
      return 8;
    case OnnxType::kFloat:
    case OnnxType::kInt32:
    case OnnxType::kUint32:
      return 4;
    case OnnxType::kFloat16:
    case OnnxType::kBfloat16:
    case OnnxType::kInt16:
    case OnnxType::kUint16:
      return 2;
    default:
      return 1;
  }
}

/// Content of a TensorProto beside type and shape.
struct Content {
  std::string_view raw;
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::string location, offset = "0";
};

void read_external(WireMessage message, Content& content) {
  std::string key, value;
  WireField field;
  while (message.next(field)) {
    if (field.number == 1) key = message.text(field);
    if (field.number == 2) value = message.text(field);
  }
  if (key == "location") content.location = value;
  if (key == "offset") content.offset = value;
}

/// The values of a small tensor, if they are all there.
std::shared_ptr<const OnnxConstant> constant_of(const WireMessage& message,
                                                const OnnxTensor& tensor, Content& content,
                                                size_t count) {
  if (!content.location.empty() || count > kMostConstants) return nullptr;
  auto constant = std::make_shared<OnnxConstant>();
  constant->type = tensor.type;
  constant->shape = tensor.shape;
  const bool floats = is_float(tensor.type);
  if (!content.raw.empty()) {
    if (content.raw.size() / type_bytes(tensor.type) < count) return nullptr;
    message.load(content.raw.substr(0, count * type_bytes(tensor.type)));
    for (size_t i = 0; i < count; ++i) {
      const auto number = floats ? raw_number(tensor.type, content.raw, i) : std::nullopt;
      const auto integer = floats ? std::nullopt : raw_integer(tensor.type, content.raw, i);
      if (!number && !integer) return nullptr;
      if (number) constant->numbers.push_back(*number);
      if (integer) constant->integers.push_back(*integer);
    }
    return constant;
  }
  // Half precision in int32_data holds bits.
  if (floats && tensor.type != OnnxType::kFloat && tensor.type != OnnxType::kDouble) return nullptr;
  constant->integers = std::move(content.integers);
  constant->numbers = std::move(content.numbers);
  if (constant->size() != count) return nullptr;
  return constant;
}

/// A matrix and its transpose have the same elements on the line from the first to the last.
std::string fingerprint(const WireMessage& message, const OnnxTensor& tensor,
                        std::string_view raw) {
  constexpr uint64_t kLeast = 1 << 16, kSamples = 16;
  const size_t width = type_bytes(tensor.type);
  if (tensor.shape.size() != 2 || raw.size() < kLeast) return "";
  const auto rows = static_cast<uint64_t>(tensor.shape[0]);
  const auto columns = static_cast<uint64_t>(tensor.shape[1]);
  if (columns == 0 || rows == 0 || raw.size() / width / columns < rows) return "";
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (uint64_t i = 0; i < kSamples; ++i) {
    const uint64_t at = (rows / kSamples * i * columns + columns / kSamples * i) * width;
    message.load(raw.substr(at, width));
    for (size_t byte = 0; byte < width; ++byte)
      hash = (hash ^ static_cast<uint8_t>(raw[at + byte])) * 1099511628211ull;
  }
  return fmt::format("#{:x}:{}", hash, rows * columns);
}

}  // namespace

OnnxType onnx_type(const WireMessage& message, int64_t number) {
  constexpr int64_t kLast = static_cast<int64_t>(OnnxType::kFloat4);
  if (number < 0 || number > kLast)
    message.fail(
        fmt::format("data type {}; expected 1 to {} (TensorProto.DataType)", number, kLast));
  return static_cast<OnnxType>(number);
}

OnnxTensor read_onnx_tensor(WireMessage message) {
  OnnxTensor tensor;
  Content content;
  WireField field;
  while (message.next(field)) {
    switch (field.number) {
      case 1:
        message.integers(field, tensor.shape, kMostOnnxDims + 1);
        break;
      case 2:
        tensor.type = onnx_type(message, message.integer(field));
        break;
      case 4:
        message.numbers(field, sizeof(float), content.numbers, kMostConstants);
        break;
      case 5:
      case 7:
      case 11:
        message.integers(field, content.integers, kMostConstants);
        break;
      case 8:
        tensor.name = message.text(field);
        break;
      case 9:
        content.raw = message.bytes(field);
        break;
      case 10:
        message.numbers(field, sizeof(double), content.numbers, kMostConstants);
        break;
      case 13:
        read_external(message.message(field), content);
        break;
      default:
        break;
    }
  }
  if (tensor.shape.size() > kMostOnnxDims)
    message.fail(fmt::format("tensor '{}' has more than {} dimensions", shown_name(tensor.name),
                             kMostOnnxDims));
  for (const int64_t dimension : tensor.shape) {
    if (dimension < 0)
      message.fail(fmt::format("tensor '{}' has a dimension of {}; expected 0 or more",
                               shown_name(tensor.name), dimension));
  }
  size_t count = 0;
  try {
    count = static_cast<size_t>(element_count(tensor.shape));
  } catch (const Error&) {
    message.fail(fmt::format("tensor '{}' {}: the number of elements does not fit in 64 bits",
                             shown_name(tensor.name), format_shape(tensor.shape)));
  }
  tensor.values = constant_of(message, tensor, content, count);
  tensor.identity = content.location.empty() ? fingerprint(message, tensor, content.raw)
                                             : content.location + ":" + content.offset;
  return tensor;
}

}  // namespace tilecast
