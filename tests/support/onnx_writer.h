#pragma once

// Writes small ONNX files in protobuf's wire format, for tests.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tilecast::onnx_writer {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string number(uint32_t field, int64_t value) {
  return varint(field << 3) + varint(static_cast<uint64_t>(value));
}
inline std::string bytes(uint32_t field, const std::string& content) {
  return varint(field << 3 | 2) + varint(content.size()) + content;
}

constexpr int kFloat = 1, kInt8 = 3, kInt64 = 7, kText = 8, kBool = 9;

using Dims = std::vector<int64_t>;

/// A TensorProto; without raw data, its values are left out.
inline std::string tensor(const std::string& name, const Dims& dims, int type,
                          const std::string& raw = "") {
  std::string out;
  for (const int64_t dim : dims) out += number(1, dim);
  out += number(2, type) + bytes(8, name);
  return raw.empty() ? out : out + bytes(9, raw);
}
/// A tensor whose values are in another file.
inline std::string external(const std::string& name, const Dims& dims, int64_t offset) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return bytes(13, bytes(1, key) + bytes(2, value));
  };
  return tensor(name, dims, kFloat) + entry("location", "weights.bin") +
         entry("offset", std::to_string(offset)) + number(14, 1);
}
inline std::string integers(const std::string& name, const std::vector<int64_t>& values) {
  std::string raw(values.size() * sizeof(int64_t), '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return tensor(name, {static_cast<int64_t>(values.size())}, kInt64, raw);
}
inline std::string scalar(const std::string& name, float value) {
  std::string raw(sizeof(value), '\0');
  std::memcpy(raw.data(), &value, sizeof(value));
  return tensor(name, {}, kFloat, raw);
}

inline std::string attribute(const std::string& name, int64_t value) {
  return bytes(5, bytes(1, name) + number(3, value) + number(20, 2));
}
inline std::string attribute(const std::string& name, const std::string& value) {
  return bytes(5, bytes(1, name) + bytes(4, value) + number(20, 3));
}
inline std::string list_attribute(const std::string& name, const std::vector<int64_t>& values) {
  std::string out = bytes(1, name);
  for (const int64_t value : values) out += number(8, value);
  return bytes(5, out + number(20, 7));
}
inline std::string graph_attribute(const std::string& name, const std::string& graph) {
  return bytes(5, bytes(1, name) + bytes(6, graph) + number(20, 5));
}

/// A dimension: a number, or a name.
struct Dim {
  int64_t value = -1;
  std::string name;
  Dim(int64_t v) : value(v) {}               // NOLINT: a number is a dimension
  Dim(const char* symbol) : name(symbol) {}  // NOLINT: a name, too
};

inline std::string value_info(const std::string& name, int type, const std::vector<Dim>& dims) {
  std::string shape;
  for (const Dim& dim : dims)
    shape += bytes(1, dim.name.empty() ? number(1, dim.value) : bytes(2, dim.name));
  return bytes(1, name) + bytes(2, bytes(1, number(1, type) + bytes(2, shape)));
}

/// A graph under construction.
struct Writer {
  std::string graph;
  int64_t opset = 18;

  Writer& node(const std::string& op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs, const std::string& attributes = "",
               const std::string& domain = "") {
    std::string out;
    for (const std::string& input : inputs) out += bytes(1, input);
    for (const std::string& output : outputs) out += bytes(2, output);
    out += bytes(3, "n_" + outputs.at(0)) + bytes(4, op) + attributes;
    if (!domain.empty()) out += bytes(7, domain);
    graph += bytes(1, out);
    return *this;
  }
  Writer& initializer(const std::string& tensor) {
    graph += bytes(5, tensor);
    return *this;
  }
  Writer& weight(const std::string& name, const Dims& dims) {
    return initializer(tensor(name, dims, kFloat));
  }
  Writer& input(const std::string& name, const std::vector<Dim>& dims, int type = kFloat) {
    graph += bytes(11, value_info(name, type, dims));
    return *this;
  }
  Writer& output(const std::string& name, const std::vector<Dim>& dims = {}) {
    graph += bytes(12, value_info(name, kFloat, dims));
    return *this;
  }
  std::string file() const {
    return number(1, 9) + bytes(2, "test") + bytes(7, graph) + bytes(8, number(2, opset));
  }
};

}  // namespace tilecast::onnx_writer
