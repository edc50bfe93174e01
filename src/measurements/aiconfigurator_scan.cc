#include <fmt/format.h>

#include <string>

#include "measurements/aiconfigurator.h"

// Linear attention: aiconfigurator's tables gdn (gated delta nets: Qwen3-Next, Qwen3.5) and mamba2
// (Nemotron-H). `kernel` names the part of a layer: the short convolution or the recurrence. The
// operands are replayed, and each sequence's state is read and written back.

namespace tilecast {
namespace {

/// Sequences and their tokens. In generation seq_len is 1.
SizeList step_sizes(const AiTable& table, size_t row) {
  return {
      {"batch", table.size(row, "batch")}, {"tokens", table.size(row, "seq_len")}, {"cached", 1}};
}

void add_convolution(AiTable& table, size_t row, int64_t channels, RowFacts facts) {
  SizeList sizes = step_sizes(table, row);
  sizes.push_back({"channels", channels});
  sizes.push_back({"width", table.size(row, "d_conv")});
  facts.caches = Caches::kWarm;
  facts.label_note = " (warm L2)";
  table.add(row, "causal_conv1d", DType::kBf16, sizes, std::move(facts));
}

bool is_convolution(const std::string& kernel) { return kernel.starts_with("causal_conv1d"); }

/// Whether a row's convolution has another number of channels than the model: its time does not
/// change with the value heads, and all channels would take up to 5 times the DRAM bandwidth.
bool has_other_channels(const AiTable& table, size_t row, Software software) {
  return software == software_of("trtllm") || table.text(row, "software") == "sglang 0.5.10";
}

/// For one token, the kernels for prompts take five times as long as the kernels for generation. A
/// kernel's sizes do not tell the two apart.
bool is_prompt_of_one(const AiTable& table, size_t row) {
  return table.text(row, "phase") != "generation" && table.size(row, "seq_len") == 1;
}

void read_delta_net(AiTable& table, size_t row, RowFacts facts) {
  if (is_prompt_of_one(table, row)) return table.skip("prompts of one token");
  const int64_t keys = table.size(row, "num_k_heads"), values = table.size(row, "num_v_heads");
  const int64_t key_dim = table.size(row, "head_k_dim"), value_dim = table.size(row, "head_v_dim");
  const std::string& kernel = table.text(row, "kernel");
  if (is_convolution(kernel)) {
    if (has_other_channels(table, row, facts.software))
      return table.skip("convolutions that were measured with other channels than the model's");
    // Queries, keys and values.
    return add_convolution(table, row, 2 * keys * key_dim + values * value_dim, std::move(facts));
  }
  // States in fp32 would take 1.1 to 1.2 times the DRAM bandwidth on H100 and H200.
  if (kernel == "fused_recurrent_gated_delta_rule")
    return table.skip(fmt::format("{}: the dtype of its states is not stated", kernel));
  if (!kernel.starts_with("chunk_gated_delta_rule") &&
      kernel != "fused_recurrent_gated_delta_rule_packed_decode")
    return table.skip(fmt::format("kernel '{}' is not forecast", kernel));
  SizeList sizes = step_sizes(table, row);
  sizes.push_back({"heads", values});
  sizes.push_back({"head_dim", value_dim});
  sizes.push_back({"state_dim", key_dim});
  sizes.push_back({"groups", keys});
  sizes.push_back({"delta", 1});
  facts.caches = Caches::kWarm;
  facts.label_note = table.text(row, "phase") == "generation" ? " (decode)" : "";
  table.add(row, "linear_scan", DType::kBf16, sizes, std::move(facts));
}

void read_mamba(AiTable& table, size_t row, RowFacts facts) {
  if (is_prompt_of_one(table, row)) return table.skip("prompts of one token");
  const std::string& kernel = table.text(row, "kernel");
  if (!is_convolution(kernel))
    return table.skip(fmt::format("kernel '{}' is not forecast", kernel));
  // Values, keys and queries.
  add_convolution(table, row,
                  table.size(row, "nheads") * table.size(row, "head_dim") +
                      2 * table.size(row, "n_groups") * table.size(row, "d_state"),
                  std::move(facts));
}

}  // namespace

std::vector<AiKind> scan_tables() {
  return {{{"phase", "batch", "seq_len", "d_conv", "num_k_heads", "head_k_dim", "num_v_heads",
            "head_v_dim", "kernel"},
           read_delta_net},
          {{"phase", "batch", "seq_len", "d_conv", "nheads", "head_dim", "n_groups", "d_state",
            "kernel"},
           read_mamba}};
}

}  // namespace tilecast
