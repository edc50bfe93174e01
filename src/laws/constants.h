#pragma once

// The constants of all laws: what Tilecast believes about kernels and links beside their work and
// the data sheets. They are data: data/laws has a file for each law, with what each constant is and
// how it was found; docs/reference/laws.md lists them. Laws take them as an argument, so a fit can
// change one and ask again. Not here: what differs between kinds of software (src/software).

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "laws/attention.h"
#include "laws/convolution.h"
#include "laws/host.h"
#include "laws/kernels.h"
#include "laws/links.h"
#include "laws/power.h"
#include "laws/products.h"
#include "laws/sharing.h"
#include "laws/trace.h"

namespace tilecast {

/// What kernels reach of a data sheet, whatever their kind.
struct ChipConstants {
  double gddr_dram_share, inline_ecc_share, hbm_dram_share, hbm3_dram_share, launch_reference_hz;

  void describe(ConstantTable& table);
  bool operator==(const ChipConstants&) const = default;
};

/// How sure forecasts are that no residual corrects, and what the data sheet leaves room for.
struct IntervalConstants {
  double dram_reached_share, unit_reached_share, explains_share, extrapolation_share,
      no_model_ratio, unmeasured_stream_high_log, unmeasured_rows_low_log, unmeasured_rows_high_log,
      server_ttft_low_log, server_ttft_high_log, server_tpot_low_log, server_tpot_high_log,
      server_itl_low_log, server_itl_high_log, step_high_log, step_machine_log;

  void describe(ConstantTable& table);
  bool operator==(const IntervalConstants&) const = default;
};

/// A member for each file of data/laws, of its name.
struct LawConstants {
  ChipConstants chip;
  LaneConstants lanes;
  MatmulConstants matmul;
  TensorMatmulConstants tensor_matmul;
  AttentionConstants attention;
  DecodeConstants decode_attention;
  ConvolutionConstants convolution;
  StreamConstants stream;
  RowsConstants rows;
  BlockRowsConstants block_rows;
  ExpertsConstants experts;
  ScanConstants scan;
  EmbeddingBagConstants embedding_bag;
  ClassRooflineConstants class_roofline;
  CollectiveConstants collectives;
  ExpertExchangeConstants expert_exchange;
  IntervalConstants intervals;
  SharingConstants sharing;
  HostConstants host;
  PowerConstants power;
  TraceConstants trace;

  void describe(ConstantTable& table);
  bool operator==(const LawConstants&) const = default;
};

/// The constants that the build put into the program; read once, on first use.
const LawConstants& bundled_laws();

/// Those, with the files of a folder in place of the bundled ones of the same name. A folder that
/// does not exist has none. Throws Error{kInput} for a file that is not named like a law, or as
/// ConstantTable::read.
LawConstants load_laws(const std::filesystem::path& folder);

/// A constant as the build stores it: `count` numbers from `first` on.
struct StoredConstant {
  std::string_view name;
  size_t first, count;
};
/// What the build made of data/laws, in the order of names.
std::span<const StoredConstant> stored_constants();
std::span<const double> stored_numbers();

}  // namespace tilecast
