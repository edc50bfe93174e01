#include "laws/attention.h"

#include "laws/constant_table.h"

namespace tilecast {

void AttentionConstants::describe(ConstantTable& table) {
  table.add("key_tile", key_tile);
  table.add("query_tile", query_tile);
  table.add("few_query_tile", few_query_tile);
  table.add("head_step", head_step);
  table.add("wide_head_step", wide_head_step);
  table.add("wide_head_dim", wide_head_dim);
  table.add("tcgen05_head_step", tcgen05_head_step);
  table.add("square_tile", square_tile);
  table.add("square_tile_above_head_dim", square_tile_above_head_dim);
  table.add("square_tile_most_head_dim", square_tile_most_head_dim);
  table.add("square_tile_on_chip_bytes", square_tile_on_chip_bytes);
  table.add("paged_query_tile", paged_query_tile);
  table.add("paged_least_head_dim", paged_least_head_dim);
  table.add("paged_most_head_dim", paged_most_head_dim);
  table.add("paged_key_elements", paged_key_elements);
  table.add("triton_wgmma_head_dim", triton_wgmma_head_dim);
  table.add("triton_wgmma_windowed_head_dim", triton_wgmma_windowed_head_dim);
  table.add("triton_tcgen05_head_dim", triton_tcgen05_head_dim);
  table.add("products_ratio", products_ratio);
  table.add("exponential_ratio", exponential_ratio);
  table.add("other_instructions", other_instructions);
  table.add("conversion_instructions", conversion_instructions);
  table.add("large_head_dim", large_head_dim);
  table.add("large_head_ratio", large_head_ratio);
  table.add("hbm_j_per_flop", hbm_j_per_flop);
  table.add("gddr_j_per_flop", gddr_j_per_flop);
  table.add("triton_ratio", triton_ratio);
  table.add("backward_ratio", backward_ratio);
  table.add("backward_passes", backward_passes);
  table.add("l2_fit_ratio", l2_fit_ratio);
  table.add("l2_fit_span_ratio", l2_fit_span_ratio);
  table.add("l2_bytes_per_cycle", l2_bytes_per_cycle);
  table.add("launch_us", launch_us);
  table.add("plain_launch_us", plain_launch_us);
  table.add("convert_launch_us", convert_launch_us);
  table.add("tile_cycles", tile_cycles);
  table.add("longest_share", longest_share);
  table.add("overlap_exponent", overlap_exponent);
}

void Tcgen05Decode::describe(ConstantTable& table) {
  table.add("block_cycles", block_cycles);
  table.add("few_heads", few_heads);
  table.add("more_heads", more_heads);
  table.add("more_heads_ratio", more_heads_ratio);
  table.add("most_heads_ratio", most_heads_ratio);
  table.add("latency_cycles", latency_cycles);
}

void CompiledDecode::describe(ConstantTable& table) {
  table.add("single_block_cycles", single_block_cycles);
  table.add("packed_block_cycles", packed_block_cycles);
  table.add("packed_heads", packed_heads);
  table.add("most_block_cycles", most_block_cycles);
  table.add("fallback_block_cycles", fallback_block_cycles);
  table.add("fallback_element_cycles", fallback_element_cycles);
}

void DecodeIntake::describe(ConstantTable& table) {
  table.add("sm_bytes_per_cycle", sm_bytes_per_cycle);
  table.add("fewest_keys", fewest_keys);
  table.add("converted_bytes", converted_bytes);
}

void DecodeConstants::describe(ConstantTable& table) {
  table.group("tcgen05", tcgen05);
  table.group("compiled", compiled);
  table.add("latent_block_cycles", latent_block_cycles);
  table.add("flash_block_cycles", flash_block_cycles);
  table.add("flash_heads_of_block", flash_heads_of_block);
  table.add("free_blocks", free_blocks);
  table.group("bulk_intake", bulk_intake);
  table.group("thread_intake", thread_intake);
  table.add("overlap_exponent", overlap_exponent);
  table.add("block_bytes_per_cycle", block_bytes_per_cycle);
  table.add("latent_products_ratio", latent_products_ratio);
  table.add("l2_fit_ratio", l2_fit_ratio);
  table.add("l2_fit_span_ratio", l2_fit_span_ratio);
  table.add("dram_ratio", dram_ratio);
  table.add("triton_parts", triton_parts);
  table.add("triton_key_ratio", triton_key_ratio);
}

}  // namespace tilecast
