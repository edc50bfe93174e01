#include "laws/products.h"

#include "laws/constant_table.h"

namespace tilecast {

void LaneConstants::describe(ConstantTable& table) {
  table.add("reached_share", reached_share);
  table.add("loop_cycles", loop_cycles);
  table.add("other_per_fma_ratio", other_per_fma_ratio);
  table.add("loads_per_fma_ratio", loads_per_fma_ratio);
  table.add("dual_issue_per_fma_ratio", dual_issue_per_fma_ratio);
  table.add("perimeter_ratio", perimeter_ratio);
  table.add("unknown_process_nm", unknown_process_nm);
  table.add("old_process_nm", old_process_nm);
  table.add("old_process_j_per_flop", old_process_j_per_flop);
  table.add("new_process_j_per_flop", new_process_j_per_flop);
}

void SplitBlocks::describe(ConstantTable& table) {
  table.add("fill_cycles", fill_cycles);
  table.add("split_in_two_cycles", split_in_two_cycles);
  table.add("element_cycles", element_cycles);
  table.add("idle_share", idle_share);
  table.add("shortest_k", shortest_k);
}

void TileEnergy::describe(ConstantTable& table) {
  table.add("j_per_flop", j_per_flop);
  table.add("j_per_byte", j_per_byte);
}

void PascalDrift::describe(ConstantTable& table) {
  table.add("steps_of_k", steps_of_k);
  table.add("results", results);
  table.add("results_exponent", results_exponent);
  table.add("reference_l2_bytes", reference_l2_bytes);
  table.add("dram_share", dram_share);
}

void LongRows::describe(ConstantTable& table) {
  table.add("added_ratio", added_ratio);
  table.add("from_k", from_k);
  table.add("to_k", to_k);
}

void PowerInTime::describe(ConstantTable& table) {
  table.add("shortest_share", shortest_share);
  table.add("from_s", from_s);
  table.add("to_s", to_s);
}

void MatmulConstants::describe(ConstantTable& table) {
  table.add("tiles", tiles);
  table.add("splits", splits);
  table.add("batched_pascal_tiles", batched_pascal_tiles);
  table.add("batched_volta_tiles", batched_volta_tiles);
  table.add("batched_ampere_tiles", batched_ampere_tiles);
  table.add("linear_pascal_tiles", linear_pascal_tiles);
  table.add("smallest_k_to_split", smallest_k_to_split);
  table.group("blocks", blocks);
  table.group("amd_blocks", amd_blocks);
  table.add("vector_fill_cycles", vector_fill_cycles);
  table.group("new_process_energy", new_process_energy);
  table.group("cool_energy", cool_energy);
  table.group("warm_energy", warm_energy);
  table.add("warm_process_nm", warm_process_nm);
  table.add("matrix_reached_share", matrix_reached_share);
  table.add("matrix_loop_cycles", matrix_loop_cycles);
  table.add("pascal_square_fmas_per_cycle", pascal_square_fmas_per_cycle);
  table.add("pascal_long_fmas_per_cycle", pascal_long_fmas_per_cycle);
  table.add("least_dram_share", least_dram_share);
  table.add("all_in_l2_ratio", all_in_l2_ratio);
  table.add("none_in_l2_ratio", none_in_l2_ratio);
  table.group("drift", drift);
  table.group("long_rows", long_rows);
  table.group("power", power);
}

void TensorBlocks::describe(ConstantTable& table) {
  table.add("fill_cycles", fill_cycles);
  table.add("split_cycles", split_cycles);
  table.add("element_cycles", element_cycles);
  table.add("idle_share", idle_share);
  table.add("shortest_k", shortest_k);
  table.add("launch_us", launch_us);
  table.add("chain_cycles", chain_cycles);
  table.add("ramp_us", ramp_us);
  table.add("l2_bytes_per_cycle", l2_bytes_per_cycle);
  table.add("hbm_j_per_flop", hbm_j_per_flop);
  table.add("gddr_j_per_flop", gddr_j_per_flop);
}

void AmdBlocks::describe(ConstantTable& table) {
  table.add("fill_cycles", fill_cycles);
  table.add("split_cycles", split_cycles);
  table.add("split_in_two_cycles", split_in_two_cycles);
  table.add("element_cycles", element_cycles);
  table.add("idle_share", idle_share);
  table.add("shortest_k", shortest_k);
  table.add("latency_cycles", latency_cycles);
  table.add("reached_share", reached_share);
  table.add("smaller_ratio", smaller_ratio);
  table.add("launch_us", launch_us);
  table.add("power_share", power_share);
}

void CdnaBlocks::describe(ConstantTable& table) {
  table.add("tiles", tiles);
  table.add("most_block_scaled_elements", most_block_scaled_elements);
  table.add("fill_cycles", fill_cycles);
  table.add("split_cycles", split_cycles);
  table.add("element_cycles", element_cycles);
  table.add("idle_share", idle_share);
  table.add("shortest_k", shortest_k);
  table.add("latency_cycles", latency_cycles);
  table.add("block_scaled_latency_cycles", block_scaled_latency_cycles);
  table.add("feed_bytes_per_cycle", feed_bytes_per_cycle);
  table.add("launch_us", launch_us);
  table.add("of_16_bits_j_per_flop", of_16_bits_j_per_flop);
  table.add("of_8_bits_j_per_flop", of_8_bits_j_per_flop);
  table.add("of_4_bits_j_per_flop", of_4_bits_j_per_flop);
  table.add("reference_process_nm", reference_process_nm);
}

void QuantizationLaunches::describe(ConstantTable& table) {
  table.add("all_in_l2_ratio", all_in_l2_ratio);
  table.add("none_in_l2_ratio", none_in_l2_ratio);
  table.add("l2_bytes_per_cycle", l2_bytes_per_cycle);
}

void TensorMatmulConstants::describe(ConstantTable& table) {
  table.add("tiles", tiles);
  table.add("splits", splits);
  table.add("large_tiles", large_tiles);
  table.add("amd_tiles", amd_tiles);
  table.group("of_16_bits", of_16_bits);
  table.group("of_8_bits", of_8_bits);
  table.add("issue_share", issue_share);
  table.add("ramp_half_us", ramp_half_us);
  table.group("packed_lanes", packed_lanes);
  table.group("matrix_cores", matrix_cores);
  table.group("cdna3", cdna3);
  table.add("gcn5_widening_share", gcn5_widening_share);
  table.add("element_flops_per_cycle", element_flops_per_cycle);
  table.add("word_flops_per_cycle", word_flops_per_cycle);
  table.add("aligned_16_bit_elements", aligned_16_bit_elements);
  table.add("aligned_tf32_elements", aligned_tf32_elements);
  table.add("l2_fit_ratio", l2_fit_ratio);
  table.add("l2_fit_span_ratio", l2_fit_span_ratio);
  table.group("quantization", quantization);
  table.add("conversion_ratio", conversion_ratio);
}

}  // namespace tilecast
