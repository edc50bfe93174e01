#include "tuning/problem_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::tuning {
namespace {

constexpr std::array<std::pair<std::string_view, int64_t ConvProblem::*>, 16> kSizeColumns = {
    {{"n", &ConvProblem::n},
     {"c", &ConvProblem::c},
     {"h", &ConvProblem::h},
     {"w", &ConvProblem::w},
     {"k", &ConvProblem::k},
     {"oh", &ConvProblem::oh},
     {"ow", &ConvProblem::ow},
     {"r", &ConvProblem::r},
     {"s", &ConvProblem::s},
     {"pad_h", &ConvProblem::pad_h},
     {"pad_w", &ConvProblem::pad_w},
     {"stride_h", &ConvProblem::stride_h},
     {"stride_w", &ConvProblem::stride_w},
     {"dil_h", &ConvProblem::dil_h},
     {"dil_w", &ConvProblem::dil_w},
     {"group", &ConvProblem::group}}};
constexpr std::array<std::string_view, 3> kWords = {"direction", "precision", "layout"};

/// As other readers of problems limit them.
constexpr int64_t kMostRowSize = int64_t{1} << 24;

const std::string& word(const CsvTable& table, size_t row, std::string_view column) {
  return table.rows[row][table.require_column(column)];
}

}  // namespace

bool has_problem_columns(const CsvTable& table) {
  const auto known = [&](std::string_view name) { return table.column(name).has_value(); };
  return std::all_of(kWords.begin(), kWords.end(), known) &&
         std::all_of(kSizeColumns.begin(), kSizeColumns.end(),
                     [&](const auto& s) { return known(s.first); });
}

ConvProblem problem_of_row(const CsvTable& table, size_t row) {
  const std::string place = table.place(row);
  ConvProblem p;
  const std::string& direction = word(table, row, "direction");
  const size_t pass = std::string_view("FBW").find(direction);
  if (direction.size() != 1 || pass == std::string_view::npos)
    throw Error(ErrorKind::kInput, fmt::format("{}: direction is '{}'; expected F, B or W", place,
                                               shown_name(direction)));
  p.pass = static_cast<ConvPass>(pass);
  p.dtype = read_problem_dtype(word(table, row, "precision"), place);
  const std::string& layout = word(table, row, "layout");
  if (layout != "NCHW" && layout != "NHWC")
    throw Error(ErrorKind::kInput, fmt::format("{}: layout is '{}'; expected NCHW or NHWC", place,
                                               shown_name(layout)));
  p.channels_last = layout == "NHWC";
  for (const auto& [name, member] : kSizeColumns) {
    const int64_t value = table.integer(row, table.require_column(name));
    const bool may_be_zero = name == "h" || name == "w" || name.starts_with("pad");
    if (value > kMostRowSize || (value == 0 && !may_be_zero))
      throw Error(ErrorKind::kInput, fmt::format("{}: {} is {}; expected a size up to {}", place,
                                                 name, value, kMostRowSize));
    p.*member = value;
  }
  if (p.c % p.group != 0 || p.k % p.group != 0)
    throw Error(ErrorKind::kInput, fmt::format("{}: group {} does not divide c {} and k {}", place,
                                               p.group, p.c, p.k));
  const auto least = [](int64_t out, int64_t stride, int64_t pad, int64_t window, int64_t dil) {
    return std::max<int64_t>(1, (out - 1) * stride + 1 - 2 * pad + (window - 1) * dil);
  };
  if (p.h == 0) p.h = least(p.oh, p.stride_h, p.pad_h, p.r, p.dil_h);
  if (p.w == 0) p.w = least(p.ow, p.stride_w, p.pad_w, p.s, p.dil_w);
  return p;
}

}  // namespace tilecast::tuning
