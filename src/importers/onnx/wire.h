#pragma once

// A reader of protobuf's wire format (protobuf.dev/programming-guides/encoding), over memory that
// belongs to the caller. Goals: nothing is copied, and of a large message only what is asked for is
// loaded, so that the weights in a file are never read;
// errors name the byte. Non-goals: schemas, groups, writing. libprotobuf is not used: its start-up
// would be paid by every forecast, and it reads a message whole, weights included. libonnx of
// Debian 12 knows operator sets up to 17 only.
// protozero (1.7) is not used either: it casts the length of a field to 32 bits, so that a field of
// 4 GiB and 8 bytes is read as one of 8 instead of being refused, and its exceptions have neither
// the byte nor the two lengths that the messages here state.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "importers/model.h"

namespace tilecast {

/// One field of a message.
struct WireField {
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint32_t number = 0;
  Type type = Type::kVarint;
  uint64_t value = 0;      ///< of a number
  std::string_view bytes;  ///< of a text, bytes or a message

  int64_t integer() const { return static_cast<int64_t>(value); }
};

/// The fields of one message.
class WireMessage {
 public:
  explicit WireMessage(const ModelText& text);

  /// Reads the next field; false at the end. Throws Error{kInput} that names the byte if the
  /// content ends within a field, or is not protobuf.
  bool next(WireField& field);

  /// A message in a field. Throws Error{kInput} if the field has another type.
  WireMessage message(const WireField& field) const;
  /// A text in a field.
  std::string text(const WireField& field) const;
  /// A whole number in a field.
  int64_t integer(const WireField& field) const;
  /// Appends the numbers of a repeated field, packed or not. More than `most` in all: the rest is
  /// left out.
  void integers(const WireField& field, std::vector<int64_t>& all, size_t most) const;
  /// Reads floats (4 bytes) or doubles (8 bytes).
  void numbers(const WireField& field, size_t width, std::vector<double>& all, size_t most) const;

  /// The content of a field, which may not be loaded yet.
  std::string_view bytes(const WireField& field) const;
  /// Loads a part of the content; within a message that is loaded whole this costs nothing.
  void load(std::string_view part) const {
    if (!is_loaded_) text_->file->load(part);
  }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  uint64_t varint();
  void need_bytes(const WireField& field) const;

  WireMessage(const WireMessage& outer, std::string_view content);

  std::string_view content_;
  const ModelText* text_;
  bool is_loaded_;  ///< all of the content
  size_t at_ = 0;
};

}  // namespace tilecast
