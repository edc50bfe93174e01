// The files that come with the program, field by field.

#include <fmt/format.h>

#include <filesystem>

#include "base/embedded.h"
#include "base/json.h"
#include "base/text.h"
#include "devices/cluster.h"
#include "devices/registry.h"
#include "importers/bundled.h"
#include "importers/model.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

using Field = DataFile::Field;

std::string plain(const Json& value) {
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_number_integer()) return format_integer(value.get<int64_t>());
  return value.dump();
}

/// "1.98 GHz"; numbers without a unit as they are.
std::string with_unit(const Json& value, const std::string& unit) {
  if (unit == "1" || !value.is_number()) return plain(value);
  if (unit == "B") return format_bytes(static_cast<int64_t>(value.get<double>()));
  return format_si(value.get<double>(), unit);
}

bool is_simple_list(const Json& value) {
  if (!value.is_array()) return false;
  for (const Json& item : value) {
    if (item.is_structured()) return false;
  }
  return true;
}

std::string list_text(const Json& list) {
  constexpr size_t kShown = 8;
  std::vector<std::string> parts;
  for (const Json& item : list) {
    if (parts.size() == kShown && list.size() > kShown + 1) {
      parts.push_back(fmt::format("... ({} in all)", list.size()));
      break;
    }
    parts.push_back(plain(item));
  }
  return join(parts, ", ");
}

/// A quantity ({value, unit, source}), or what is in an object or a list.
void add_fields(const Json& value, const std::string& name, std::vector<Field>& fields) {
  if (value.is_object() && value.contains("value")) {
    fields.push_back({name, with_unit(value["value"], value.value("unit", "1")),
                      printable(value.value("source", ""))});
  } else if (value.is_object()) {
    for (const auto& item : value.items())
      add_fields(item.value(), name.empty() ? item.key() : name + "." + item.key(), fields);
  } else if (is_simple_list(value)) {
    fields.push_back({name, list_text(value), ""});
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i)
      add_fields(value[i], fmt::format("{}[{}]", name, i), fields);
  } else {
    fields.push_back({name, plain(value), ""});
  }
}

DataFile read_embedded(const std::string& path, const std::string& name) {
  DataFile file{.name = name, .json = {}, .values = {}};
  for (const EmbeddedFile& each : embedded_files(path)) {
    if (each.path != path) continue;
    file.json = each.content;
    add_fields(parse_json(each.content, path), "", file.values);
  }
  return file;
}

}  // namespace

std::optional<DataFile> find_data_file(const std::string& kind, const std::string& name) {
  if (kind == "models") {
    const std::optional<std::string> model = find_bundled_model(name);
    if (!model) return std::nullopt;
    return read_embedded("models/" + *model + ".json", *model);
  }
  if (kind == "clusters") {
    for (const Cluster& cluster : bundled_clusters()) {
      if (is_named(cluster, name))
        return read_embedded("clusters/" + cluster.id + ".json", cluster.id);
    }
    return std::nullopt;
  }
  for (const Device& device : bundled_devices()) {
    if (kind == "gpus" && is_named(device, name))
      return read_embedded("devices/" + device.id + ".json", device.id);
  }
  return std::nullopt;
}

std::vector<FamilyEntry> family_catalog() {
  std::vector<FamilyEntry> entries;
  for (const auto& [name, description] : model_families()) entries.push_back({name, description});
  return entries;
}

}  // namespace tilecast
