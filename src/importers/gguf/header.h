#pragma once

// The header of a GGUF file: metadata and the list of tensors, without their data. Goals: exact
// sizes, memory bounded by the header whatever its counts say. Non-goals: values of tokenizers.
// Source: github.com/ggml-org/ggml, docs/gguf.md (versions 2 and 3).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tilecast {

/// How a tensor's elements are stored: blocks of `block` elements in `bytes` bytes.
struct GgufType {
  uint32_t id = 0;
  std::string_view name;
  int64_t block = 1;
  int64_t bytes = 1;
};
/// nullptr if no type that files contain has this id.
const GgufType* find_gguf_type(uint32_t id);

struct GgufTensor {
  std::string name;
  std::vector<int64_t> dims;  ///< the first is contiguous: a weight [out, in] has {in, out}
  const GgufType* type = nullptr;
  int64_t elements = 0;
  int64_t bytes = 0;
};

/// Only the number of elements is kept of an array of other values than whole numbers.
struct GgufCount {
  int64_t elements = 0;
};
using GgufValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, GgufCount>;

struct GgufHeader {
  uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> values;
  std::vector<GgufTensor> tensors;
};

/// Whether the file starts like a GGUF file.
bool is_gguf(std::string_view content);

/// Reads a header from the start of a file. nullopt: `content` ends within the header.
/// Throws Error{kInput} that names the byte for anything that the format does not allow, for
/// absurd counts and lengths, and for sizes that overflow; Error{kUnsupported} for another version
/// or byte order, or for an unknown type of tensors.
std::optional<GgufHeader> read_gguf_header(std::string_view content, const std::string& where);

}  // namespace tilecast
