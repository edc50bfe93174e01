// Reads tables through the Arrow C data interface.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "base/text.h"
#include "bindings/table.h"
#include "tilecast/error.h"

namespace tilecast::python {
namespace {

/// The text of the value at an index; nullopt if it is missing.
using Reader = std::function<std::optional<std::string>(int64_t)>;

bool bit(const void* bits, int64_t index) {
  return (static_cast<const uint8_t*>(bits)[index / 8] >> (index % 8) & 1) != 0;
}

/// Values of a type that `text` turns into text, where they are not missing. `text` gets the
/// position in the buffers.
template <typename Text>
Reader reader_of(const ArrowArray& array, Text text) {
  const void* validity = array.null_count == 0 ? nullptr : array.buffers[0];
  return [validity, offset = array.offset, text](int64_t index) -> std::optional<std::string> {
    const int64_t at = offset + index;
    if (validity != nullptr && !bit(validity, at)) return std::nullopt;
    return text(at);
  };
}

template <typename T>
Reader number_reader(const ArrowArray& array) {
  const T* values = static_cast<const T*>(array.buffers[1]);
  return reader_of(array, [values](int64_t at) -> std::optional<std::string> {
    const T value = values[at];
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(value)) return std::nullopt;  // how pandas marks a missing number
    }
    if constexpr (sizeof(T) == 1) return fmt::format("{}", static_cast<int>(value));
    return fmt::format("{}", value);
  });
}

template <typename Offset>
Reader text_reader(const ArrowArray& array) {
  const Offset* offsets = static_cast<const Offset*>(array.buffers[1]);
  const char* data = static_cast<const char*>(array.buffers[2]);
  return reader_of(array, [offsets, data](int64_t at) -> std::optional<std::string> {
    return std::string(data + offsets[at], static_cast<size_t>(offsets[at + 1] - offsets[at]));
  });
}

/// Views of 16 bytes: a length, then up to 12 bytes of text, or a prefix and where the text is.
Reader view_reader(const ArrowArray& array) {
  const char* views = static_cast<const char*>(array.buffers[1]);
  const void** buffers = array.buffers;
  return reader_of(array, [views, buffers](int64_t at) -> std::optional<std::string> {
    constexpr int32_t kInline = 12;
    const char* view = views + at * 16;
    int32_t size = 0, buffer = 0, offset = 0;
    std::memcpy(&size, view, 4);
    if (size <= kInline) return std::string(view + 4, static_cast<size_t>(size));
    std::memcpy(&buffer, view + 8, 4);
    std::memcpy(&offset, view + 12, 4);
    const char* data = static_cast<const char*>(buffers[2 + buffer]);
    return std::string(data + offset, static_cast<size_t>(size));
  });
}

Reader make_reader(const ArrowSchema& schema, const ArrowArray& array);

/// The indexes are in `array` itself, the values in its dictionary.
Reader dictionary_reader(const ArrowSchema& schema, const ArrowArray& array) {
  ArrowSchema index_schema = schema;
  index_schema.dictionary = nullptr;
  const Reader index = make_reader(index_schema, array);
  const Reader value = make_reader(*schema.dictionary, *array.dictionary);
  return [index, value](int64_t at) -> std::optional<std::string> {
    const std::optional<std::string> code = index(at);
    return code ? value(std::stoll(*code)) : std::nullopt;
  };
}

Reader make_reader(const ArrowSchema& schema, const ArrowArray& array) {
  if (schema.dictionary != nullptr) return dictionary_reader(schema, array);
  const std::string_view format = schema.format;
  if (format == "n") return [](int64_t) { return std::nullopt; };
  if (format == "b") {
    const void* bits = array.buffers[1];
    return reader_of(array, [bits](int64_t at) -> std::optional<std::string> {
      return bit(bits, at) ? "on" : "off";
    });
  }
  if (format == "c") return number_reader<int8_t>(array);
  if (format == "C") return number_reader<uint8_t>(array);
  if (format == "s") return number_reader<int16_t>(array);
  if (format == "S") return number_reader<uint16_t>(array);
  if (format == "i") return number_reader<int32_t>(array);
  if (format == "I") return number_reader<uint32_t>(array);
  if (format == "l") return number_reader<int64_t>(array);
  if (format == "L") return number_reader<uint64_t>(array);
  if (format == "f") return number_reader<float>(array);
  if (format == "g") return number_reader<double>(array);
  if (format == "u") return text_reader<int32_t>(array);
  if (format == "U") return text_reader<int64_t>(array);
  if (format == "vu") return view_reader(array);
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format("column '{}': expected text, whole numbers, floats or booleans, found the Arrow "
                  "type '{}'; convert the column",
                  shown_name(schema.name), printable(format)));
}

std::vector<ColumnBuilder> make_builders(const ArrowSchema& schema) {
  if (std::string_view(schema.format) != "+s")
    throw Error(ErrorKind::kInput,
                fmt::format("expected a table with a column for each option, found an array of the "
                            "Arrow type '{}'",
                            printable(schema.format)));
  std::vector<ColumnBuilder> builders;
  for (int64_t i = 0; i < schema.n_children; ++i)
    builders.emplace_back(option_of_keyword(schema.children[i]->name));
  return builders;
}

void add_batch(const ArrowSchema& schema, const ArrowArray& array,
               std::vector<ColumnBuilder>& builders) {
  const void* validity = array.null_count == 0 ? nullptr : array.buffers[0];
  for (size_t column = 0; column < builders.size(); ++column) {
    const Reader read = make_reader(*schema.children[column], *array.children[column]);
    for (int64_t row = array.offset; row < array.offset + array.length; ++row) {
      const bool missing = validity != nullptr && !bit(validity, row);
      if (const auto text = missing ? std::nullopt : read(row))
        builders[column].add(*text);
      else
        builders[column].add_missing();
    }
  }
}

OptionTable take_table(std::vector<ColumnBuilder>& builders, size_t rows) {
  OptionTable table{.rows = rows};
  for (ColumnBuilder& builder : builders) table.columns.push_back(builder.take());
  return table;
}

/// Owns a schema or an array that a stream gave.
template <typename T>
struct Owned {
  T value{};
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (value.release != nullptr) value.release(&value);
  }
};

void check(ArrowArrayStream& stream, int code) {
  if (code == 0) return;
  const char* message = stream.get_last_error(&stream);
  throw Error(ErrorKind::kIo, fmt::format("the Arrow stream fails: {}",
                                          message != nullptr ? printable(message)
                                                             : std::string(std::strerror(code))));
}

}  // namespace

OptionTable import_batch(const ArrowSchema& schema, const ArrowArray& array) {
  std::vector<ColumnBuilder> builders = make_builders(schema);
  add_batch(schema, array, builders);
  return take_table(builders, static_cast<size_t>(array.length));
}

OptionTable import_stream(ArrowArrayStream& stream) {
  Owned<ArrowSchema> schema;
  check(stream, stream.get_schema(&stream, &schema.value));
  std::vector<ColumnBuilder> builders = make_builders(schema.value);
  size_t rows = 0;
  while (true) {
    Owned<ArrowArray> array;
    check(stream, stream.get_next(&stream, &array.value));
    if (array.value.release == nullptr) return take_table(builders, rows);
    rows += static_cast<size_t>(array.value.length);
    add_batch(schema.value, array.value, builders);
  }
}

}  // namespace tilecast::python
