#pragma once

// A convolution as MIOpen's databases and this folder's models see it. It holds what `Convolution`
// of ops/kernel.h leaves out and kernels are chosen by: padding, and each axis by itself.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dtype.h"
#include "tuning/problem_words.h"  // miopen_precision

namespace tilecast::tuning {

enum class ConvPass : uint8_t { kForward, kInputGradient, kWeightGradient };

/// The forward convolution x[n,c,h,w] * w[k,c/group,r,s] -> y[n,k,oh,ow], whatever the pass.
struct ConvProblem {
  ConvPass pass = ConvPass::kForward;
  DType dtype = DType::kFp32;
  bool channels_last = false;  ///< NHWC; else NCHW
  int64_t n = 1, c = 1, h = 1, w = 1;
  int64_t k = 1, oh = 1, ow = 1;
  int64_t r = 1, s = 1;
  int64_t pad_h = 0, pad_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dil_h = 1, dil_w = 1;
  int64_t group = 1;

  bool operator==(const ConvProblem&) const = default;

  double flops() const;
  double input_bytes() const;
  double weight_bytes() const;
  double output_bytes() const;
};

/// The letter of a pass in MIOpen's databases: F, B, W.
char pass_letter(ConvPass pass);

/// Reads "conv n=32 c=256 h=56 w=56 k=64 r=1 s=1 dtype=fp32 dir=F", with pad, stride, dil (or
/// pad_h, pad_w, ...), group and layout where they are not 0, 1, 1, 1 and NCHW; or a key of
/// MIOpen's databases ("256-56-56-1x1-64-56-56-32-0x0-1x1-1x1-0-NCHW-FP32-F"). `where` names the
/// source in messages. Throws Error{kInput} that names the field.
ConvProblem parse_problem(std::string_view text, const std::string& where);

/// Whether the text begins as a problem does, and so is not the path of a model.
bool is_problem_text(std::string_view text);

/// Sets oh and ow by the other sizes. Throws Error{kInput} where sizes are out of range, the group
/// does not divide the channels, or the window is larger than the padded image.
void complete_problem(ConvProblem& problem, const std::string& where);

/// The form that `parse_problem` reads; what is at its default is left out.
std::string format_problem(const ConvProblem& problem);

/// The key of the problem in MIOpen's databases: they name the side that the kernel reads first,
/// which is the gradient of y for both gradients.
std::string miopen_key(const ConvProblem& problem);

/// The convolutions that a command line of MIOpenDriver runs: one for each pass that its -F asks
/// for. Empty if the line runs something else than a convolution in 2-D. Throws Error{kInput}.
std::vector<ConvProblem> parse_driver_line(std::string_view line, const std::string& where);

/// All of them in a log, each problem once, in the order of the lines.
std::vector<ConvProblem> parse_driver_log(std::string_view log, const std::string& where);

}  // namespace tilecast::tuning
