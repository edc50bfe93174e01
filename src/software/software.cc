#include "software/software.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <variant>

#include "base/embedded.h"
#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// An entry of a section, {"value": …, "unit": …, "source": …}; words and truth values have no
/// unit.
template <typename Section>
struct Entry {
  const char* key;
  std::variant<double Section::*, int64_t Section::*, bool Section::*, std::string Section::*>
      field;
  const char* unit = "";
};

using Traits = SoftwareTraits;
const Entry<SoftwareTraits> kTraits[] = {
    {"quantizes_activations", &Traits::quantizes_activations},
    {"quantization_launches_s", &Traits::quantization_launches_s, "s"},
    {"fp8_scale_cycles_per_row", &Traits::fp8_scale_cycles_per_row, "cycle"},
    {"splits_products", &Traits::splits_products},
    {"benchmark_weight_copies", &Traits::benchmark_weight_copies, "1"},
    {"benchmark_copies_fill_l2", &Traits::benchmark_copies_fill_l2},
    {"packs_heads_with_wgmma", &Traits::packs_heads_with_wgmma},
    {"packs_decode_heads_with_tcgen05", &Traits::packs_decode_heads_with_tcgen05},
    {"falls_back_to_triton", &Traits::falls_back_to_triton},
    {"prefill_cycles_ratio", &Traits::prefill_cycles_ratio, "1"},
    {"prefill_launch_us", &Traits::prefill_launch_us, "us"},
    {"prefill_passes", &Traits::prefill_passes, "1"},
    {"most_packed_decode_heads", &Traits::most_packed_decode_heads, "1"},
    {"compiles_decode_by_heads", &Traits::compiles_decode_by_heads},
    {"decode_latency_cycles", &Traits::decode_latency_cycles, "cycle"},
    {"multiplies_8bit_cache", &Traits::multiplies_8bit_cache},
    {"windowed_decode_ratio", &Traits::windowed_decode_ratio, "1"},
    {"expert_launches_us", &Traits::expert_launches_us, "us"},
    {"has_row_blocks", &Traits::has_row_blocks},
    {"all_reduce_curve", &Traits::all_reduce_curve},
    {"overlaps_shared_experts", &Traits::overlaps_shared_experts},
    {"fuses_norm_with_all_reduce", &Traits::fuses_norm_with_all_reduce},
    {"fuses_norm_on_older_gpus", &Traits::fuses_norm_on_older_gpus},
};

const Entry<HostCosts> kCosts[] = {
    {"host_launch_s", &HostCosts::host_launch_s, "s"},
    {"step_overhead_s", &HostCosts::step_overhead_s, "s"},
};

const Entry<ServerDefaults> kServer[] = {
    {"block_tokens", &ServerDefaults::block_tokens, "1"},
    {"latent_block_tokens", &ServerDefaults::latent_block_tokens, "1"},
    {"max_num_seqs", &ServerDefaults::max_num_seqs, "1"},
    {"max_num_seqs_large", &ServerDefaults::max_num_seqs_large, "1"},
    {"memory_option", &ServerDefaults::memory_option},
    {"memory_share", &ServerDefaults::memory_share, "1"},
};

const Entry<SoftwareStack> kMemory[] = {
    {"measured_with", &SoftwareStack::measured_with},
    {"context_bytes", &SoftwareStack::context_bytes, "B"},
    {"modules_bytes", &SoftwareStack::modules_bytes, "B"},
    {"libraries_bytes", &SoftwareStack::libraries_bytes, "B"},
    {"inference_bytes", &SoftwareStack::inference_bytes, "B"},
    {"training_bytes", &SoftwareStack::training_bytes, "B"},
    {"workspace_bytes", &SoftwareStack::workspace_bytes, "B"},
    {"workspace_large_bytes", &SoftwareStack::workspace_large_bytes, "B"},
};

double number_of(const JsonObject& entry, const std::string& unit) {
  const double value = entry.number("value");
  if (const std::string found = entry.string("unit"); found != unit)
    entry.fail("unit", fmt::format("expected \"{}\", found \"{}\"", unit, shown_name(found)));
  if (!std::isfinite(value) || value < 0)
    entry.fail("value", fmt::format("expected a number of at least 0, found {}", value));
  return value;
}

void read_value(const JsonObject& entry, const char* /*unit*/, bool& value) {
  if (!entry.has("value")) entry.fail("value", "is missing; expected true or false");
  value = entry.boolean("value", false);
}
void read_value(const JsonObject& entry, const char* /*unit*/, std::string& value) {
  value = entry.string("value");
}
void read_value(const JsonObject& entry, const char* unit, double& value) {
  value = number_of(entry, unit);
}
void read_value(const JsonObject& entry, const char* unit, int64_t& value) {
  const double number = number_of(entry, unit);
  constexpr double kMost = 9e15;
  if (number != std::floor(number) || number > kMost)
    entry.fail("value", fmt::format("expected a whole number, found {}", number));
  value = static_cast<int64_t>(number);
}

/// Reads the section; every key must be there.
template <typename Section, size_t Count>
void read_section(const JsonObject& file, const std::string& name,
                  const Entry<Section> (&entries)[Count], Section& section) {
  const JsonObject json = file.object(name);
  std::vector<std::string> known;
  for (const Entry<Section>& row : entries) known.emplace_back(row.key);
  json.reject_unknown(known);
  for (const Entry<Section>& row : entries) {
    const JsonObject entry = json.object(row.key);
    const bool has_unit = *row.unit != '\0';
    entry.reject_unknown(has_unit ? std::vector<std::string>{"value", "unit", "source"}
                                  : std::vector<std::string>{"value", "source"});
    if (entry.string("source").empty())
      entry.fail("source", "is empty; state where the value comes from");
    std::visit([&](auto field) { read_value(entry, row.unit, section.*field); }, row.field);
  }
}

constexpr const char* kSections[] = {"costs", "memory", "server", "traits"};

/// The file with what it takes over from the one that it is based on: entries of its sections,
/// scheduler, cache rule and whether it runs models.
Json completed(const Json& own, const Json& base) {
  Json result = own;
  for (const char* section : kSections) {
    if (!base.contains(section)) continue;
    Json entries = base.at(section);
    if (own.contains(section)) entries.update(own.at(section));
    result[section] = std::move(entries);
  }
  for (const char* key : {"scheduler", "cache_rule", "runs_models"}) {
    if (!own.contains(key) && base.contains(key)) result[key] = base.at(key);
  }
  return result;
}

std::vector<SoftwareVersion> versions_of(const JsonObject& file) {
  const Json* list = file.has("versions") ? &file.json().at("versions") : nullptr;
  if (list == nullptr || !list->is_array()) file.fail("versions", "expected a list");
  std::vector<SoftwareVersion> versions;
  for (const Json& json : *list) {
    const JsonObject entry(json, file.where() + ": versions");
    entry.reject_unknown({"version", "source"});
    versions.push_back({entry.string("version"), entry.string("source")});
  }
  return versions;
}

SoftwareDef read_def(const Json& json, const std::string& where) {
  const JsonObject file(json, where);
  file.reject_unknown({"schema_version", "name", "title", "based_on", "position", "stand_in",
                       "runs_models", "versions", "scheduler", "cache_rule", "traits", "costs",
                       "server", "memory"});
  constexpr int64_t kMost = 1000;
  SoftwareDef def;
  (void)file.integer({"schema_version"}, 1, 1);
  def.name = file.string("name");
  def.title = file.string("title");
  def.position = file.integer({"position"}, 1, kMost);
  def.stand_in = file.integer({"stand_in"}, 1, kMost);
  def.runs_models = file.boolean("runs_models", true);
  def.versions = versions_of(file);
  def.scheduler = file.optional_string({"scheduler"}).value_or("");
  def.cache_rule = file.optional_string({"cache_rule"}).value_or("");
  read_section(file, "traits", kTraits, def.traits);
  read_section(file, "costs", kCosts, def.costs);
  read_section(file, "memory", kMemory, def.memory);
  const bool serves = def.serves();
  if (serves != !def.cache_rule.empty() || serves != file.has("server"))
    file.fail("scheduler", "a server has a scheduler, a cache_rule and a section server");
  if (serves) read_section(file, "server", kServer, def.server);
  return def;
}

struct Table {
  std::vector<SoftwareDef> defs;
  std::vector<std::string> names;
  std::vector<Software> stand_ins;
  Software server{};
};

Table make_table() {
  std::vector<SoftwareFile> files;
  for (const EmbeddedFile& file : embedded_files("software/"))
    files.push_back({std::string(file.path), file.content});
  Table table{.defs = read_software(files), .names = {}, .stand_ins = {}};
  for (size_t i = 0; i < table.defs.size(); ++i) {
    table.names.push_back(table.defs[i].name);
    table.stand_ins.push_back(static_cast<Software>(i));
  }
  std::sort(table.stand_ins.begin(), table.stand_ins.end(), [&](Software a, Software b) {
    return table.defs[static_cast<size_t>(a)].stand_in <
           table.defs[static_cast<size_t>(b)].stand_in;
  });
  const auto server = std::find_if(table.defs.begin(), table.defs.end(),
                                   [](const SoftwareDef& def) { return def.serves(); });
  table.server = static_cast<Software>(server - table.defs.begin());
  return table;
}

const Table& the_table() {
  static const Table table = make_table();
  return table;
}

}  // namespace

std::vector<SoftwareDef> read_software(std::span<const SoftwareFile> files) {
  std::map<std::string, std::pair<const SoftwareFile*, Json>> by_name;
  for (const SoftwareFile& file : files) {
    Json json = parse_json(file.text, file.where);
    const std::string name = JsonObject(json, file.where).string("name");
    by_name.emplace(name, std::pair{&file, std::move(json)});
  }
  std::vector<SoftwareDef> defs;
  for (const auto& [name, entry] : by_name) {
    const auto& [file, own] = entry;
    Json whole = own;
    std::optional<std::string> base = JsonObject(own, file->where).optional_string({"based_on"});
    for (size_t depth = 0; base; ++depth) {
      const auto found = by_name.find(*base);
      if (found == by_name.end() || depth == by_name.size())
        JsonObject(own, file->where)
            .fail("based_on", fmt::format("'{}' is no other software", shown_name(*base)));
      whole = completed(whole, found->second.second);
      base = JsonObject(found->second.second, found->second.first->where)
                 .optional_string({"based_on"});
    }
    defs.push_back(read_def(whole, file->where));
  }
  std::sort(defs.begin(), defs.end(),
            [](const SoftwareDef& a, const SoftwareDef& b) { return a.position < b.position; });
  for (size_t i = 0; i < defs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (defs[i].position == defs[j].position || defs[i].stand_in == defs[j].stand_in)
        throw Error(ErrorKind::kInput,
                    fmt::format("software {} and {} have the same position or stand_in",
                                defs[j].name, defs[i].name));
    }
  }
  return defs;
}

const std::vector<SoftwareDef>& all_software() { return the_table().defs; }

const SoftwareDef& software_def(Software software) {
  return the_table().defs[static_cast<size_t>(software)];
}

Software default_server() { return the_table().server; }

const std::vector<Software>& stand_ins() { return the_table().stand_ins; }

std::string_view software_name(Software software) { return software_def(software).name; }

std::optional<Software> find_software(std::string_view name) {
  const std::vector<std::string>& names = software_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Software>(found - names.begin());
}

Software parse_software(std::string_view name, const std::string& where) {
  if (const std::optional<Software> found = find_software(name)) return *found;
  const std::vector<std::string>& known = software_names();
  throw Error(ErrorKind::kInput,
              fmt::format("{}: unknown value '{}'{}; known: {}", where, shown_name(name),
                          did_you_mean(name, known), join(known, ", ")));
}

Software software_of(std::string_view name) { return parse_software(name, "software"); }

const std::vector<std::string>& software_names() { return the_table().names; }

std::vector<std::string> model_software_names() {
  std::vector<std::string> names;
  for (const SoftwareDef& def : all_software()) {
    if (def.runs_models) names.push_back(def.name);
  }
  return names;
}

std::vector<std::string> server_software_names() {
  std::vector<std::string> names;
  for (const SoftwareDef& def : all_software()) {
    if (def.serves()) names.push_back(def.name);
  }
  return names;
}

}  // namespace tilecast
