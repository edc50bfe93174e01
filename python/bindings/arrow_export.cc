// Hands tables of results to others through the Arrow C data interface.

#include <algorithm>
#include <array>

#include "bindings/table.h"

namespace tilecast::python {
namespace {

/// Rows of one record batch: offsets into texts stay below 2^31.
constexpr size_t kBatchRows = 1 << 16;

// The Arrow format of each type of column.
constexpr const char* format_of(const std::optional<double>*) { return "g"; }
constexpr const char* format_of(const std::optional<int64_t>*) { return "l"; }
constexpr const char* format_of(const std::optional<bool>*) { return "b"; }
constexpr const char* format_of(const std::optional<std::string>*) { return "u"; }

template <typename T>
const T* type_of(T ForecastTotals::*) {
  return nullptr;
}

/// Memory of one column, or of the batch.
struct Buffers {
  std::vector<uint8_t> validity;
  std::vector<uint8_t> data;     ///< numbers, bits or text
  std::vector<int32_t> offsets;  ///< of texts
  std::array<const void*, 3> pointers{};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> child_pointers;
};

void release_array(ArrowArray* array) {
  for (int64_t i = 0; i < array->n_children; ++i) {
    // A child that was moved away has no release.
    if (array->children[i]->release != nullptr) array->children[i]->release(array->children[i]);
  }
  delete static_cast<Buffers*>(array->private_data);
  array->release = nullptr;
}

void set_bit(std::vector<uint8_t>& bits, size_t index) {
  bits[index / 8] = static_cast<uint8_t>(bits[index / 8] | 1U << (index % 8));
}

size_t bytes_of_bits(size_t count) { return (count + 7) / 8; }

void add_value(Buffers& buffers, size_t, double value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  buffers.data.insert(buffers.data.end(), bytes, bytes + sizeof value);
}

void add_value(Buffers& buffers, size_t, int64_t value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  buffers.data.insert(buffers.data.end(), bytes, bytes + sizeof value);
}

void add_value(Buffers& buffers, size_t index, bool value) {
  buffers.data.resize(bytes_of_bits(index + 1));
  if (value) set_bit(buffers.data, index);
}

void add_value(Buffers& buffers, size_t, const std::string& value) {
  if (buffers.offsets.empty()) buffers.offsets.push_back(0);
  buffers.data.insert(buffers.data.end(), value.begin(), value.end());
  buffers.offsets.push_back(static_cast<int32_t>(buffers.data.size()));
}

struct Rows {
  const ForecastTable& table;
  size_t first = 0, count = 0;
};

template <typename T>
ArrowArray make_column(const Rows& rows, std::optional<T> ForecastTotals::* field) {
  constexpr bool kText = std::is_same_v<T, std::string>;
  auto buffers = std::make_unique<Buffers>();
  buffers->validity.resize(bytes_of_bits(rows.count));
  if (kText) buffers->offsets.push_back(0);
  int64_t missing = 0;
  for (size_t i = 0; i < rows.count; ++i) {
    const std::optional<T>& value = rows.table.of_row(rows.first + i).*field;
    add_value(*buffers, i, value ? *value : T{});
    if (value)
      set_bit(buffers->validity, i);
    else
      ++missing;
  }
  buffers->pointers[0] = buffers->validity.data();
  buffers->pointers[1] = buffers->data.data();
  if (kText) {
    buffers->pointers[1] = buffers->offsets.data();
    buffers->pointers[2] = buffers->data.data();
  }
  ArrowArray array{};
  array.length = static_cast<int64_t>(rows.count);
  array.null_count = missing;
  array.n_buffers = kText ? 3 : 2;
  array.buffers = buffers->pointers.data();
  array.release = release_array;
  array.private_data = buffers.release();
  return array;
}

ArrowArray make_batch(const Rows& rows) {
  auto buffers = std::make_unique<Buffers>();
  for (const TotalsColumn& column : totals_columns())
    buffers->children.push_back(
        std::visit([&](auto field) { return make_column(rows, field); }, column.field));
  for (ArrowArray& child : buffers->children) buffers->child_pointers.push_back(&child);
  ArrowArray array{};
  array.length = static_cast<int64_t>(rows.count);
  array.n_buffers = 1;
  array.n_children = static_cast<int64_t>(buffers->children.size());
  array.buffers = buffers->pointers.data();
  array.children = buffers->child_pointers.data();
  array.release = release_array;
  array.private_data = buffers.release();
  return array;
}

struct SchemaParts {
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> child_pointers;
};

void release_schema(ArrowSchema* schema) {
  for (int64_t i = 0; i < schema->n_children; ++i) {
    if (schema->children[i]->release != nullptr) schema->children[i]->release(schema->children[i]);
  }
  delete static_cast<SchemaParts*>(schema->private_data);
  schema->release = nullptr;
}

ArrowSchema make_schema(const char* format, std::string name, std::vector<ArrowSchema> children) {
  auto parts = std::make_unique<SchemaParts>();
  parts->name = std::move(name);
  parts->children = std::move(children);
  for (ArrowSchema& child : parts->children) parts->child_pointers.push_back(&child);
  ArrowSchema schema{};
  schema.format = format;
  schema.name = parts->name.c_str();
  schema.flags = ARROW_FLAG_NULLABLE;
  schema.n_children = static_cast<int64_t>(parts->children.size());
  schema.children = parts->child_pointers.data();
  schema.release = release_schema;
  schema.private_data = parts.release();
  return schema;
}

ArrowSchema table_schema() {
  std::vector<ArrowSchema> columns;
  for (const TotalsColumn& column : totals_columns()) {
    const char* format =
        std::visit([](auto field) { return format_of(type_of(field)); }, column.field);
    columns.push_back(make_schema(format, std::string(column.name), {}));
  }
  ArrowSchema schema = make_schema("+s", "", std::move(columns));
  schema.flags = 0;
  return schema;
}

/// Batches that a stream has still to give.
struct Cursor {
  std::shared_ptr<const ForecastTable> table;
  size_t next = 0;
};

}  // namespace

void export_stream(std::shared_ptr<const ForecastTable> table, ArrowArrayStream& out) {
  out.get_schema = [](ArrowArrayStream*, ArrowSchema* schema) {
    *schema = table_schema();
    return 0;
  };
  out.get_next = [](ArrowArrayStream* stream, ArrowArray* array) {
    Cursor& cursor = *static_cast<Cursor*>(stream->private_data);
    const size_t left = cursor.table->rows.size() - cursor.next;
    *array = {};  // without release: the end
    if (left == 0) return 0;
    const size_t count = std::min(left, kBatchRows);
    *array = make_batch({*cursor.table, cursor.next, count});
    cursor.next += count;
    return 0;
  };
  out.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  out.release = [](ArrowArrayStream* stream) {
    delete static_cast<Cursor*>(stream->private_data);
    stream->release = nullptr;
  };
  out.private_data = new Cursor{std::move(table)};
}

}  // namespace tilecast::python
