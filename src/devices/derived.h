#pragma once

#include "devices/device.h"

namespace tilecast {

// Fields about the architecture that a GPU's file may leave out, derived from the other fields.
// Every bundled file would give its own values (a test checks this). The rules are in
// docs/reference/device_files.md.
//
// They prefer what is a fact of the architecture (supported dtypes, FLOP per clock and SM, on-chip
// memory) to numbers that differ between the products of one, so that a small change of a number
// hardly ever changes a derived word.
//
// Each takes the fields above it as given: `derived_memory_type` reads `architecture` and
// `matrix_instruction`. Vendors other than AMD are treated like NVIDIA, except for the memory type.

/// The device is a GPU, also below.
Architecture derived_architecture(const Device& device);
MatrixInstruction derived_matrix_instruction(const Device& device);
MemoryType derived_memory_type(const Device& device);
double derived_exp_per_clock_per_sm(const Gpu& gpu);
int64_t derived_schedulers_per_sm(const Gpu& gpu);
double derived_issue_per_clock(const Gpu& gpu);

}  // namespace tilecast
