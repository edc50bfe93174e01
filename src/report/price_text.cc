#include "report/price_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/text_table.h"

namespace tilecast {

std::string currency_sign(const std::optional<GpuPrice>& price) {
  if (!price || price->currency.empty() || price->currency == "USD") return "$";
  return price->currency + " ";
}

std::string currency_sign(const std::vector<GpuPrice>& prices) {
  return currency_sign(prices.empty() ? std::nullopt : std::optional(prices.front()));
}

std::string price_text(const GpuPrice& price) {
  if (price.table.empty()) return "";
  std::string text = fmt::format("{:g}{}{} an hour of {}, {}", price.price_per_gpu_hour,
                                 price.currency.empty() ? "" : " ", price.currency,
                                 printable(price.gpu), price.table);
  if (!price.date.empty()) text += ", " + price.date;
  if (!price.source.empty()) text += "; " + price.source;
  return text;
}

std::string price_lines(const std::vector<GpuPrice>& prices, const TableStyle& style) {
  std::string out;
  for (const GpuPrice& price : prices) {
    const std::string text = price_text(price);
    if (!text.empty()) out += wrapped("price: " + text, style);
  }
  return out;
}

}  // namespace tilecast
