#include "schema/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Appends values to a text as nlohmann's `dump(1)` writes them, without building its tree.
class JsonWriter {
 public:
  std::string text;
  bool on_one_line = false;

  void write(const Value& value, size_t depth) {
    std::visit([&](const auto& data) { write_data(data, depth); }, value.data);
  }

  template <typename Wanted>
  void write_fields(const RecordRef& record, size_t depth, const Wanted& wanted) {
    bool any = false;
    for (const uint16_t i : record.def->by_name) {
      const FieldDef& field = record.def->fields[i];
      if (!wanted(field)) continue;
      const Value value = field.get(record.at);
      if (field.left_out && value.is_null()) continue;
      begin_item(any, '{', depth);
      text.append(1, '"').append(field.name).append("\": ");
      write(value, depth + 1);
    }
    end(any, '{', '}', depth);
  }

 private:
  void write_data(std::monostate, size_t) { text += "null"; }
  void write_data(bool v, size_t) { text += v ? "true" : "false"; }
  void write_data(int64_t v, size_t) { fmt::format_to(std::back_inserter(text), "{}", v); }
  void write_data(double v, size_t) {
    if (!std::isfinite(v)) {
      text += "null";
      return;
    }
    std::array<char, 64> digits;
    const char* const end =
        nlohmann::detail::to_chars(digits.data(), digits.data() + digits.size(), v);
    text.append(digits.data(), static_cast<size_t>(end - digits.data()));
  }
  void write_data(std::string_view v, size_t) {
    const bool plain = std::all_of(
        v.begin(), v.end(), [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
    if (plain)
      text.append(1, '"').append(v).append(1, '"');
    else
      text += nlohmann::json(v).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  void write_data(const RecordRef& record, size_t depth) {
    write_fields(record, depth, [](const FieldDef&) { return true; });
  }
  void write_data(const ListRef& list, size_t depth) {
    bool any = false;
    for (size_t i = 0; i < list.size; ++i) {
      begin_item(any, '[', depth);
      write(list.item(list.at, i), depth + 1);
    }
    end(any, '[', ']', depth);
  }
  void write_data(const MapRef& map, size_t depth) {
    std::vector<size_t> order(map.size);
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return map.key(map.at, a) < map.key(map.at, b); });
    bool any = false;
    for (const size_t i : order) {
      begin_item(any, '{', depth);
      write_data(map.key(map.at, i), depth);
      text += ": ";
      write(map.item(map.at, i), depth + 1);
    }
    end(any, '{', '}', depth);
  }

  void new_line(size_t depth) {
    if (!on_one_line) text.append(1, '\n').append(depth, ' ');
  }
  void begin_item(bool& any, char open, size_t depth) {
    text += any ? ',' : open;
    any = true;
    new_line(depth + 1);
  }
  void end(bool any, char open, char close, size_t depth) {
    if (any)
      new_line(depth);
    else
      text += open;
    text += close;
  }
};

/// Throws Error{kInput} for a name that the record lacks.
void check_names(const RecordDef& def, std::span<const std::string> names) {
  for (const std::string& name : names) {
    const auto has_name = [&](const FieldDef& field) { return field.name == name; };
    if (std::any_of(def.fields.begin(), def.fields.end(), has_name)) continue;
    std::vector<std::string> known;
    for (const FieldDef& field : def.fields) known.push_back(field.name);
    throw Error(ErrorKind::kInput, fmt::format("{} has no field '{}'{}", def.name, shown_name(name),
                                               did_you_mean(name, known)));
  }
}

}  // namespace

std::string json_line(const RecordRef& record, std::span<const std::string> names) {
  check_names(*record.def, names);
  JsonWriter writer;
  writer.on_one_line = true;
  writer.write_fields(record, 0, [&](const FieldDef& field) {
    return names.empty() || std::find(names.begin(), names.end(), field.name) != names.end();
  });
  return std::move(writer.text);
}

std::string json_text(const RecordRef& record, std::span<const std::string> names) {
  check_names(*record.def, names);
  JsonWriter writer;
  writer.write_fields(record, 0, [&](const FieldDef& field) {
    return std::find(names.begin(), names.end(), field.name) != names.end();
  });
  writer.text += '\n';
  return std::move(writer.text);
}

std::string json_text(const Value& value) {
  JsonWriter writer;
  writer.write(value, 0);
  writer.text += '\n';
  return std::move(writer.text);
}

}  // namespace tilecast
