#include "accelerator/mapping_file.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

bool is_kind(std::string_view name) {
  for (size_t kind = 0; kind < kLayerKindCount; ++kind)
    if (layer_kind_name(static_cast<LayerKind>(kind)) == name) return true;
  return false;
}

}  // namespace

bool MappingEntry::is_for(const std::string& name, const Layer& given) const {
  return (layer.empty() || layer == name) &&
         (kind.empty() || kind == layer_kind_name(given.kind)) &&
         (sizes.empty() || sizes == layer_sizes_text(given));
}

std::vector<MappingEntry> parse_mapping_file(std::string_view content, const std::string& where) {
  const Json json = parse_json(content, where);
  const JsonObject file(json, where);
  file.reject_unknown({"schema_version", "model", "accelerator", "layers"});
  file.integer({"schema_version"}, 1, 1);
  if (!file.has("layers") || !file.json()["layers"].is_array())
    file.fail("layers", "expected a list of {\"layer\" or \"sizes\", \"mapping\"}");
  std::vector<MappingEntry> entries;
  for (const Json& item : file.json()["layers"]) {
    MappingEntry entry{.where = fmt::format("{}: layers[{}]", where, entries.size())};
    const JsonObject object(item, entry.where);
    object.reject_unknown({"layer", "kind", "sizes", "mapping", "note"});
    const auto text = [&](const char* key) {
      return object.has(key) ? object.string(key) : std::string();
    };
    entry.layer = text("layer");
    entry.kind = text("kind");
    entry.sizes = text("sizes");
    entry.mapping = object.string("mapping");
    if (!entry.kind.empty() && !is_kind(entry.kind))
      object.fail("kind", fmt::format("expected product, depthwise, pooling or elementwise, found "
                                      "\"{}\"",
                                      shown_name(entry.kind)));
    if (entry.layer.empty() && entry.sizes.empty())
      object.fail("layer", "state the name of the layer, or its sizes");
    if (entry.mapping.empty()) object.fail("mapping", "is empty; leave the entry out");
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) file.fail("layers", "is empty; leave the file out");
  return entries;
}

const MappingEntry* entry_of(const std::vector<MappingEntry>& entries, const std::string& name,
                             const Layer& layer) {
  const MappingEntry* found = nullptr;
  for (const MappingEntry& entry : entries) {
    if (!entry.is_for(name, layer)) continue;
    if (found != nullptr && found->layer.empty() == entry.layer.empty())
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: is for layer '{}', as {} is; remove one of them", entry.where,
                              shown_name(name), found->where));
    if (found == nullptr || found->layer.empty()) found = &entry;
  }
  return found;
}

}  // namespace tilecast::accelerator
