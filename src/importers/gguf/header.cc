#include "importers/gguf/header.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/checked.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

// Guards against absurd numbers. The largest published files have some 60 values, 2,000 tensors
// and chat templates of 30 kB; the format allows keys of 65,535 bytes and names of 64.
constexpr uint64_t kMostValues = 1 << 14;
constexpr uint64_t kMostTensors = 1 << 17;
constexpr uint64_t kLongestText = 1 << 22;
constexpr uint64_t kLongestKey = 65535;
constexpr uint64_t kLongestName = 256;
/// Longer lists of numbers are a tokenizer's; sizes by layer are shorter.
constexpr uint64_t kLongestGgufList = 4096;
constexpr uint64_t kLongestKept = 200;  ///< longer texts (chat templates) are not kept
constexpr uint32_t kMostGgufDims = 4;

enum ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
  kValueTypes
};

/// Bytes of a value of fixed size; a string has at least its length.
constexpr uint64_t kLeastBytes[kValueTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

/// The content ends within the header.
struct Ended {};

static_assert(std::endian::native == std::endian::little,
              "GGUF is read on machines of its own byte order");

class HeaderReader {
 public:
  HeaderReader(std::string_view content, const std::string& where)
      : content_(content), where_(where) {}

  GgufHeader run() {
    at_ = 4;  // behind the magic number
    GgufHeader header;
    header.version = read_version();
    const auto tensors = counted("tensors", kMostTensors);
    const auto values = counted("values", kMostValues);
    for (uint64_t i = 0; i < values; ++i) {
      const std::string key = text("a key", kLongestKey);
      const auto [entry, fresh] = header.values.try_emplace(key, value(key));
      if (!fresh) fail(fmt::format("the key '{}' occurs twice", shown_name(key)));
    }
    for (uint64_t i = 0; i < tensors; ++i) header.tensors.push_back(tensor());
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& message, ErrorKind kind = ErrorKind::kInput) const {
    throw Error(kind, fmt::format("{}: byte {}: {}", where_, at_, message));
  }

  uint64_t left() const { return content_.size() - at_; }

  template <typename T>
  T number() {
    if (left() < sizeof(T)) throw Ended{};
    T result;
    std::memcpy(&result, content_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return result;
  }

  uint32_t read_version() {
    const auto version = number<uint32_t>();
    constexpr uint32_t kOldest = 2, kNewest = 3;
    if (version >= kOldest && version <= kNewest) return version;
    at_ -= sizeof(version);
    constexpr uint32_t kSwapped = 0xffff;
    fail(version == 1 ? "GGUF of version 1; expected 2 or 3; convert the model again"
         : version > 0 && (version & kSwapped) == 0
             ? "the file is big-endian; expected a little-endian file"
             : fmt::format("GGUF of version {}; expected 2 or 3", version),
         ErrorKind::kUnsupported);
  }

  uint64_t counted(const char* what, uint64_t most) {
    const auto count = number<uint64_t>();
    if (count <= most) return count;
    at_ -= sizeof(count);
    fail(fmt::format("{} {}, expected at most {}; is the file damaged?", count, what, most));
  }

  std::string text(const char* what, uint64_t most) {
    const uint64_t length = counted(fmt::format("bytes of {}", what).c_str(), most);
    if (left() < length) throw Ended{};
    std::string result(content_.substr(at_, length));
    at_ += length;
    return result;
  }

  void skip(uint64_t bytes) {
    if (left() < bytes) throw Ended{};
    at_ += bytes;
  }

  ValueType value_type(const std::string& key) {
    const auto type = number<uint32_t>();
    if (type < kValueTypes) return static_cast<ValueType>(type);
    at_ -= sizeof(type);
    fail(fmt::format("'{}' has the type {}, expected 0 to {}", shown_name(key), type,
                     kValueTypes - 1));
  }

  GgufValue value(const std::string& key) {
    const ValueType type = value_type(key);
    if (type == kArray) return array(key);
    if (type == kString) {
      std::string read = text("a text", kLongestText);
      return read.size() > kLongestKept ? GgufValue(GgufCount{1}) : GgufValue(std::move(read));
    }
    return scalar(key, type);
  }

  GgufValue scalar(const std::string& key, ValueType type) {
    switch (type) {
      case kU8:
        return int64_t{number<uint8_t>()};
      case kI8:
        return int64_t{number<int8_t>()};
      case kU16:
        return int64_t{number<uint16_t>()};
      case kI16:
        return int64_t{number<int16_t>()};
      case kU32:
        return int64_t{number<uint32_t>()};
      case kI32:
        return int64_t{number<int32_t>()};
      case kI64:
        return number<int64_t>();
      case kF32:
        return double{number<float>()};
      case kF64:
        return number<double>();
      case kBool:
        return number<uint8_t>() != 0;
      default:
        break;
    }
    const auto whole = number<uint64_t>();
    if (whole > static_cast<uint64_t>(INT64_MAX))
      fail(fmt::format("'{}' is {}, which is too large", shown_name(key), whole));
    return static_cast<int64_t>(whole);
  }

  GgufValue array(const std::string& key) {
    const ValueType type = value_type(key);
    const auto count = number<uint64_t>();
    if (type == kArray) fail(fmt::format("'{}': an array of arrays", shown_name(key)));
    // Checked before anything is allocated or multiplied.
    constexpr uint64_t kMostElements = uint64_t{1} << 32;
    if (count > kMostElements)
      fail(fmt::format("'{}' has {} elements, expected at most {}; is the file damaged?",
                       shown_name(key), count, kMostElements));
    if (left() / kLeastBytes[type] < count) throw Ended{};
    const GgufCount only_count{static_cast<int64_t>(count)};
    if (type == kString) {
      for (uint64_t i = 0; i < count; ++i) skip(counted("bytes of a text", kLongestText));
      return only_count;
    }
    if (type == kF32 || type == kF64 || count > kLongestGgufList) {
      skip(count * kLeastBytes[type]);
      return only_count;
    }
    std::vector<int64_t> list;
    for (uint64_t i = 0; i < count; ++i) {
      const GgufValue element = scalar(key, type);
      const bool* flag = std::get_if<bool>(&element);
      list.push_back(flag != nullptr ? int64_t{*flag} : std::get<int64_t>(element));
    }
    return list;
  }

  GgufTensor tensor() {
    GgufTensor t;
    t.name = text("a tensor's name", kLongestName);
    const auto dims = number<uint32_t>();
    if (dims == 0 || dims > kMostGgufDims)
      fail(fmt::format("tensor '{}' has {} dimensions, expected 1 to {}", shown_name(t.name), dims,
                       kMostGgufDims));
    t.elements = 1;
    for (uint32_t i = 0; i < dims; ++i) {
      constexpr uint64_t kLargestDim = uint64_t{1} << 40;
      const uint64_t dim = number<uint64_t>();
      if (dim == 0 || dim > kLargestDim)
        fail(fmt::format("tensor '{}' has a dimension of {}, expected 1 to {}", shown_name(t.name),
                         dim, kLargestDim));
      t.dims.push_back(static_cast<int64_t>(dim));
      t.elements = checked_multiply(t.elements, t.dims.back());
    }
    const auto type = number<uint32_t>();
    t.type = find_gguf_type(type);
    if (t.type == nullptr)
      fail(fmt::format("tensor '{}' has the unknown type {}", shown_name(t.name), type),
           ErrorKind::kUnsupported);
    if (t.dims[0] % t.type->block != 0)
      fail(fmt::format("tensor '{}' has rows of {} elements, which are not whole blocks of {} ({})",
                       shown_name(t.name), t.dims[0], t.type->block, t.type->name));
    t.bytes = checked_multiply(t.elements / t.type->block, t.type->bytes);
    number<uint64_t>();  // the place of the data
    return t;
  }

  std::string_view content_;
  const std::string& where_;
  uint64_t at_ = 0;
};

}  // namespace

bool is_gguf(std::string_view content) { return content.starts_with("GGUF"); }

std::optional<GgufHeader> read_gguf_header(std::string_view content, const std::string& where) {
  if (!is_gguf(content))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: is not a GGUF file: it does not start with 'GGUF'", where));
  try {
    return HeaderReader(content, where).run();
  } catch (const Ended&) {
    return std::nullopt;
  }
}

}  // namespace tilecast
