#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>

namespace tilecast {

struct RecordDef;
struct Value;

/// A record in memory, with the table of its fields.
struct RecordRef {
  const RecordDef* def;
  const void* at;
};

struct ListRef {
  const void* at;
  size_t size;
  Value (*item)(const void* list, size_t i);
};

/// Values by name, in the order in which they are stored.
struct MapRef {
  const void* at;
  size_t size;
  std::string_view (*key)(const void* map, size_t i);
  Value (*item)(const void* map, size_t i);
};

/// The value of a field, without its C++ type: nothing (null), or one of the kinds below. It points
/// into the record that it was read from, or into `owner` where it was computed.
struct Value {
  std::variant<std::monostate, bool, int64_t, double, std::string_view, RecordRef, ListRef, MapRef>
      data;
  std::shared_ptr<const void> owner;

  bool is_null() const { return data.index() == 0; }
};

}  // namespace tilecast
