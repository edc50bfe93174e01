#include "software/software.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <map>
#include <utility>
#include <variant>

#include "base/ascii.h"
#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// An entry of a section, {"value": …, "unit": …, "source": …}; words and truth values have no
/// unit.
template <typename Section>
struct Entry {
  std::string_view key;
  std::variant<double Section::*, int64_t Section::*, bool Section::*, std::string Section::*>
      field;
  const char* unit = "";
};

using Traits = SoftwareTraits;
constexpr Entry<SoftwareTraits> kTraits[] = {
    {"quantizes_activations", &Traits::quantizes_activations},
    {"quantization_launches_s", &Traits::quantization_launches_s, "s"},
    {"fp4_quantization_launches_s", &Traits::fp4_quantization_launches_s, "s"},
    {"fp8_scale_cycles_per_row", &Traits::fp8_scale_cycles_per_row, "cycle"},
    {"splits_products", &Traits::splits_products},
    {"benchmark_weight_copies", &Traits::benchmark_weight_copies, "1"},
    {"benchmark_copies_fill_l2", &Traits::benchmark_copies_fill_l2},
    {"packs_heads_with_wgmma", &Traits::packs_heads_with_wgmma},
    {"packs_heads_with_mma_sync", &Traits::packs_heads_with_mma_sync},
    {"runs_flash_attention_2", &Traits::runs_flash_attention_2},
    {"packs_decode_heads_with_tcgen05", &Traits::packs_decode_heads_with_tcgen05},
    {"falls_back_to_triton", &Traits::falls_back_to_triton},
    {"prefill_cycles_ratio", &Traits::prefill_cycles_ratio, "1"},
    {"prefill_launch_us", &Traits::prefill_launch_us, "us"},
    {"mma_sync_start_ratio", &Traits::mma_sync_start_ratio, "1"},
    {"prefill_query_passes", &Traits::prefill_query_passes, "1"},
    {"prefill_passes", &Traits::prefill_passes, "1"},
    {"rounds_heads_with_wgmma", &Traits::rounds_heads_with_wgmma},
    {"pages_prompts", &Traits::pages_prompts},
    {"most_packed_decode_heads", &Traits::most_packed_decode_heads, "1"},
    {"compiles_decode_by_heads", &Traits::compiles_decode_by_heads},
    {"decode_latency_cycles", &Traits::decode_latency_cycles, "cycle"},
    {"multiplies_8bit_cache", &Traits::multiplies_8bit_cache},
    {"windowed_decode_ratio", &Traits::windowed_decode_ratio, "1"},
    {"fuses_quantization_with_norm", &Traits::fuses_quantization_with_norm},
    {"fuses_quantization_with_gate", &Traits::fuses_quantization_with_gate},
    {"fuses_quantization_with_attention", &Traits::fuses_quantization_with_attention},
    {"fuses_fp4_quantization", &Traits::fuses_fp4_quantization},
    {"families_with_fused_norms", &Traits::families_with_fused_norms},
    {"compiles_gates", &Traits::compiles_gates},
    {"block_fp8_experts_ratio", &Traits::block_fp8_experts_ratio, "1"},
    {"expert_launches_us", &Traits::expert_launches_us, "us"},
    {"has_row_blocks", &Traits::has_row_blocks},
    {"moves_rows_by_vectors", &Traits::moves_rows_by_vectors},
    {"all_reduce_curve", &Traits::all_reduce_curve},
    {"overlaps_shared_experts", &Traits::overlaps_shared_experts},
    {"fuses_norm_with_all_reduce", &Traits::fuses_norm_with_all_reduce},
    {"fuses_norm_on_older_gpus", &Traits::fuses_norm_on_older_gpus},
    {"wgmma_attention_ratio", &Traits::wgmma_attention_ratio, "1"},
    {"tcgen05_attention_ratio", &Traits::tcgen05_attention_ratio, "1"},
    {"wgmma_attention_backward_ratio", &Traits::wgmma_attention_backward_ratio, "1"},
    {"fuses_modules", &Traits::fuses_modules},
    {"cross_entropy", &Traits::cross_entropy},
    {"learned_share", &Traits::learned_share, "1"},
    {"kernels_of", &Traits::kernels_of},
};

constexpr Entry<SoftwareSupport> kSupport[] = {
    {"architectures", &SoftwareSupport::architectures},
    {"trains", &SoftwareSupport::trains},
    {"infers", &SoftwareSupport::infers},
};

constexpr Entry<HostCosts> kCosts[] = {
    {"host_launch_s", &HostCosts::host_launch_s, "s"},
    {"hip_graph_launch_s", &HostCosts::hip_graph_launch_s, "s"},
    {"step_overhead_s", &HostCosts::step_overhead_s, "s"},
    {"sequence_overhead_s", &HostCosts::sequence_overhead_s, "s"},
    {"request_overhead_s", &HostCosts::request_overhead_s, "s"},
    {"request_turn_s", &HostCosts::request_turn_s, "s"},
    {"ngram_token_s", &HostCosts::ngram_token_s, "s"},
};

constexpr Entry<ServerDefaults> kServer[] = {
    {"block_tokens", &ServerDefaults::block_tokens, "1"},
    {"latent_block_tokens", &ServerDefaults::latent_block_tokens, "1"},
    {"max_num_seqs", &ServerDefaults::max_num_seqs, "1"},
    {"max_num_seqs_large", &ServerDefaults::max_num_seqs_large, "1"},
    {"memory_option", &ServerDefaults::memory_option},
    {"memory_share", &ServerDefaults::memory_share, "1"},
    {"schedules_ahead", &ServerDefaults::schedules_ahead},
    {"keeps_tower", &ServerDefaults::keeps_tower},
    {"captures_pieces", &ServerDefaults::captures_pieces},
    {"captured_tokens", &ServerDefaults::captured_tokens, "1"},
    {"profiles_steps", &ServerDefaults::profiles_steps},
    {"needs_longest_sequence", &ServerDefaults::needs_longest_sequence},
};

constexpr Entry<PrefixRule> kPrefixCache[] = {
    {"finds_when_allocated", &PrefixRule::finds_when_allocated},
    {"stores_parts_of_prompts", &PrefixRule::stores_parts_of_prompts},
    {"keeps_preempted", &PrefixRule::keeps_preempted},
    {"takes_empty_first", &PrefixRule::takes_empty_first},
    {"evicts_whole_leaves", &PrefixRule::evicts_whole_leaves},
    {"host_copies_when_computed", &PrefixRule::host_copies_when_computed},
    {"host_load", &PrefixRule::host_load},
    {"host_link_ratio", &PrefixRule::host_link_ratio, "1"},
};

constexpr Entry<LoraRule> kLora[] = {
    {"max_loras", &LoraRule::max_loras, "1"},
    {"max_lora_rank", &LoraRule::max_lora_rank, "1"},
    {"adapts_all", &LoraRule::adapts_all},
    {"computes_kept_rank", &LoraRule::computes_kept_rank},
    {"clears_buffer", &LoraRule::clears_buffer},
    {"load_matrix_s", &LoraRule::load_matrix_s, "s"},
};

constexpr Entry<LaunchWords> kLaunch[] = {
    {"command", &LaunchWords::command},
    {"tp", &LaunchWords::tp},
    {"pp", &LaunchWords::pp},
    {"dp", &LaunchWords::dp},
    {"ep", &LaunchWords::ep},
    {"deepep", &LaunchWords::deepep},
    {"bf16", &LaunchWords::bf16},
    {"fp16", &LaunchWords::fp16},
    {"fp8", &LaunchWords::fp8},
    {"fp8_cache", &LaunchWords::fp8_cache},
    {"max_model_len", &LaunchWords::max_model_len},
    {"max_num_seqs", &LaunchWords::max_num_seqs},
    {"max_num_batched_tokens", &LaunchWords::max_num_batched_tokens},
    {"memory_share", &LaunchWords::memory_share},
    {"lora", &LaunchWords::lora},
};

constexpr Entry<SoftwareStack> kMemory[] = {
    {"measured_with", &SoftwareStack::measured_with},
    {"context_bytes", &SoftwareStack::context_bytes, "B"},
    {"modules_bytes", &SoftwareStack::modules_bytes, "B"},
    {"libraries_bytes", &SoftwareStack::libraries_bytes, "B"},
    {"inference_bytes", &SoftwareStack::inference_bytes, "B"},
    {"training_bytes", &SoftwareStack::training_bytes, "B"},
    {"communication_bytes", &SoftwareStack::communication_bytes, "B"},
    {"workspace_bytes", &SoftwareStack::workspace_bytes, "B"},
    {"workspace_large_bytes", &SoftwareStack::workspace_large_bytes, "B"},
    {"extension_workspace_bytes", &SoftwareStack::extension_workspace_bytes, "B"},
    {"extension_workspace_large_bytes", &SoftwareStack::extension_workspace_large_bytes, "B"},
    {"expert_workspaces", &SoftwareStack::expert_workspaces, "1"},
};

/// The first entry of the section with that key, or nullptr.
template <typename Section, size_t Count>
const Entry<Section>* find_entry(const Entry<Section> (&entries)[Count], std::string_view key) {
  const auto* const found = std::find_if(std::begin(entries), std::end(entries),
                                         [&](const Entry<Section>& e) { return e.key == key; });
  return found == std::end(entries) ? nullptr : found;
}

[[noreturn]] void fail(const SoftwareValue& v, const std::string& why) {
  throw Error(ErrorKind::kInput, fmt::format("software {}: {}{}{}: {}", v.software, v.section,
                                             v.section.empty() ? "" : ".", v.key, why));
}

template <typename T>
T value_as(const SoftwareValue& v, const char* expected) {
  const T* value = std::get_if<T>(&v.value);
  if (value == nullptr) fail(v, fmt::format("expected {}", expected));
  return *value;
}
void take(const SoftwareValue& v, bool& to) { to = value_as<bool>(v, "true or false"); }
void take(const SoftwareValue& v, double& to) {
  to = value_as<double>(v, "a number");
  if (!std::isfinite(to) || to < 0) fail(v, "expected a number of at least 0");
}
void take(const SoftwareValue& v, std::string& to) { to = value_as<std::string_view>(v, "a word"); }
void take(const SoftwareValue& v, int64_t& to) {
  double number = 0;
  take(v, number);
  constexpr double kMost = 9e15;
  if (number != std::floor(number) || number > kMost) fail(v, "expected a whole number");
  to = static_cast<int64_t>(number);
}

/// A row of the table while values are added to it. A section's bit is set where its value is
/// known.
struct Row {
  SoftwareDef def;
  uint64_t support = 0, traits = 0, costs = 0, server = 0, prefix_cache = 0, lora = 0, launch = 0,
           memory = 0;
};

template <typename Section, size_t Count>
void set_entry(const SoftwareValue& v, const Entry<Section> (&entries)[Count], Section& section,
               uint64_t& known) {
  const Entry<Section>* entry = find_entry(entries, v.key);
  if (entry == nullptr) fail(v, "unknown key");
  known |= uint64_t{1} << (entry - std::begin(entries));
  std::visit([&](auto field) { take(v, section.*field); }, entry->field);
}

template <typename Section, size_t Count>
void require_all(const Row& row, const char* name, const Entry<Section> (&entries)[Count],
                 uint64_t known) {
  for (size_t i = 0; i < Count; ++i) {
    if ((known >> i & 1) == 0) fail({row.def.name, name, entries[i].key, false}, "is missing");
  }
}

void set_value(Row& row, const SoftwareValue& v) {
  SoftwareDef& def = row.def;
  if (v.section == "support") return set_entry(v, kSupport, def.support, row.support);
  if (v.section == "traits") return set_entry(v, kTraits, def.traits, row.traits);
  if (v.section == "costs") return set_entry(v, kCosts, def.costs, row.costs);
  if (v.section == "server") return set_entry(v, kServer, def.server, row.server);
  if (v.section == "prefix_cache")
    return set_entry(v, kPrefixCache, def.prefix_cache, row.prefix_cache);
  if (v.section == "lora") return set_entry(v, kLora, def.lora, row.lora);
  if (v.section == "launch") return set_entry(v, kLaunch, def.launch, row.launch);
  if (v.section == "memory") return set_entry(v, kMemory, def.memory, row.memory);
  if (v.section == "versions") {
    def.versions.push_back({std::string(v.key), ""});
    return take(v, def.versions.back().source);
  }
  if (v.key == "title") return take(v, def.title);
  if (v.key == "position") return take(v, def.position);
  if (v.key == "stand_in") return take(v, def.stand_in);
  if (v.key == "runs_models") return take(v, def.runs_models);
  if (v.key == "scheduler") return take(v, def.scheduler);
  if (v.key == "cache_rule") return take(v, def.cache_rule);
  if (v.key != "name" && v.key != "based_on") fail(v, "unknown key");
}

/// Between a name and the first version that is not meant.
constexpr char kBefore = '<';

/// The numbers of a version, of "0.12.1rc2" and "0.12.1.post2" 0, 12 and 1; nullopt: it is none.
std::optional<std::vector<int64_t>> version_numbers(std::string_view version) {
  std::vector<int64_t> numbers;
  const auto next = [&] {
    int64_t number = 0;
    const char* const begin = version.data();
    const auto [end, error] = std::from_chars(begin, begin + version.size(), number);
    if (error != std::errc() || number < 0) return false;
    numbers.push_back(number);
    version.remove_prefix(static_cast<size_t>(end - begin));
    return true;
  };
  if (!next()) return std::nullopt;
  while (version.size() > 1 && version.front() == '.' && is_digit(version[1])) {
    version.remove_prefix(1);
    if (!next()) return std::nullopt;
  }
  const bool is_rest = std::all_of(version.begin(), version.end(), [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '+' || c == '-';
  });
  const bool ends = version.empty() || is_letter(version.front()) ||
                    (version.size() > 1 && is_letter_or_digit(version[1]));
  if (!is_rest || !ends) return std::nullopt;
  return numbers;
}

using ValuesOf = std::map<std::string_view, std::vector<const SoftwareValue*>>;

Row make_row(const ValuesOf& all, std::string_view name, size_t depth) {
  Row row;
  const std::vector<const SoftwareValue*>& values = all.at(name);
  for (const SoftwareValue* v : values) {
    if (!v->section.empty() || v->key != "based_on") continue;
    std::string base;
    take(*v, base);
    if (depth == all.size() || !all.contains(base))
      fail(*v, fmt::format("'{}' is no other software", shown_name(base)));
    row = make_row(all, base, depth + 1);
  }
  if (const size_t sign = name.find(kBefore); sign != std::string_view::npos) {
    row.def.before = name.substr(sign + 1);
  } else {
    row.def.name = name;
    row.def.title.clear();
    row.def.position = row.def.stand_in = 0;
    row.def.versions.clear();
  }
  for (const SoftwareValue* v : values) set_value(row, *v);
  return row;
}

void check_row(const Row& row) {
  const SoftwareDef& def = row.def;
  const auto refuse = [&](const char* key, const char* why) {
    fail({def.name, "", key, false}, why);
  };
  if (def.title.empty()) refuse("title", "is missing");
  if (def.position == 0) refuse("position", "is missing");
  if (def.stand_in == 0) refuse("stand_in", "is missing");
  require_all(row, "support", kSupport, row.support);
  require_all(row, "traits", kTraits, row.traits);
  require_all(row, "costs", kCosts, row.costs);
  require_all(row, "memory", kMemory, row.memory);
  if (def.serves() != !def.cache_rule.empty() || def.serves() != (row.server != 0) ||
      def.serves() != (row.prefix_cache != 0) || def.serves() != (row.lora != 0))
    refuse("scheduler",
           "a server has a scheduler, a cache_rule and sections server, prefix_cache and lora");
  if (def.serves()) {
    require_all(row, "server", kServer, row.server);
    require_all(row, "prefix_cache", kPrefixCache, row.prefix_cache);
    require_all(row, "lora", kLora, row.lora);
  }
  if (row.launch == 0) return;
  if (!def.serves() || def.launch.command.find("{model}") == std::string::npos)
    fail({def.name, "launch", "command", false}, "is a server's, and names {model}");
}

std::vector<SoftwareDef> table_of(std::span<const SoftwareValue> values) {
  ValuesOf by_name;
  for (const SoftwareValue& v : values) by_name[v.software].push_back(&v);
  std::vector<SoftwareDef> defs;
  for (const auto& [name, of_it] : by_name) {
    Row row = make_row(by_name, name, 1);
    check_row(row);
    defs.push_back(std::move(row.def));
  }
  // Earlier versions come last, the earliest of each first.
  std::sort(defs.begin(), defs.end(), [](const SoftwareDef& a, const SoftwareDef& b) {
    if (a.before.empty() != b.before.empty()) return a.before.empty();
    return std::pair(a.position, version_numbers(a.before)) <
           std::pair(b.position, version_numbers(b.before));
  });
  for (size_t i = 0; i < defs.size() && defs[i].before.empty(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (defs[i].position == defs[j].position || defs[i].stand_in == defs[j].stand_in)
        throw Error(ErrorKind::kInput,
                    fmt::format("software {} and {} have the same position or stand_in",
                                defs[j].name, defs[i].name));
    }
  }
  return defs;
}

// From files.

std::variant<bool, double, std::string_view> value_under(const JsonObject& object,
                                                         const std::string& key) {
  if (!object.has(key)) object.fail(key, "is missing");
  const Json& json = object.json().at(key);
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return std::string_view(json.get_ref<const std::string&>());
  return object.number(key);
}

void add_versions(const JsonObject& file, std::string_view name,
                  std::vector<SoftwareValue>& values) {
  const Json* list = file.has("versions") ? &file.json().at("versions") : nullptr;
  if (list == nullptr || !list->is_array()) file.fail("versions", "expected a list");
  for (const Json& json : *list) {
    const JsonObject entry(json, file.where() + ": versions");
    entry.reject_unknown({"version", "source"});
    (void)entry.string("version");
    values.push_back({name, "versions", json.at("version").get_ref<const std::string&>(),
                      value_under(entry, "source")});
  }
}

template <typename Section, size_t Count>
void add_section(const JsonObject& file, std::string_view name, const char* section,
                 const Entry<Section> (&entries)[Count], std::vector<SoftwareValue>& values) {
  if (!file.has(section)) return;
  const JsonObject json = file.object(section);
  std::vector<std::string> known;
  for (const Entry<Section>& row : entries) known.emplace_back(row.key);
  json.reject_unknown(known);
  for (const Entry<Section>& row : entries) {
    const std::string key(row.key);
    if (!json.has(key)) continue;
    const JsonObject entry = json.object(key);
    const std::string unit = row.unit;
    if (unit.empty()) {
      entry.reject_unknown({"value", "source"});
    } else {
      entry.reject_unknown({"value", "unit", "source"});
      if (const std::string found = entry.string("unit"); found != unit)
        entry.fail("unit", fmt::format("expected \"{}\", found \"{}\"", unit, shown_name(found)));
    }
    if (entry.string("source").empty())
      entry.fail("source", "is empty; state where the value comes from");
    values.push_back({name, section, row.key, value_under(entry, "value")});
  }
}

/// What versions before another had in another way, from the latest to the earliest: each list
/// entry holds what differs from the one before it.
void add_earlier(const JsonObject& file, std::string_view name, std::deque<std::string>& names,
                 std::vector<SoftwareValue>& values) {
  if (!file.has("earlier")) return;
  const Json& list = file.json().at("earlier");
  if (!list.is_array()) file.fail("earlier", "expected a list");
  std::string_view base = name;
  std::optional<std::vector<int64_t>> latest;
  for (const Json& json : list) {
    const JsonObject entry(json, file.where() + ": earlier");
    entry.reject_unknown({"before", "traits", "costs", "server"});
    const std::string before = entry.string("before");
    const auto numbers = version_numbers(before);
    if (!numbers) entry.fail("before", "expected a version as in 0.12");
    if (latest && *numbers >= *latest)
      entry.fail("before", "expected an earlier version than that of the entry above");
    latest = numbers;
    names.push_back(fmt::format("{}{}{}", name, kBefore, before));
    values.push_back({names.back(), "", "based_on", base});
    base = names.back();
    add_section(entry, base, "traits", kTraits, values);
    add_section(entry, base, "costs", kCosts, values);
    add_section(entry, base, "server", kServer, values);
  }
}

void add_file(const JsonObject& file, std::deque<std::string>& names,
              std::vector<SoftwareValue>& values) {
  static const std::vector<std::string> kWords = {"name",      "title",     "based_on",
                                                  "position",  "stand_in",  "runs_models",
                                                  "scheduler", "cache_rule"};
  std::vector<std::string> known = kWords;
  for (const char* key : {"schema_version", "versions", "earlier", "support", "traits", "costs",
                          "server", "prefix_cache", "lora", "launch", "memory"})
    known.emplace_back(key);
  file.reject_unknown(known);
  (void)file.integer({"schema_version"}, 1, 1);
  (void)file.string("name");
  const std::string_view name = file.json().at("name").get_ref<const std::string&>();
  for (const std::string& key : kWords) {
    if (file.has(key)) values.push_back({name, "", key, value_under(file, key)});
  }
  add_versions(file, name, values);
  add_section(file, name, "support", kSupport, values);
  add_section(file, name, "traits", kTraits, values);
  add_section(file, name, "costs", kCosts, values);
  add_section(file, name, "server", kServer, values);
  add_section(file, name, "prefix_cache", kPrefixCache, values);
  add_section(file, name, "lora", kLora, values);
  add_section(file, name, "launch", kLaunch, values);
  add_section(file, name, "memory", kMemory, values);
  add_earlier(file, name, names, values);
}

struct Table {
  std::vector<SoftwareDef> defs;  ///< earlier versions last
  std::vector<std::string> names;
  std::vector<Software> stand_ins;
  Software server{};
};

Table make_table() {
  Table table{.defs = table_of(stored_software()), .names = {}, .stand_ins = {}};
  for (size_t i = 0; i < table.defs.size() && table.defs[i].before.empty(); ++i) {
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

template <typename Wanted>
std::vector<std::string> names_where(Wanted wanted) {
  std::vector<std::string> names;
  for (const SoftwareDef& def : all_software()) {
    if (wanted(def)) names.push_back(def.name);
  }
  return names;
}

}  // namespace

std::vector<SoftwareDef> read_software(std::span<const SoftwareFile> files) {
  std::vector<Json> jsons;        // the values point into it
  std::deque<std::string> names;  // and into these
  jsons.reserve(files.size());
  std::vector<SoftwareValue> values;
  for (const SoftwareFile& file : files) {
    jsons.push_back(parse_json(file.text, file.where));
    add_file(JsonObject(jsons.back(), file.where), names, values);
  }
  return table_of(values);
}

std::span<const SoftwareDef> all_software() {
  return std::span(the_table().defs).first(the_table().names.size());
}

const SoftwareDef& software_def(Software software) {
  return the_table().defs[static_cast<size_t>(software)];
}

Software newest_version(Software software) {
  const SoftwareDef& def = software_def(software);
  return def.before.empty() ? software : find_software(def.name).value();
}

Software measured_kernels(Software software) {
  const Software newest = newest_version(software);
  const std::string& other = traits_of(newest).kernels_of;
  return other.empty() ? newest : software_of(other);
}

Software software_version(Software software, std::string_view version, const std::string& where) {
  const Software newest = newest_version(software);
  if (version.empty()) return newest;
  const auto asked = version_numbers(version);
  if (!asked)
    throw Error(ErrorKind::kInput, fmt::format("{}: expected a version as in 0.12.0, found '{}'",
                                               where, shown_name(version)));
  const std::vector<SoftwareDef>& all = the_table().defs;
  for (size_t i = all_software().size(); i < all.size(); ++i) {
    if (all[i].name == software_def(newest).name && *asked < *version_numbers(all[i].before))
      return static_cast<Software>(i);
  }
  return newest;
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
  return names_where([](const SoftwareDef& def) { return def.runs_models; });
}

std::vector<std::string> inference_software_names() {
  return names_where([](const SoftwareDef& def) { return def.runs_models && def.support.infers; });
}

std::vector<std::string> server_software_names() {
  return names_where([](const SoftwareDef& def) { return def.serves(); });
}

}  // namespace tilecast
