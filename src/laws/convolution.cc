#include "laws/convolution.h"

#include "laws/constant_table.h"

namespace tilecast {

void ImplicitProduct::describe(ConstantTable& table) {
  table.add("tiles", tiles);
  table.add("weight_tiles", weight_tiles);
  table.add("weight_splits", weight_splits);
  table.add("step_ratio", step_ratio);
  table.add("dram_share", dram_share);
  table.add("energy_ratio", energy_ratio);
  table.group("blocks", blocks);
}

void FusedWinograd::describe(ConstantTable& table) {
  table.add("shapes", shapes);
  table.add("tile", tile);
  table.add("result_channels", result_channels);
  table.add("step_ratio", step_ratio);
  table.add("transform_cycles", transform_cycles);
  table.add("energy_ratio", energy_ratio);
  table.add("element_cycles", element_cycles);
  table.add("fill_cycles", fill_cycles);
}

void SteppedProduct::describe(ConstantTable& table) {
  table.add("tiles", tiles);
  table.add("ampere_tiles", ampere_tiles);
  table.add("fill_cycles", fill_cycles);
  table.add("element_cycles", element_cycles);
  table.add("idle_share", idle_share);
  table.add("shortest_k", shortest_k);
}

void TransformCost::describe(ConstantTable& table) {
  table.add("images_ratio", images_ratio);
  table.add("filters_ratio", filters_ratio);
  table.add("result_ratio", result_ratio);
  table.add("sm_bytes_per_cycle", sm_bytes_per_cycle);
  table.add("step_ratio", step_ratio);
}

void Depthwise::describe(ConstantTable& table) {
  table.add("reached_share", reached_share);
  table.add("half_reached_share", half_reached_share);
  table.add("slow_reached_share", slow_reached_share);
  table.add("slow_taps", slow_taps);
  table.add("plain_taps", plain_taps);
  table.add("pixel_cycles", pixel_cycles);
  table.add("tap_cycles", tap_cycles);
  table.add("gradient_pixel_cycles", gradient_pixel_cycles);
  table.add("gradient_tap_cycles", gradient_tap_cycles);
}

void GroupedByPixel::describe(ConstantTable& table) {
  table.add("tile_channels", tile_channels);
  table.add("widest_gradient", widest_gradient);
  table.add("whole_groups", whole_groups);
  table.add("repacked_cycles", repacked_cycles);
}

void GatherCost::describe(ConstantTable& table) {
  table.add("step_ratio", step_ratio);
  table.add("chain_cycles", chain_cycles);
  table.add("fill_cycles", fill_cycles);
  table.add("slab_channels", slab_channels);
  table.add("strided_ratio", strided_ratio);
  table.add("tf32_input_ratio", tf32_input_ratio);
  table.add("tf32_weight_ratio", tf32_weight_ratio);
  table.add("launch_us", launch_us);
}

void MatrixUnitBlocks::describe(ConstantTable& table) {
  table.add("tiles", tiles);
  table.add("splits", splits);
  table.add("split_cycles", split_cycles);
  table.add("element_cycles", element_cycles);
  table.add("idle_share", idle_share);
  table.add("shortest_k", shortest_k);
  table.add("issue_share", issue_share);
  table.add("small_slab_channels", small_slab_channels);
  table.add("hbm_j_per_flop", hbm_j_per_flop);
  table.add("gddr_j_per_flop", gddr_j_per_flop);
  table.add("ramp_s", ramp_s);
  table.add("ramp_half_s", ramp_half_s);
}

void ConvolutionConstants::describe(ConstantTable& table) {
  table.add("launch_s", launch_s);
  table.add("smallest_k_to_split", smallest_k_to_split);
  table.group("implicit", implicit);
  table.group("fused_winograd", fused_winograd);
  table.group("steps", steps);
  table.add("winograd_3_side", winograd_3_side);
  table.add("winograd_5_side", winograd_5_side);
  table.group("winograd", winograd);
  table.add("fourier_sides", fourier_sides);
  table.group("fourier", fourier);
  table.group("depthwise", depthwise);
  table.group("grouped", grouped);
  table.group("gather", gather);
  table.group("plain", plain);
  table.group("units", units);
}

}  // namespace tilecast
