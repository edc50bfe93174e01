#include "laws/kernels.h"

#include "laws/constant_table.h"

namespace tilecast {

void StreamConstants::describe(ConstantTable& table) {
  table.add("start_s", start_s);
  table.add("hbm_dram_share", hbm_dram_share);
  table.add("amd_hbm_dram_share", amd_hbm_dram_share);
  table.add("gddr_dram_share", gddr_dram_share);
  table.add("l2_bytes_per_cycle", l2_bytes_per_cycle);
  table.add("kept_ratio", kept_ratio);
  table.add("kept_part", kept_part);
  table.add("batch_norm_ratio", batch_norm_ratio);
  table.add("batch_norm_cycles", batch_norm_cycles);
}

void ClassRooflineConstants::describe(ConstantTable& table) {
  table.add("product_share", product_share);
  table.add("product_of_8_bits_share", product_of_8_bits_share);
  table.add("product_memory_share", product_memory_share);
  table.add("attention_share", attention_share);
  table.add("attention_of_8_bits_share", attention_of_8_bits_share);
  table.add("cache_share", cache_share);
  table.add("experts_share", experts_share);
  table.add("experts_memory_share", experts_memory_share);
  table.add("vector_share", vector_share);
  table.add("memory_share", memory_share);
  table.add("start_s", start_s);
  table.add("interval_ratio", interval_ratio);
}

void RowCost::describe(ConstantTable& table) {
  table.add("row_cycles", row_cycles);
  table.add("element_cycles", element_cycles);
  table.add("start_cycles", start_cycles);
  table.add("chain_cycles", chain_cycles);
}

void VectorRowCost::describe(ConstantTable& table) {
  table.add("l2_bytes_per_cycle", l2_bytes_per_cycle);
  table.add("chain_cycles", chain_cycles);
}

void RowsConstants::describe(ConstantTable& table) {
  table.group("norm", norm);
  table.group("short_softmax", short_softmax);
  table.group("long_softmax", long_softmax);
  table.add("reference_schedulers", reference_schedulers);
  table.add("register_columns", register_columns);
  table.add("columns_per_thread", columns_per_thread);
  table.add("fewest_threads", fewest_threads);
  table.add("most_threads", most_threads);
  table.add("threads_in_flight", threads_in_flight);
  table.add("l2_bytes_per_cycle", l2_bytes_per_cycle);
  table.add("missed_share", missed_share);
  table.add("softmax_reading_ratio", softmax_reading_ratio);
}

void BlockRowsConstants::describe(ConstantTable& table) {
  table.group("norm", norm);
  table.group("gate", gate);
  table.group("rotary", rotary);
  table.add("second_reading_bytes_per_cycle", second_reading_bytes_per_cycle);
  table.group("norm_by_vectors", norm_by_vectors);
  table.group("gate_by_vectors", gate_by_vectors);
  table.group("rotary_by_vectors", rotary_by_vectors);
  table.add("missed_l2_ratio", missed_l2_ratio);
}

void MarlinExperts::describe(ConstantTable& table) {
  table.add("mma_flops_per_cycle", mma_flops_per_cycle);
  table.add("reached_ratio", reached_ratio);
  table.add("conversion_cycles", conversion_cycles);
  table.add("activation_passes", activation_passes);
  table.add("least_fill", least_fill);
  table.add("column_multiple", column_multiple);
  table.add("reduction_multiple", reduction_multiple);
  table.add("tile_rows", tile_rows);
}

void CdnaExperts::describe(ConstantTable& table) {
  table.add("tile_rows", tile_rows);
  table.add("tile_columns", tile_columns);
  table.add("fill_cycles", fill_cycles);
  table.add("element_cycles", element_cycles);
  table.add("conversion_cycles", conversion_cycles);
  table.add("activation_passes", activation_passes);
}

void ExpertsConstants::describe(ConstantTable& table) {
  table.add("reached_ratio", reached_ratio);
  table.add("conversion_cycles", conversion_cycles);
  table.add("l2_bytes_per_cycle", l2_bytes_per_cycle);
  table.add("activation_passes", activation_passes);
  table.add("fill_cycles", fill_cycles);
  table.add("element_cycles", element_cycles);
  table.add("idle_share", idle_share);
  table.add("tile_rows", tile_rows);
  table.add("tile_columns", tile_columns);
  table.add("hbm_j_per_flop", hbm_j_per_flop);
  table.add("gddr_j_per_flop", gddr_j_per_flop);
  table.add("l2_fit_ratio", l2_fit_ratio);
  table.add("l2_fit_span_ratio", l2_fit_span_ratio);
  table.add("dram_time_ratio", dram_time_ratio);
  table.group("marlin", marlin);
  table.group("cdna3", cdna3);
}

void ScanConstants::describe(ConstantTable& table) {
  table.add("step_launch_us", step_launch_us);
  table.add("prompt_launch_us", prompt_launch_us);
  table.add("chunk_tokens", chunk_tokens);
  table.add("chunk_cycles", chunk_cycles);
  table.add("idle_share", idle_share);
  table.add("all_in_l2_ratio", all_in_l2_ratio);
  table.add("none_in_l2_ratio", none_in_l2_ratio);
  table.add("l2_bytes_per_cycle", l2_bytes_per_cycle);
  table.add("prompt_passes", prompt_passes);
}

void EmbeddingBagConstants::describe(ConstantTable& table) {
  table.add("l2_bytes_per_cycle", l2_bytes_per_cycle);
  table.add("gather_share", gather_share);
  table.add("row_s", row_s);
  table.add("interval_ratio", interval_ratio);
}

}  // namespace tilecast
