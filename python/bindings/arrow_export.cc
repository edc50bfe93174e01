// Hands tables of results to others through the Arrow C data interface.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/table.h"

namespace tilecast::python {
namespace {

/// Rows of one record batch: offsets into texts stay below 2^31.
constexpr size_t kBatchRows = 1 << 16;

const char* format_of(FieldKind kind) {
  switch (kind) {
    case FieldKind::kBool:
      return "b";
    case FieldKind::kWhole:
      return "l";
    case FieldKind::kNumber:
      return "g";
    default:
      return "u";
  }
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

void add_bytes(Buffers& buffers, const void* from, size_t count) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  buffers.data.insert(buffers.data.end(), bytes, bytes + count);
}

/// Appends the value of row `index`; a missing one has zeros, or no text.
void add_value(Buffers& buffers, size_t index, FieldKind kind, const Value& value) {
  if (kind == FieldKind::kBool) {
    buffers.data.resize(bytes_of_bits(index + 1));
    if (!value.is_null() && std::get<bool>(value.data)) set_bit(buffers.data, index);
  } else if (kind == FieldKind::kWhole) {
    const int64_t number = value.is_null() ? 0 : std::get<int64_t>(value.data);
    add_bytes(buffers, &number, sizeof number);
  } else if (kind == FieldKind::kNumber) {
    const double number = value.is_null() ? 0 : std::get<double>(value.data);
    add_bytes(buffers, &number, sizeof number);
  } else {
    if (!value.is_null()) {
      const auto text = std::get<std::string_view>(value.data);
      add_bytes(buffers, text.data(), text.size());
    }
    buffers.offsets.push_back(static_cast<int32_t>(buffers.data.size()));
  }
}

struct Rows {
  const ExportedTable& table;
  size_t first = 0, count = 0;
};

ArrowArray make_column(const Rows& rows, const ExportedTable::Column& column) {
  const bool is_text = column.kind == FieldKind::kText;
  auto buffers = std::make_unique<Buffers>();
  buffers->validity.resize(bytes_of_bits(rows.count));
  if (is_text) buffers->offsets.push_back(0);
  int64_t missing = 0;
  for (size_t i = 0; i < rows.count; ++i) {
    const Value value = column.get(rows.first + i);
    add_value(*buffers, i, column.kind, value);
    if (value.is_null())
      ++missing;
    else
      set_bit(buffers->validity, i);
  }
  buffers->pointers[0] = buffers->validity.data();
  buffers->pointers[1] = buffers->data.data();
  if (is_text) {
    buffers->pointers[1] = buffers->offsets.data();
    buffers->pointers[2] = buffers->data.data();
  }
  ArrowArray array{};
  array.length = static_cast<int64_t>(rows.count);
  array.null_count = missing;
  array.n_buffers = is_text ? 3 : 2;
  array.buffers = buffers->pointers.data();
  array.release = release_array;
  array.private_data = buffers.release();
  return array;
}

ArrowArray make_batch(const Rows& rows) {
  auto buffers = std::make_unique<Buffers>();
  for (const ExportedTable::Column& column : rows.table.columns)
    buffers->children.push_back(make_column(rows, column));
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

/// The unit and the meaning of a column, as the C data interface encodes metadata.
std::string metadata_of(const ExportedTable::Column& column) {
  std::vector<std::pair<std::string, std::string>> entries;
  if (!column.unit.empty()) entries.emplace_back("unit", column.unit);
  if (!column.doc.empty()) entries.emplace_back("doc", column.doc);
  std::string bytes;
  const auto add_whole = [&bytes](size_t value) {
    const auto whole = static_cast<int32_t>(value);
    bytes.append(reinterpret_cast<const char*>(&whole), sizeof whole);
  };
  add_whole(entries.size());
  for (const auto& [key, value] : entries) {
    for (const std::string& text : {key, value}) {
      add_whole(text.size());
      bytes += text;
    }
  }
  return bytes;
}

struct SchemaParts {
  std::string name;
  std::string metadata;
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

ArrowSchema make_schema(const char* format, std::string name, std::string metadata,
                        std::vector<ArrowSchema> children) {
  auto parts = std::make_unique<SchemaParts>();
  parts->name = std::move(name);
  parts->metadata = std::move(metadata);
  parts->children = std::move(children);
  for (ArrowSchema& child : parts->children) parts->child_pointers.push_back(&child);
  ArrowSchema schema{};
  schema.format = format;
  schema.name = parts->name.c_str();
  if (!parts->metadata.empty()) schema.metadata = parts->metadata.data();
  schema.flags = ARROW_FLAG_NULLABLE;
  schema.n_children = static_cast<int64_t>(parts->children.size());
  schema.children = parts->child_pointers.data();
  schema.release = release_schema;
  schema.private_data = parts.release();
  return schema;
}

ArrowSchema table_schema(const ExportedTable& table) {
  std::vector<ArrowSchema> columns;
  for (const ExportedTable::Column& column : table.columns)
    columns.push_back(make_schema(format_of(column.kind), column.name, metadata_of(column), {}));
  ArrowSchema schema = make_schema("+s", "", "", std::move(columns));
  schema.flags = 0;
  return schema;
}

/// Batches that a stream has still to give.
struct Cursor {
  std::shared_ptr<const ExportedTable> table;
  size_t next = 0;
};

void export_stream(std::shared_ptr<const ExportedTable> table, ArrowArrayStream& out) {
  out.get_schema = [](ArrowArrayStream* stream, ArrowSchema* schema) {
    *schema = table_schema(*static_cast<Cursor*>(stream->private_data)->table);
    return 0;
  };
  out.get_next = [](ArrowArrayStream* stream, ArrowArray* array) {
    Cursor& cursor = *static_cast<Cursor*>(stream->private_data);
    const size_t left = cursor.table->rows - cursor.next;
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

}  // namespace

py::capsule export_table(std::shared_ptr<const ExportedTable> table) {
  auto stream = std::make_unique<ArrowArrayStream>();
  export_stream(std::move(table), *stream);
  return py::capsule(stream.release(), "arrow_array_stream", [](PyObject* capsule) {
    auto* stream =
        static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
    if (stream->release != nullptr) stream->release(stream);
    delete stream;
  });
}

}  // namespace tilecast::python
