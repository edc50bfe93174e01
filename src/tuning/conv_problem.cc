#include "tuning/conv_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "base/text.h"

namespace tilecast::tuning {
namespace {

/// Keeps all products of sizes exact in a double.
constexpr double kMostConvElements = 1e12;

struct ConvSizeField {
  std::string_view name;
  int64_t ConvProblem::* member;
  int64_t least;
  bool required;
};

constexpr std::array kConvSizes = {ConvSizeField{"n", &ConvProblem::n, 1, true},
                                   ConvSizeField{"c", &ConvProblem::c, 1, true},
                                   ConvSizeField{"h", &ConvProblem::h, 1, true},
                                   ConvSizeField{"w", &ConvProblem::w, 1, true},
                                   ConvSizeField{"k", &ConvProblem::k, 1, true},
                                   ConvSizeField{"r", &ConvProblem::r, 1, true},
                                   ConvSizeField{"s", &ConvProblem::s, 1, true},
                                   ConvSizeField{"pad_h", &ConvProblem::pad_h, 0, false},
                                   ConvSizeField{"pad_w", &ConvProblem::pad_w, 0, false},
                                   ConvSizeField{"stride_h", &ConvProblem::stride_h, 1, false},
                                   ConvSizeField{"stride_w", &ConvProblem::stride_w, 1, false},
                                   ConvSizeField{"dil_h", &ConvProblem::dil_h, 1, false},
                                   ConvSizeField{"dil_w", &ConvProblem::dil_w, 1, false},
                                   ConvSizeField{"group", &ConvProblem::group, 1, false}};

constexpr std::string_view kConvFields =
    "n, c, h, w, k, r, s, pad, stride, dil (or pad_h, pad_w, ...), group, dtype, dir, layout";

ConvPass pass_of(std::string_view text, const std::string& where) {
  if (in_capitals(text) == "F") return ConvPass::kForward;
  if (in_capitals(text) == "B") return ConvPass::kInputGradient;
  if (in_capitals(text) == "W") return ConvPass::kWeightGradient;
  fail_input(where, fmt::format("dir is '{}'; expected F (forward), B (gradient of the input) or W "
                                "(gradient of the weights)",
                                shown_name(text)));
}

bool is_channels_last(std::string_view text, const std::string& where) {
  if (in_capitals(text) == "NHWC") return true;
  if (in_capitals(text) == "NCHW") return false;
  fail_input(where, fmt::format("layout is '{}'; expected NCHW or NHWC", shown_name(text)));
}

/// A short form of a field ("pad" for both axes, "g"), as a list of names.
std::vector<std::string> names_of(std::string_view name) {
  if (name == "pad" || name == "stride" || name == "dil")
    return {std::string(name) + "_h", std::string(name) + "_w"};
  if (name == "g") return {"group"};
  if (name == "y") return {"r"};
  if (name == "x") return {"s"};
  return {std::string(name)};
}

void set_field(ConvProblem& problem, std::string_view name, std::string_view value,
               std::vector<std::string>& given, const std::string& where) {
  for (const std::string& full : names_of(name)) {
    if (std::find(given.begin(), given.end(), full) != given.end())
      fail_input(where, full + " is given twice");
    given.push_back(full);
    if (full == "dtype") {
      problem.dtype = read_problem_dtype(value, where);
    } else if (full == "dir") {
      problem.pass = pass_of(value, where);
    } else if (full == "layout") {
      problem.channels_last = is_channels_last(value, where);
    } else {
      const auto field = std::find_if(kConvSizes.begin(), kConvSizes.end(),
                                      [&](const ConvSizeField& f) { return f.name == full; });
      if (field == kConvSizes.end())
        fail_input(where, fmt::format("unknown field '{}'; a problem has {}", shown_name(full),
                                      kConvFields));
      problem.*field->member = read_problem_size(value, field->name, field->least, where);
    }
  }
}

ConvProblem parse_words(std::string_view text, const std::string& where) {
  ConvProblem problem;
  std::vector<std::string> given;
  for (const ProblemWord& word : split_problem_words(text, where))
    set_field(problem, word.name, word.value, given, where);
  for (const ConvSizeField& field : kConvSizes) {
    if (field.required && std::find(given.begin(), given.end(), field.name) == given.end())
      fail_input(where, fmt::format("{} is missing; a problem has {}", field.name, kConvFields));
  }
  complete_problem(problem, where);
  return problem;
}

/// "1x2" for the axes h and w.
void set_pair(ConvProblem& problem, std::string_view text, std::string_view first,
              std::string_view second, const std::string& where) {
  const size_t cross = text.find('x');
  if (cross == std::string_view::npos)
    fail_input(where, fmt::format("'{}' in a database key; expected two numbers, as in 1x1",
                                  shown_name(text)));
  std::vector<std::string> given;
  set_field(problem, first, text.substr(0, cross), given, where);
  set_field(problem, second, text.substr(cross + 1), given, where);
}

ConvProblem parse_key(std::string_view text, const std::string& where) {
  ConvProblem problem;
  std::string_view rest = text;
  if (const size_t at = rest.rfind("_g"); at != std::string_view::npos) {
    std::vector<std::string> given;
    set_field(problem, "group", rest.substr(at + 2), given, where);
    rest = rest.substr(0, at);
  }
  std::vector<std::string> parts = split(rest, '-');
  // Layouts of input, weights and output where they are not all NCHW.
  if (parts.size() == 17 && parts[12] == parts[13] && parts[13] == parts[14])
    parts.erase(parts.begin() + 13, parts.begin() + 15);
  if (parts.size() != 15)
    fail_input(where, fmt::format("'{}' is no key of a 2-D convolution; expected 15 parts as in "
                                  "256-56-56-1x1-64-56-56-32-0x0-1x1-1x1-0-NCHW-FP32-F, found {}",
                                  shown_name(text, 120), parts.size()));
  if (parts[11] != "0")
    fail_input(where,
               fmt::format("bias is '{}'; no model knows convolutions with a bias of their own",
                           shown_name(parts[11])));
  problem.pass = pass_of(parts[14], where);
  const bool forward = problem.pass == ConvPass::kForward;
  std::vector<std::string> given;
  constexpr std::array<std::string_view, 3> kX = {"c", "h", "w"};
  for (size_t i = 0; i < 3; ++i)
    set_field(problem, kX[i], parts[forward ? i : i + 4], given, where);
  set_field(problem, "k", parts[forward ? 4 : 0], given, where);
  set_field(problem, "n", parts[7], given, where);
  set_pair(problem, parts[3], "r", "s", where);
  set_pair(problem, parts[8], "pad_h", "pad_w", where);
  set_pair(problem, parts[9], "stride_h", "stride_w", where);
  set_pair(problem, parts[10], "dil_h", "dil_w", where);
  problem.channels_last = is_channels_last(parts[12], where);
  problem.dtype = read_problem_dtype(parts[13], where);
  complete_problem(problem, where);
  const size_t at = forward ? 5 : 1;
  const std::string stated = parts[at] + "x" + parts[at + 1];
  const std::string expected = fmt::format("{}x{}", problem.oh, problem.ow);
  if (stated != expected)
    fail_input(where, fmt::format("the output is {} in the key '{}'; the other sizes give {}",
                                  shown_name(stated), shown_name(text, 120), expected));
  return problem;
}

}  // namespace

double ConvProblem::flops() const {
  return 2.0 * static_cast<double>(n) * static_cast<double>(oh * ow) * static_cast<double>(k) *
         static_cast<double>(c / group) * static_cast<double>(r * s);
}
double ConvProblem::input_bytes() const {
  return static_cast<double>(n) * static_cast<double>(c) * static_cast<double>(h * w) *
         static_cast<double>(dtype_bits(dtype)) / 8;
}
double ConvProblem::weight_bytes() const {
  return static_cast<double>(k) * static_cast<double>(c / group) * static_cast<double>(r * s) *
         static_cast<double>(dtype_bits(dtype)) / 8;
}
double ConvProblem::output_bytes() const {
  return static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(oh * ow) *
         static_cast<double>(dtype_bits(dtype)) / 8;
}

char pass_letter(ConvPass pass) { return "FBW"[static_cast<size_t>(pass)]; }

bool is_problem_text(std::string_view text) {
  return text.starts_with("conv ") || text == "conv" ||
         (std::count(text.begin(), text.end(), '-') >= 14 && !text.empty() && text[0] >= '0' &&
          text[0] <= '9' && text.find('/') == std::string_view::npos);
}

ConvProblem parse_problem(std::string_view text, const std::string& where) {
  text = trim(text);
  if (text.starts_with("conv")) return parse_words(text.substr(4), where);
  return parse_key(text, where);
}

void complete_problem(ConvProblem& p, const std::string& where) {
  if (p.c % p.group != 0 || p.k % p.group != 0)
    fail_input(where, fmt::format("group={} does not divide c={} and k={}", p.group, p.c, p.k));
  const auto output = [&](int64_t size, int64_t pad, int64_t window, int64_t dil, int64_t stride,
                          std::string_view axis) {
    const int64_t room = size + 2 * pad - (dil * (window - 1) + 1);
    if (room < 0)
      fail_input(where,
                 fmt::format("a window of {} with dilation {} is larger than {}={} with padding "
                             "{}",
                             window, dil, axis, size, pad));
    return room / stride + 1;
  };
  p.oh = output(p.h, p.pad_h, p.r, p.dil_h, p.stride_h, "h");
  p.ow = output(p.w, p.pad_w, p.s, p.dil_w, p.stride_w, "w");
  // Products of sizes stay exact and do not overflow.
  const auto size = [](std::initializer_list<int64_t> sizes) {
    double elements = 1;
    for (const int64_t s : sizes) elements *= static_cast<double>(s);
    return elements;
  };
  const double largest = std::max(
      {size({p.n, p.c, p.h, p.w}), size({p.n, p.k, p.oh, p.ow}), size({p.k, p.c, p.r, p.s})});
  if (largest > kMostConvElements)
    fail_input(where,
               fmt::format("a tensor of {:.3g} elements; at most {:.3g}, more than any GPU stores",
                           largest, kMostConvElements));
}

std::string format_problem(const ConvProblem& p) {
  std::string text =
      fmt::format("conv n={} c={} h={} w={} k={} r={} s={}", p.n, p.c, p.h, p.w, p.k, p.r, p.s);
  const auto pair = [&](std::string_view name, int64_t h, int64_t w, int64_t fallback) {
    if (h == fallback && w == fallback) return;
    if (h == w)
      text += fmt::format(" {}={}", name, h);
    else
      text += fmt::format(" {0}_h={1} {0}_w={2}", name, h, w);
  };
  pair("pad", p.pad_h, p.pad_w, 0);
  pair("stride", p.stride_h, p.stride_w, 1);
  pair("dil", p.dil_h, p.dil_w, 1);
  if (p.group != 1) text += fmt::format(" group={}", p.group);
  if (p.channels_last) text += " layout=NHWC";
  return text + fmt::format(" dtype={} dir={}", dtype_name(p.dtype), pass_letter(p.pass));
}

std::string miopen_key(const ConvProblem& p) {
  const bool forward = p.pass == ConvPass::kForward;
  const std::string x = fmt::format("{}-{}-{}", p.c, p.h, p.w);
  const std::string y = fmt::format("{}-{}-{}", p.k, p.oh, p.ow);
  const std::string_view layout = p.channels_last ? "NHWC-NHWC-NHWC" : "NCHW";
  return fmt::format("{}-{}x{}-{}-{}-{}x{}-{}x{}-{}x{}-0-{}-{}-{}{}", forward ? x : y, p.r, p.s,
                     forward ? y : x, p.n, p.pad_h, p.pad_w, p.stride_h, p.stride_w, p.dil_h,
                     p.dil_w, layout, miopen_precision(p.dtype), pass_letter(p.pass),
                     p.group == 1 ? "" : fmt::format("_g{}", p.group));
}

}  // namespace tilecast::tuning
