#pragma once

// Constants of the law of a board's power (src/predict/power.h). What each is and how it was found:
// data/laws/power.json.

namespace tilecast {

class ConstantTable;

/// Energy of a FLOP by the unit that computes it, at the voltage of the highest clock.
struct FlopEnergies {
  double matrix_4_bit_j_per_flop, matrix_8_bit_j_per_flop, matrix_16_bit_j_per_flop,
      matrix_tf32_j_per_flop, attention_16_bit_j_per_flop, lanes_16_bit_j_per_flop,
      lanes_fp32_j_per_flop, stream_j_per_flop, norm_j_per_flop, softmax_j_per_flop,
      empty_rows_j_per_flop, decode_tile_rows;

  void describe(ConstantTable& table);
  bool operator==(const FlopEnergies&) const = default;
};

struct PowerConstants {
  double voltage_at_rest, idle_share, clock_share, busy_share;
  FlopEnergies flop;
  double hbm_j_per_byte, hbm3e_j_per_byte, gddr_j_per_byte, old_process_nm, old_process_ratio,
      held_share, reached_share, lowest_clock_share, converted_experts_share, warm_share,
      measured_log, other_log;

  void describe(ConstantTable& table);
  bool operator==(const PowerConstants&) const = default;
};

}  // namespace tilecast
