#pragma once

// A matrix product as rocBLAS's tuned sizes (Tensile) name it, and what the model of its kernels
// sees of it: tools/tuner/tensile.py computes the same numbers; gemm_problem_test.cc compares both
// on the samples that the weights carry.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/beam.h"

namespace tilecast::tuning {

/// C[m,n] = op(A)[m,k] op(B)[k,n], as BLAS stores it: by columns. PyTorch's linear layer of b rows
/// is m = out features, n = b, k = in features with trans_a.
struct GemmProblem {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  bool trans_a = false, trans_b = false;
  DType dtype = DType::kFp32;  ///< of A and B
  DType acc = DType::kFp32;    ///< of the sums
  DType out = DType::kFp32;    ///< of C
  bool operator==(const GemmProblem&) const = default;
};

/// Whether the text begins as a product does.
bool is_gemm_text(std::string_view text);

/// Reads "gemm m=4096 n=512 k=1024 dtype=fp16", with batch (1), trans_a and trans_b (N or T; N),
/// acc (fp32; int32 of int8) and out (that of A and B; int32 of int8). Throws Error{kInput} that
/// names the field.
GemmProblem parse_gemm(std::string_view text, const std::string& where);
/// The form that `parse_gemm` reads; what is at its default is left out.
std::string format_gemm(const GemmProblem& problem);

/// The sizes of a product on a chip as rules see them.
Sizes sizes_of(const GemmProblem& problem, const TunedChip& chip);
SourceText source_text(const GemmProblem& problem, const TunedChip& chip);

/// One kernel of rocBLAS, or several that share what is set.
struct TensileKernel {
  int64_t tile_m = 0, tile_n = 0, depth_u = 0, split = 1;
  int64_t mi_m = 0, mi_n = 0, mi_k = 0, mi_blocks = 0;  ///< 0: no matrix instruction
  double probability = 0;  ///< that it is the fastest, among the legal ones
};

/// "32x32x8x1"; "none" without a matrix instruction.
std::string matrix_instruction_name(const TensileKernel& kernel);

/// Forecast of one part of the kernel alone: the probabilities of its values, the largest first,
/// summed over the kernels that the beam kept.
struct TensileParameter {
  std::string name;  ///< "macro_tile", "depth_u", "split" or "matrix_instruction"
  std::vector<std::pair<std::string, double>> values;
};

struct TensileAnswer {
  std::vector<TensileKernel> kernels;  ///< the most probable first; as many as the beam kept
  std::vector<TensileParameter> parts;
};

/// Throws nothing; a product of any size has legal kernels on any chip.
TensileAnswer search_tensile(const GemmProblem& problem, const TunedChip& chip, size_t beam);

}  // namespace tilecast::tuning
