#include "api/accelerator_mappings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;

struct Entry {
  std::string where;  ///< for messages
  std::string layer, kind, sizes, mapping;
  bool used = false;

  bool is_for(const std::string& name, const accelerator::Layer& given) const {
    return (layer.empty() || layer == name) &&
           (kind.empty() || kind == accelerator::layer_kind_name(given.kind)) &&
           (sizes.empty() || sizes == layer_sizes_text(given));
  }
};

std::vector<Entry> read_entries(const std::string& path) {
  const std::string where = printable(path);
  const Json json = parse_json(read_file(path, kMostBytes), where);
  const JsonObject file(json, where);
  file.reject_unknown({"schema_version", "model", "accelerator", "layers"});
  file.integer({"schema_version"}, 1, 1);
  if (!file.has("layers") || !file.json()["layers"].is_array())
    file.fail("layers", "expected a list of {\"layer\" or \"sizes\", \"mapping\"}");
  std::vector<Entry> entries;
  for (const Json& item : file.json()["layers"]) {
    Entry entry{.where = fmt::format("{}: layers[{}]", where, entries.size())};
    const JsonObject object(item, entry.where);
    object.reject_unknown({"layer", "kind", "sizes", "mapping", "note"});
    const auto text = [&](const char* key) {
      return object.has(key) ? object.string(key) : std::string();
    };
    entry.layer = text("layer");
    entry.kind = text("kind");
    entry.sizes = text("sizes");
    entry.mapping = object.string("mapping");
    if (entry.layer.empty() && entry.sizes.empty())
      object.fail("layer", "state the name of the layer, or its sizes");
    if (entry.mapping.empty()) object.fail("mapping", "is empty; leave the entry out");
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// The entry of a layer: of two, the one that states its name.
Entry* entry_of(std::vector<Entry>& entries, const std::string& name,
                const accelerator::Layer& layer) {
  Entry* found = nullptr;
  for (Entry& entry : entries) {
    if (!entry.is_for(name, layer)) continue;
    if (found != nullptr && found->layer.empty() == entry.layer.empty())
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: is for layer '{}', as {} is; remove one of them", entry.where,
                              shown_name(name), found->where));
    if (found == nullptr || found->layer.empty()) found = &entry;
  }
  return found;
}

/// What an entry that no layer has names, and what is like it.
[[noreturn]] void fail_unused(const Entry& entry, const std::vector<PassLayer>& launches,
                              const accelerator::Design& design) {
  std::vector<std::string> known;
  for (const PassLayer& launch : launches) {
    const Placed placed = place(launch, design.flow);
    if (placed.where != Placed::Where::kAccelerator) continue;
    known.push_back(entry.layer.empty() ? layer_sizes_text(placed.layer.layer) : launch.name);
  }
  const std::string& named = entry.layer.empty() ? entry.sizes : entry.layer;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: no layer of the model on {} is '{}'{}; --write-mappings FILE writes "
                          "all of them",
                          entry.where, design.id, shown_name(named), did_you_mean(named, known)));
}

}  // namespace

void assign_mappings(std::vector<PassLayer>& launches, const accelerator::Design& design,
                     const AcceleratorOptions& options) {
  std::vector<Entry> entries = read_entries(options.mapping_file);
  for (PassLayer& launch : launches) {
    const Placed placed = place(launch, design.flow);
    if (placed.where != Placed::Where::kAccelerator) continue;
    Entry* entry = entry_of(entries, launch.name, placed.layer.layer);
    if (entry == nullptr) continue;
    entry->used = true;
    launch.mapping = entry->mapping;
  }
  for (const Entry& entry : entries)
    if (!entry.used) fail_unused(entry, launches, design);
}

void set_mapping(AcceleratorOptions& options, const std::string& text_or_path) {
  // A file's name may hold an equals sign.
  std::error_code error;
  const bool is_text = text_or_path.find('=') != std::string::npos &&
                       !std::filesystem::is_regular_file(text_or_path, error);
  options.mapping = is_text ? text_or_path : "";
  options.mapping_file = is_text ? "" : text_or_path;
}

std::string accelerator_mappings(const AcceleratorForecast& forecast) {
  std::string lines;
  std::vector<const AcceleratorLayer*> written;
  for (const AcceleratorLayer& layer : forecast.layers) {
    if (layer.where != "accelerator") continue;
    const auto alike = [&](const AcceleratorLayer* other) {
      return other->kind == layer.kind && other->sizes == layer.sizes;
    };
    const auto same = std::find_if(written.begin(), written.end(), alike);
    // The same shape with another mapping, which a file stated by name.
    if (same != written.end() && (*same)->mapping == layer.mapping) continue;
    Json entry = {{"kind", layer.kind}, {"sizes", layer.sizes}, {"mapping", layer.mapping}};
    if (same == written.end())
      entry["note"] = layer.name;
    else
      entry["layer"] = layer.name;
    written.push_back(&layer);
    lines += (lines.empty() ? "  " : ",\n  ") + entry.dump();
  }
  return fmt::format(
      "{{\"schema_version\": 1, \"model\": {}, \"accelerator\": {}, \"layers\": [\n{}\n]}}\n",
      Json(forecast.model).dump(), Json(forecast.accelerator).dump(), lines);
}

}  // namespace tilecast
