#pragma once

// Accelerators by id or file, with the values of their parameters.

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/dataflow.h"
#include "accelerator/machine.h"
#include "accelerator/names.h"  // beside what opens them

namespace tilecast::accelerator {

/// The host core, which runs operators that the accelerator does not run.
struct Host {
  double bytes_per_cycle = 0;  ///< that it reads and writes
  /// Multiplications with additions, on top of the bytes; infinite if the description states none.
  double macs_per_cycle = std::numeric_limits<double>::infinity();
};

struct Design {
  std::string id;
  std::string name;
  Machine machine;
  Dataflow flow;
  std::optional<Host> host;
  std::string operand_dtype;      ///< of inputs and weights
  std::string accumulator_dtype;  ///< of sums

  double on_chip_bytes() const;
};

/// "gemmini-16", "gemmini:DIM=8,SCRATCHPAD=131072", "systolic-array:dataflow=weight_stationary",
/// "my.json". `values` come on top. Throws Error{kNotFound} or Error{kInput}.
Design open_accelerator(const std::string& spec, const ParameterValues& values = {});

/// Reads the text of a description. `where` names it in messages.
Design parse_accelerator(std::string_view text, const std::string& where,
                         const std::string& dataflow = "", const ParameterValues& values = {});

}  // namespace tilecast::accelerator
