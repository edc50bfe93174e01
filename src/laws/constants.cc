#include "laws/constants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "laws/constant_table.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Files of constants are about 10 kB each.
constexpr uint64_t kMaxLawBytes = uint64_t{1} << 20;

LawConstants stored_laws() {
  LawConstants laws{};
  ConstantTable table;
  laws.describe(table);
  const std::span<const StoredConstant> stored = stored_constants();
  TILECAST_CHECK(stored.size() == table.constants().size()) << "data/laws has other constants";
  for (const Constant& constant : table.constants()) {
    const auto found = std::lower_bound(
        stored.begin(), stored.end(), constant.name,
        [](const StoredConstant& a, std::string_view name) { return a.name < name; });
    TILECAST_CHECK(found != stored.end() && found->name == constant.name &&
                   constant.set(stored_numbers().subspan(found->first, found->count)))
        << constant.name;
  }
  return laws;
}

}  // namespace

void ChipConstants::describe(ConstantTable& table) {
  table.add("gddr_dram_share", gddr_dram_share);
  table.add("inline_ecc_share", inline_ecc_share);
  table.add("hbm_dram_share", hbm_dram_share);
  table.add("hbm3_dram_share", hbm3_dram_share);
  table.add("launch_reference_hz", launch_reference_hz);
}

void IntervalConstants::describe(ConstantTable& table) {
  table.add("dram_reached_share", dram_reached_share);
  table.add("unit_reached_share", unit_reached_share);
  table.add("explains_share", explains_share);
  table.add("extrapolation_share", extrapolation_share);
  table.add("no_model_ratio", no_model_ratio);
  table.add("unmeasured_stream_high_log", unmeasured_stream_high_log);
  table.add("unmeasured_rows_low_log", unmeasured_rows_low_log);
  table.add("unmeasured_rows_high_log", unmeasured_rows_high_log);
  table.add("server_ttft_low_log", server_ttft_low_log);
  table.add("server_ttft_high_log", server_ttft_high_log);
  table.add("server_tpot_low_log", server_tpot_low_log);
  table.add("server_itl_high_log", server_itl_high_log);
  table.add("server_itl_low_log", server_itl_low_log);
  table.add("server_tpot_high_log", server_tpot_high_log);
  table.add("step_high_log", step_high_log);
  table.add("step_machine_log", step_machine_log);
}

void HostConstants::describe(ConstantTable& table) {
  table.add("fast_ratio", fast_ratio);
  table.add("slow_ratio", slow_ratio);
  table.add("memory_bytes_per_s", memory_bytes_per_s);
  table.add("link_ratio", link_ratio);
}

void LawConstants::describe(ConstantTable& table) {
  table.group("chip", chip);
  table.group("lanes", lanes);
  table.group("matmul", matmul);
  table.group("tensor_matmul", tensor_matmul);
  table.group("attention", attention);
  table.group("decode_attention", decode_attention);
  table.group("convolution", convolution);
  table.group("stream", stream);
  table.group("rows", rows);
  table.group("block_rows", block_rows);
  table.group("experts", experts);
  table.group("scan", scan);
  table.group("embedding_bag", embedding_bag);
  table.group("class_roofline", class_roofline);
  table.group("collectives", collectives);
  table.group("expert_exchange", expert_exchange);
  table.group("intervals", intervals);
  table.group("sharing", sharing);
  table.group("host", host);
  table.group("power", power);
  table.group("trace", trace);
}

const LawConstants& bundled_laws() {
  static const LawConstants laws = stored_laws();
  return laws;
}

LawConstants load_laws(const std::filesystem::path& folder) {
  LawConstants laws = bundled_laws();
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none)) return laws;
  ConstantTable table;
  laws.describe(table);
  std::vector<std::string> names;
  for (const Constant& constant : table.constants()) {
    std::string law = constant.name.substr(0, constant.name.find('.'));
    if (names.empty() || names.back() != law) names.push_back(std::move(law));
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    const std::string law = path.stem().string();
    if (std::find(names.begin(), names.end(), law) == names.end())
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: no law has this name{}", printable(path.string()),
                              did_you_mean(law, names)));
    table.read(law, read_file(path, kMaxLawBytes), printable(path.string()));
  }
  return laws;
}

}  // namespace tilecast
