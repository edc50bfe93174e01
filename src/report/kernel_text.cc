#include "report/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/csv.h"

namespace tilecast {
namespace {

Json sizes_json(const NamedSizes& shape) {
  Json object = Json::object();
  for (size_t i = 0; i < shape.names.size(); ++i)
    object[std::string(shape.names[i])] = shape.values[i];
  return object;
}

/// nullopt if the kernel's type has no such size.
std::optional<int64_t> size_named(const NamedSizes& shape, std::string_view name) {
  for (size_t i = 0; i < shape.names.size(); ++i) {
    if (shape.names[i] == name) return shape.values[i];
  }
  return std::nullopt;
}

/// The names of all sizes of the kernels, in order of first use.
std::vector<std::string_view> all_size_names(const std::vector<KernelForecast>& kernels) {
  std::vector<std::string_view> names;
  for (const KernelForecast& k : kernels) {
    for (const std::string_view name : k.shape.names) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
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

std::string without_vendor(const std::string& gpu_id) {
  for (const std::string_view vendor : {"nvidia-", "amd-"})
    if (gpu_id.starts_with(vendor)) return gpu_id.substr(vendor.size());
  return gpu_id;
}

std::string clock_text(const std::string& clocks) {
  if (clocks == "boost") return "";
  return clocks == "base" ? ", base clock" : fmt::format(", {} MHz", clocks);
}

std::string dtype_text(const std::string& dtype, const std::string& source) {
  return source.empty() || source == "asked" ? dtype : fmt::format("{} ({})", dtype, source);
}

std::vector<Fit> kernel_columns_fit() {
  return {Fit::kMiddle, Fit::kWhole, Fit::kWhole, Fit::kWhole,
          Fit::kWhole,  Fit::kWhole, Fit::kEnd,   Fit::kEnd};
}

std::vector<size_t> kernel_columns_least() {
  // With the columns of numbers, this makes 80 columns, the width for pipes and files.
  constexpr size_t kName = 12, kOperator = 6, kSizes = 17;
  return {kName, 0, 0, 0, 0, 0, kOperator, kSizes};
}

Json kernel_object(const KernelForecast& k) {
  Json object = {{"name", k.name},
                 {"op", k.op},
                 {"phase", k.phase},
                 {"dtype", k.dtype},
                 {"shape", sizes_json(k.shape)},
                 {"count", k.count},
                 {"latency_s", k.latency_s},
                 {"low_s", k.low_s},
                 {"high_s", k.high_s},
                 {"flops", k.flops},
                 {"bytes", k.bytes},
                 {"limit", k.limit},
                 {"waves", k.waves},
                 {"utilization_ratio", k.utilization_ratio},
                 {"predictor", k.predictor},
                 {"extrapolated", k.extrapolated}};
  if (k.extrapolated) object["extrapolated_feature"] = k.extrapolated_feature;
  object["tile"] = k.tile ? Json{k.tile->first, k.tile->second} : Json(nullptr);
  return object;
}

Json kernel_list(const std::vector<KernelForecast>& kernels) {
  Json list = Json::array();
  for (const KernelForecast& k : kernels) list.push_back(kernel_object(k));
  return list;
}

std::string kernels_csv(const std::vector<KernelForecast>& kernels) {
  const std::vector<std::string_view> sizes = all_size_names(kernels);
  std::string out = "name,op,phase,dtype,";
  for (const std::string_view size : sizes) out += fmt::format("{},", size);
  out +=
      "count,latency_s,low_s,high_s,flops,bytes,limit,tile,waves,utilization_ratio,predictor,"
      "extrapolated,extrapolated_feature\n";
  for (const KernelForecast& k : kernels) {
    out +=
        fmt::format("{},{},{},{},", csv_cell(k.name), csv_cell(k.op), k.phase, csv_cell(k.dtype));
    for (const std::string_view size : sizes) {
      if (const auto value = size_named(k.shape, size)) out += fmt::to_string(*value);
      out += ',';
    }
    const std::string tile = k.tile ? fmt::format("{}x{}", k.tile->first, k.tile->second) : "";
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", k.count, k.latency_s, k.low_s,
                       k.high_s, k.flops, k.bytes, k.limit, tile, k.waves, k.utilization_ratio,
                       k.predictor, k.extrapolated,
                       k.extrapolated ? k.extrapolated_feature : "");
  }
  return out;
}

}  // namespace tilecast
