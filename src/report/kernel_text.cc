#include "report/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace tilecast {
namespace {

/// nullopt if the kernel's type has no such size.
std::optional<int64_t> size_named(const NamedSizes& shape, std::string_view name) {
  for (size_t i = 0; i < shape.names.size(); ++i) {
    if (shape.names[i] == name) return shape.values[i];
  }
  return std::nullopt;
}

}  // namespace

std::string sizes_text(const NamedSizes& shape) {
  std::string out;
  for (size_t i = 0; i < shape.text.size(); ++i) {
    if (shape.text[i] != '{') {
      out += shape.text[i];
      continue;
    }
    const size_t end = shape.text.find('}', i);
    out += fmt::to_string(size_named(shape, shape.text.substr(i + 1, end - i - 1)).value_or(0));
    i = end;
  }
  // A batch of 1 is not shown.
  constexpr std::string_view kOnce = "1 x ";
  return out.starts_with(kOnce) ? out.substr(kOnce.size()) : out;
}

std::string JoinedKernels::name(std::string_view plain_phase) const {
  std::string text(row.name);
  if (row.phase != plain_phase && !text.starts_with(row.phase))
    text = fmt::format("{} {}", row.phase == "backward" ? "bwd" : row.phase, text);
  if (names.size() > 1) text += fmt::format(" +{}", names.size() - 1);
  return text;
}

std::vector<JoinedKernels> join_alike(const std::vector<KernelForecast>& kernels) {
  using Key = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view,
                         std::array<int64_t, NamedSizes::kMaxSizes>, int64_t>;
  std::map<Key, size_t> index;
  std::set<std::pair<size_t, std::string>> seen;  // names of each group
  std::vector<JoinedKernels> joined;
  for (const KernelForecast& k : kernels) {
    const Key key = {k.phase, k.op, k.dtype, k.shape.type, k.shape.values, k.bytes};
    const auto [it, fresh] = index.emplace(key, joined.size());
    if (fresh) joined.push_back({.row = k, .names = {}});
    JoinedKernels& group = joined[it->second];
    group.count += k.count;
    group.seconds += k.latency_s * static_cast<double>(k.count);
    std::string name(k.name.substr(repeated_prefix(k.name)));
    if (seen.emplace(it->second, name).second) group.names.push_back(std::move(name));
  }
  std::stable_sort(
      joined.begin(), joined.end(),
      [](const JoinedKernels& a, const JoinedKernels& b) { return a.seconds > b.seconds; });
  return joined;
}

std::string span_text(const Interval& seconds) {
  return fmt::format("{} to {}", format_seconds(seconds.low), format_seconds(seconds.high));
}

std::string without_vendor(const std::string& gpu_id) {
  for (const std::string_view vendor : {"nvidia-", "amd-"})
    if (gpu_id.starts_with(vendor)) return gpu_id.substr(vendor.size());
  return gpu_id;
}

std::string clock_text(const std::string& clocks) {
  if (clocks.empty() || clocks == "boost" || clocks == "sustained") return "";
  return clocks == "base" ? ", base clock" : fmt::format(", {} MHz", clocks);
}

std::string training_utilization_text(double mfu_ratio, double hfu_ratio) {
  return fmt::format("MFU {:.0f} %, HFU {:.0f} %", 100 * mfu_ratio, 100 * hfu_ratio);
}

std::string dtype_text(const std::string& dtype, const std::string& source) {
  return source.empty() || source == "asked" ? dtype : fmt::format("{} ({})", dtype, source);
}

std::vector<Fit> kernel_columns_fit() {
  return {Fit::kFront, Fit::kWhole, Fit::kWhole, Fit::kWhole,
          Fit::kWhole, Fit::kWhole, Fit::kEnd,   Fit::kEnd};
}

std::vector<size_t> kernel_columns_least() {
  // With the columns of numbers, this makes 80 columns, the width for pipes and files.
  constexpr size_t kName = 12, kOperator = 6, kSizes = 17;
  return {kName, 0, 0, 0, 0, 0, kOperator, kSizes};
}

}  // namespace tilecast
