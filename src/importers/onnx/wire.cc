#include "importers/onnx/wire.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "tilecast/error.h"

namespace tilecast {
namespace {

static_assert(std::endian::native == std::endian::little,
              "protobuf is read on machines of its own byte order");

template <typename T>
T read_number(std::string_view data) {
  T value;
  std::memcpy(&value, &data.front(), sizeof(T));
  return value;
}

/// Messages up to this size are loaded whole: all but graphs and tensors with their values.
constexpr size_t kLoadedWhole = 64 << 10;
constexpr size_t kLongestNumber = 10;  ///< bytes of a varint
/// The longest start of a field: its key and its length.
constexpr size_t kLongestStart = 2 * kLongestNumber;

}  // namespace

WireMessage::WireMessage(const ModelText& text)
    : content_(text.content), text_(&text), is_loaded_(text.file == nullptr) {}

WireMessage::WireMessage(const WireMessage& outer, std::string_view content)
    : content_(content), text_(outer.text_), is_loaded_(outer.is_loaded_) {
  if (is_loaded_ || content.size() > kLoadedWhole) return;
  load(content);
  is_loaded_ = true;
}

void WireMessage::fail(const std::string& message) const {
  const auto byte = static_cast<size_t>(content_.data() - text_->content.data()) + at_;
  throw Error(ErrorKind::kInput, fmt::format("{}: byte {}: {}", text_->where, byte, message));
}

uint64_t WireMessage::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == content_.size())
      fail("the file ends within a number; expected a whole ONNX file; is the download complete?");
    const auto byte = static_cast<uint8_t>(content_[at_++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail("a number of more than ten bytes; expected protobuf; is it an ONNX file?");
}

bool WireMessage::next(WireField& field) {
  if (at_ == content_.size()) return false;
  load(content_.substr(at_, kLongestStart));
  const uint64_t key = varint();
  constexpr uint64_t kTypeBits = 3, kTypeMask = 7, kLargestNumber = (1 << 29) - 1;
  if (key >> kTypeBits > kLargestNumber || key >> kTypeBits == 0)
    fail("no field of protobuf has this number; is it an ONNX file?");
  field = {.number = static_cast<uint32_t>(key >> kTypeBits),
           .type = static_cast<WireField::Type>(key & kTypeMask)};
  const auto take = [&](uint64_t bytes) {
    const uint64_t left = content_.size() - at_;
    if (bytes > left)
      fail(
          fmt::format("a field of {} bytes, but {} are left; expected a whole ONNX file; is the "
                      "download complete?",
                      bytes, left));
    const std::string_view taken = content_.substr(at_, bytes);
    at_ += bytes;
    return taken;
  };
  switch (field.type) {
    case WireField::Type::kVarint:
      field.value = varint();
      return true;
    case WireField::Type::kFixed64:
      field.value = read_number<uint64_t>(take(sizeof(uint64_t)));
      return true;
    case WireField::Type::kFixed32:
      field.value = read_number<uint32_t>(take(sizeof(uint32_t)));
      return true;
    case WireField::Type::kBytes:
      field.bytes = take(varint());
      return true;
  }
  fail("a field of an unknown type; expected protobuf; is it an ONNX file?");
}

void WireMessage::need_bytes(const WireField& field) const {
  if (field.type != WireField::Type::kBytes)
    fail(fmt::format("field {} is a number, expected a text or a message", field.number));
}

WireMessage WireMessage::message(const WireField& field) const {
  need_bytes(field);
  return {*this, field.bytes};
}

std::string WireMessage::text(const WireField& field) const {
  need_bytes(field);
  constexpr size_t kLongestText = size_t{16} << 20;  // of names and metadata
  if (field.bytes.size() > kLongestText)
    fail(fmt::format("a text of {} bytes; expected at most {}", field.bytes.size(), kLongestText));
  load(field.bytes);
  return std::string(field.bytes);
}

std::string_view WireMessage::bytes(const WireField& field) const {
  need_bytes(field);
  return field.bytes;
}

int64_t WireMessage::integer(const WireField& field) const {
  if (field.type != WireField::Type::kVarint)
    fail(fmt::format("field {} is not a whole number", field.number));
  return field.integer();
}

void WireMessage::integers(const WireField& field, std::vector<int64_t>& all, size_t most) const {
  if (field.type == WireField::Type::kVarint) {
    if (all.size() < most) all.push_back(field.integer());
    return;
  }
  WireMessage packed = message(field);
  packed.load(packed.content_.substr(0, kLongestNumber * most));
  while (packed.at_ < packed.content_.size() && all.size() < most)
    all.push_back(static_cast<int64_t>(packed.varint()));
}

void WireMessage::numbers(const WireField& field, size_t width, std::vector<double>& all,
                          size_t most) const {
  const auto from_bits = [&](uint64_t bits) {
    return width == sizeof(float) ? double{std::bit_cast<float>(static_cast<uint32_t>(bits))}
                                  : std::bit_cast<double>(bits);
  };
  if (field.type == WireField::Type::kFixed32 || field.type == WireField::Type::kFixed64) {
    if (all.size() < most) all.push_back(from_bits(field.value));
    return;
  }
  need_bytes(field);
  load(field.bytes.substr(0, width * most));
  for (size_t at = 0; at + width <= field.bytes.size() && all.size() < most; at += width) {
    const std::string_view data = field.bytes.substr(at, width);
    all.push_back(from_bits(width == sizeof(float) ? read_number<uint32_t>(data)
                                                   : read_number<uint64_t>(data)));
  }
}

}  // namespace tilecast
