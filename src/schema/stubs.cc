#include "schema/stubs.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "schema/results.h"

namespace tilecast {
namespace {

void add_record(std::vector<const RecordDef*>& records, const RecordDef& def);
void add_records_of(std::vector<const RecordDef*>& records, const FieldType& type) {
  if (type.record != nullptr) add_record(records, *type.record);
  for (const FieldType& item : type.items) add_records_of(records, item);
}
/// Records come after those that they contain.
void add_record(std::vector<const RecordDef*>& records, const RecordDef& def) {
  if (std::find(records.begin(), records.end(), &def) != records.end()) return;
  for (const FieldDef& field : def.fields) add_records_of(records, field.type);
  records.push_back(&def);
}

std::vector<const RecordDef*> all_records() {
  std::vector<const RecordDef*> records;
  for (const ResultDef& result : results()) add_record(records, *result.record);
  return records;
}

/// A type in Python's words.
std::string python_type(const FieldType& type) {
  const auto plain = [&]() -> std::string {
    switch (type.kind) {
      case FieldKind::kBool:
        return "bool";
      case FieldKind::kWhole:
        return "int";
      case FieldKind::kNumber:
        return "float";
      case FieldKind::kText:
        return "str";
      case FieldKind::kRecord:
        return std::string(type.record->name);
      case FieldKind::kList: {
        const std::string item = python_type(type.items.front());
        if (type.length == 0) return fmt::format("list[{}]", item);
        std::string items = item;
        for (size_t i = 1; i < type.length; ++i) items += ", " + item;
        return fmt::format("tuple[{}]", items);
      }
      case FieldKind::kMap:
        return fmt::format("dict[str, {}]", python_type(type.items.front()));
      case FieldKind::kOneOf:
        break;
    }
    std::string any;
    for (const FieldType& item : type.items) any += (any.empty() ? "" : " | ") + python_type(item);
    return any;
  };
  return type.nullable ? plain() + " | None" : plain();
}

std::string doc_with_unit(const FieldDef& field) {
  return field.unit.empty() ? std::string(field.doc)
                            : fmt::format("{} [{}]", field.doc, field.unit);
}

/// A quote at the end would close the docstring.
std::string in_docstring(const std::string& text) {
  return text.ends_with('"') ? text + "." : text;
}

/// A type in the words of the reference page.
/// A link to the record's heading, whose anchor is in lower case.
std::string link(const RecordDef& record) {
  return fmt::format("[{}](#{})", record.name, normalized_name(record.name));
}

std::string page_type(const FieldType& type) {
  if (type.kind == FieldKind::kText && !type.words.empty()) {
    std::string words;
    for (const std::string_view word : type.words)
      words += fmt::format("{}`{}`", words.empty() ? "" : ", ", word);
    return type.nullable ? words + ", null" : words;
  }
  FieldType plain = type;
  plain.nullable = false;
  std::string text;
  if (type.kind == FieldKind::kRecord)
    text = link(*type.record);
  else if (type.kind == FieldKind::kList && type.items.front().kind == FieldKind::kRecord)
    text = "list of " + link(*type.items.front().record);
  else
    text = python_type(plain);
  return type.nullable ? text + ", null" : text;
}

}  // namespace

std::string result_stubs(std::string_view head) {
  std::string text;
  for (const RecordDef* record : all_records()) {
    const std::string own = fmt::format("_{}", record->name);
    const bool has_own = head.find(fmt::format("\nclass {}(", own)) != std::string_view::npos;
    text += fmt::format("\nclass {}({}):\n    \"\"\"{}\"\"\"\n", record->name,
                        has_own ? own : "Record", record->doc);
    for (const FieldDef& field : record->fields)
      text += fmt::format("    {}: {}\n    \"\"\"{}\"\"\"\n", field.name, python_type(field.type),
                          in_docstring(doc_with_unit(field)));
  }
  return text;
}

std::string result_reference() {
  std::string text =
      "# Results\n\n"
      "Made by `tools/generate.sh` from the tables of fields beside the results "
      "(`include/tilecast`); do not edit.\n\n"
      "JSON, Python and C++ have these fields by these names. \"Left out\": JSON has no such key "
      "where the field has no value (Python: `None`); other fields without a value are `null`. "
      "JSON schemas are in [docs/schema](../schema).\n\n"
      "| command | result |\n|---|---|\n";
  for (const ResultDef& result : results())
    text += fmt::format("| `{}` | {}{} |\n", result_command(result),
                        result.is_list ? "list of " : "", link(*result.record));
  for (const RecordDef* record : all_records()) {
    text += fmt::format("\n## {}\n{}\n\n| field | unit | type | what it is |\n|---|---|---|---|\n",
                        record->name, record->doc);
    for (const FieldDef& field : record->fields)
      text += fmt::format("| `{}` | {} | {}{} | {} |\n", field.name, field.unit,
                          page_type(field.type), field.left_out ? ", left out" : "", field.doc);
  }
  return text;
}

}  // namespace tilecast
