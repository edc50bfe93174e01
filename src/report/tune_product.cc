// gemm m=4096 n=512 k=1024 trans_a=T dtype=fp16 on amd-mi250x
//
//   macro tile  depth  split  matrix instruction  probability
//   128x128        32      1  32x32x8x1                 41.2 %
//
//   macro tile  128x128 62.1 %, 128x64 20.3 %

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/search.h"
#include "tilecast/view.h"

namespace tilecast {

std::string product_table(const ProductForecast& f, const TableStyle& style) {
  std::string out = title_lines(fmt::format("{} on {}", f.problem, f.gpu), style) + "\n";
  TextTable kernels;
  kernels.header = {"macro tile", "depth", "split", "matrix instruction", "probability"};
  kernels.right = {false, true, true, false, true};
  for (const ProductKernel& k : f.kernels)
    kernels.rows.push_back({fmt::format("{}x{}", k.tile_m, k.tile_n), std::to_string(k.depth_u),
                            std::to_string(k.split), k.matrix_instruction,
                            fmt::format("{:.1f} %", 100 * k.probability)});
  out += format_text_table(kernels, style, 2) + "\n";
  TextTable parts;
  parts.fit = {Fit::kWhole, Fit::kWrap};
  for (const auto& [name, values] : f.parts) {
    std::vector<std::string> texts;
    for (const auto& [value, probability] : values)
      texts.push_back(fmt::format("{} {:.1f} %", value, 100 * probability));
    std::string title = name;
    std::replace(title.begin(), title.end(), '_', ' ');
    parts.rows.push_back({title, join(texts, ", ")});
  }
  return out + format_text_table(parts, style, 2);
}

}  // namespace tilecast
