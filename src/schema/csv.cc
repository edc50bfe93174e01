#include "schema/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/csv.h"

namespace tilecast {
namespace {

/// A column: a field of a record, of a part of it, or one name of a field with values by name.
struct Column {
  std::string name;
  std::vector<const FieldDef*> path;
  std::string key;  ///< "": the field itself
};

bool is_list_of_scalars(const FieldType& type) {
  const FieldKind item = type.items.front().kind;
  return item == FieldKind::kWhole || item == FieldKind::kNumber || item == FieldKind::kText;
}

Value at(const std::vector<const FieldDef*>& path, Value record) {
  for (const FieldDef* field : path) {
    if (record.is_null()) break;
    record = field->get(std::get<RecordRef>(record.data).at);
  }
  return record;
}

/// The names that a field has in any row, in order of first use.
std::vector<std::string> keys_of(const std::vector<const FieldDef*>& path, const ListRef& rows) {
  std::vector<std::string> keys;
  for (size_t r = 0; r < rows.size; ++r) {
    const Value value = at(path, rows.item(rows.at, r));
    const auto* map = std::get_if<MapRef>(&value.data);
    for (size_t i = 0; map != nullptr && i < map->size; ++i) {
      const std::string key(map->key(map->at, i));
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

void add_columns(std::vector<Column>& columns, const RecordDef& def, const std::string& prefix,
                 std::vector<const FieldDef*> path, const ListRef& rows) {
  for (const FieldDef& field : def.fields) {
    path.push_back(&field);
    const FieldType& type = field.type;
    if (type.kind == FieldKind::kRecord) {
      add_columns(columns, *type.record, prefix + field.name + "_", path, rows);
    } else if (type.kind == FieldKind::kMap) {
      for (std::string& key : keys_of(path, rows))
        columns.push_back({.name = prefix + key, .path = path, .key = key});
    } else if (type.kind != FieldKind::kList || is_list_of_scalars(type)) {
      columns.push_back({.name = prefix + field.name, .path = path, .key = ""});
    }
    path.pop_back();
  }
}

std::string cell(const Value& value) {
  struct Text {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(bool v) const { return fmt::to_string(v); }
    std::string operator()(int64_t v) const { return fmt::to_string(v); }
    std::string operator()(double v) const { return fmt::to_string(v); }
    std::string operator()(std::string_view v) const { return csv_cell(v); }
    std::string operator()(const RecordRef&) const { return ""; }
    std::string operator()(const MapRef&) const { return ""; }
    std::string operator()(const ListRef& list) const {
      std::string text;
      for (size_t i = 0; i < list.size; ++i) {
        const Value item = list.item(list.at, i);
        const bool is_text = std::holds_alternative<std::string_view>(item.data);
        text += (i == 0 ? "" : is_text ? " " : "x") + cell(item);
      }
      return text;
    }
  };
  return std::visit(Text{}, value.data);
}

std::string cell(const Column& column, const Value& row) {
  const Value value = at(column.path, row);
  if (column.key.empty()) return cell(value);
  const auto* map = std::get_if<MapRef>(&value.data);
  for (size_t i = 0; map != nullptr && i < map->size; ++i) {
    if (map->key(map->at, i) == column.key) return cell(map->item(map->at, i));
  }
  return "";
}

}  // namespace

std::string csv_text(const RecordDef& def, const ListRef& rows) {
  return csv_lines(def, rows, {}, true);
}

std::string csv_lines(const RecordDef& def, const ListRef& rows, std::span<const std::string> names,
                      bool with_header) {
  std::vector<Column> columns;
  add_columns(columns, def, "", {}, rows);
  std::erase_if(columns, [&](const Column& column) {
    return !names.empty() && std::find(names.begin(), names.end(), column.name) == names.end();
  });
  std::string text;
  for (size_t c = 0; with_header && c < columns.size(); ++c)
    text += (c > 0 ? "," : "") + columns[c].name;
  if (with_header) text += '\n';
  for (size_t r = 0; r < rows.size; ++r) {
    const Value row = rows.item(rows.at, r);
    for (size_t c = 0; c < columns.size(); ++c) text += (c > 0 ? "," : "") + cell(columns[c], row);
    text += '\n';
  }
  return text;
}

}  // namespace tilecast
