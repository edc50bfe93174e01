#include "scenario/accelerator/mappings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <utility>

#include "accelerator/mapping_file.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;

/// The kind and the sizes, as far as the entry has them.
std::string stated_text(const accelerator::MappingEntry& entry) {
  if (entry.kind.empty() || entry.sizes.empty()) return entry.kind + shown_name(entry.sizes);
  return entry.kind + ", " + shown_name(entry.sizes);
}

/// Fails: no layer has what an entry names. The message says which ones are similar.
[[noreturn]] void fail_unused(const accelerator::MappingEntry& entry,
                              const std::vector<PassLayer>& launches,
                              const accelerator::Design& design) {
  std::vector<std::string> known;
  std::set<std::string_view> kinds;  // of the layers with the sizes of the entry
  for (const PassLayer& launch : launches) {
    const Placed placed = place(launch, design.flow);
    if (placed.where != Placed::Where::kAccelerator) continue;
    const accelerator::Layer& layer = placed.layer.layer;
    if (launch.name == entry.layer)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: layer '{}' is of another kind or shape: it is {}, {}; the entry "
                              "states {}",
                              entry.where, shown_name(launch.name), layer_kind_name(layer.kind),
                              layer_sizes_text(layer), stated_text(entry)));
    const std::string sizes = layer_sizes_text(layer);
    if (entry.sizes == sizes) kinds.insert(layer_kind_name(layer.kind));
    known.push_back(entry.layer.empty() ? sizes : launch.name);
  }
  if (entry.layer.empty() && !kinds.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the layers '{}' on {} are of the kind {}; the entry states {}",
                            entry.where, shown_name(entry.sizes), design.id,
                            fmt::join(kinds, " or "), entry.kind));
  const std::string& named = entry.layer.empty() ? entry.sizes : entry.layer;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: no layer of the model on {} is '{}'{}; --write-mappings FILE writes "
                          "all of them",
                          entry.where, design.id, shown_name(named), did_you_mean(named, known)));
}

}  // namespace

void assign_mappings(std::vector<PassLayer>& launches, const accelerator::Design& design,
                     const AcceleratorOptions& options) {
  const std::string& path = options.mapping_file;
  const std::vector<accelerator::MappingEntry> entries =
      accelerator::parse_mapping_file(read_file(path, kMostBytes), printable(path));
  std::set<const accelerator::MappingEntry*> used;
  for (PassLayer& launch : launches) {
    const Placed placed = place(launch, design.flow);
    if (placed.where != Placed::Where::kAccelerator) continue;
    // One for a shape may be kept beside those that name all layers of the shape.
    for (const accelerator::MappingEntry& entry : entries)
      if (entry.is_for(launch.name, placed.layer.layer)) used.insert(&entry);
    const auto* entry = accelerator::entry_of(entries, launch.name, placed.layer.layer);
    if (entry == nullptr) continue;
    launch.mapping = entry->mapping;
    launch.mapping_by_name = !entry->layer.empty();
  }
  for (const accelerator::MappingEntry& entry : entries)
    if (used.count(&entry) == 0) fail_unused(entry, launches, design);
}

void set_mapping(AcceleratorOptions& options, const std::string& text_or_path) {
  // A file's name may hold an equals sign.
  const bool is_text = text_or_path.find('=') != std::string::npos && !is_file(text_or_path);
  options.mapping = is_text ? text_or_path : "";
  options.mapping_file = is_text ? "" : text_or_path;
}

std::string accelerator_mappings(const AcceleratorForecast& forecast) {
  std::vector<std::string> lines;
  std::set<std::pair<std::string, std::string>> shapes;  // that have an entry
  for (const AcceleratorLayer& layer : forecast.layers) {
    if (layer.where != "accelerator") continue;
    Json entry = {{"kind", layer.kind}, {"sizes", layer.sizes}, {"mapping", layer.mapping}};
    // One that a file stated by name is of this layer only; others are of all with this shape.
    if (!layer.mapping_by_name && !shapes.emplace(layer.kind, layer.sizes).second) continue;
    entry[layer.mapping_by_name ? "layer" : "note"] = layer.name;
    lines.push_back("  " + entry.dump());
  }
  return fmt::format(
      "{{\"schema_version\": 1, \"model\": {}, \"accelerator\": {}, \"layers\": [\n{}\n]}}\n",
      Json(forecast.model).dump(), Json(forecast.accelerator).dump(), join(lines, ",\n"));
}

}  // namespace tilecast
