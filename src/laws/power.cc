#include "laws/power.h"

#include "laws/constant_table.h"

namespace tilecast {

void FlopEnergies::describe(ConstantTable& table) {
  table.add("matrix_4_bit_j_per_flop", matrix_4_bit_j_per_flop);
  table.add("matrix_8_bit_j_per_flop", matrix_8_bit_j_per_flop);
  table.add("matrix_16_bit_j_per_flop", matrix_16_bit_j_per_flop);
  table.add("matrix_tf32_j_per_flop", matrix_tf32_j_per_flop);
  table.add("attention_16_bit_j_per_flop", attention_16_bit_j_per_flop);
  table.add("lanes_16_bit_j_per_flop", lanes_16_bit_j_per_flop);
  table.add("lanes_fp32_j_per_flop", lanes_fp32_j_per_flop);
  table.add("stream_j_per_flop", stream_j_per_flop);
  table.add("norm_j_per_flop", norm_j_per_flop);
  table.add("softmax_j_per_flop", softmax_j_per_flop);
  table.add("empty_rows_j_per_flop", empty_rows_j_per_flop);
  table.add("decode_tile_rows", decode_tile_rows);
}

void PowerConstants::describe(ConstantTable& table) {
  table.add("voltage_at_rest", voltage_at_rest);
  table.add("idle_share", idle_share);
  table.add("clock_share", clock_share);
  table.add("busy_share", busy_share);
  table.group("flop", flop);
  table.add("hbm_j_per_byte", hbm_j_per_byte);
  table.add("hbm3e_j_per_byte", hbm3e_j_per_byte);
  table.add("gddr_j_per_byte", gddr_j_per_byte);
  table.add("old_process_nm", old_process_nm);
  table.add("old_process_ratio", old_process_ratio);
  table.add("held_share", held_share);
  table.add("reached_share", reached_share);
  table.add("lowest_clock_share", lowest_clock_share);
  table.add("converted_experts_share", converted_experts_share);
  table.add("warm_share", warm_share);
  table.add("measured_log", measured_log);
  table.add("other_log", other_log);
}

}  // namespace tilecast
