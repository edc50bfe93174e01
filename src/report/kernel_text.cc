#include "report/kernel_text.h"

#include <fmt/format.h>

namespace tilecast {
namespace {

bool is_matmul(const KernelForecast& k) { return k.family == "linear" || k.family == "bmm"; }

bool is_attention(const KernelForecast& k) {
  return k.family == "attention" || k.family == "decode_attention";
}

Json sizes_json(const KernelForecast& k) {
  if (is_matmul(k))
    return {{"batch", k.shape.batch}, {"m", k.shape.m}, {"n", k.shape.n}, {"k", k.shape.k}};
  if (is_attention(k))
    return {{"batch", k.shape.batch},
            {"queries", k.shape.m},
            {"keys", k.shape.n},
            {"head_size", k.shape.k}};
  if (k.family == "experts")
    return {{"tokens", k.shape.m}, {"inner_size", k.shape.n}, {"hidden_size", k.shape.k}};
  if (k.family == "softmax" || k.family == "layer_norm")
    return {{"rows", k.shape.m}, {"columns", k.shape.n}};
  if (k.shape.m > 1) return {{"rows", k.shape.m}, {"columns", k.shape.n}};
  return {{"elements", k.shape.n}};
}

}  // namespace

std::string sizes_text(const KernelForecast& k) {
  if (k.family == "bmm")
    return fmt::format("{} x [{}x{}x{}]", k.shape.batch, k.shape.m, k.shape.n, k.shape.k);
  if (k.family == "linear" || k.family == "experts")
    return fmt::format("[{}x{}x{}]", k.shape.m, k.shape.n, k.shape.k);
  if (is_attention(k))
    return fmt::format("{} x [{}x{}] heads of {}", k.shape.batch, k.shape.m, k.shape.n, k.shape.k);
  if (k.shape.m > 1) return fmt::format("[{}x{}]", k.shape.m, k.shape.n);
  return fmt::format("[{}]", k.shape.n);
}

std::string dtype_text(const std::string& dtype, const std::string& source) {
  return source.empty() || source == "asked" ? dtype : fmt::format("{} ({})", dtype, source);
}

std::vector<Fit> kernel_columns_fit() {
  return {Fit::kMiddle, Fit::kWhole, Fit::kWhole, Fit::kWhole,
          Fit::kWhole,  Fit::kWhole, Fit::kEnd,   Fit::kEnd};
}

std::vector<size_t> kernel_columns_least() {
  // Together with the numbers 80 columns, which is what pipes and files get.
  constexpr size_t kName = 12, kOperator = 6, kSizes = 17;
  return {kName, 0, 0, 0, 0, 0, kOperator, kSizes};
}

Json kernel_object(const KernelForecast& k) {
  Json object = {{"name", k.name},           {"op", k.op},
                 {"phase", k.phase},         {"dtype", k.dtype},
                 {"shape", sizes_json(k)},   {"count", k.count},
                 {"latency_s", k.latency_s}, {"low_s", k.low_s},
                 {"high_s", k.high_s},       {"flops", k.flops},
                 {"bytes", k.bytes},         {"limit", k.limit},
                 {"waves", k.waves},         {"utilization_ratio", k.utilization_ratio},
                 {"predictor", k.predictor}, {"extrapolated", k.extrapolated}};
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
  std::string out =
      "name,op,phase,dtype,batch,m,n,k,count,latency_s,low_s,high_s,flops,bytes,limit,tile,waves,"
      "utilization_ratio,predictor,extrapolated\n";
  for (const KernelForecast& k : kernels) {
    const std::string tile = k.tile ? fmt::format("{}x{}", k.tile->first, k.tile->second) : "";
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", k.name,
                       k.op, k.phase, k.dtype, k.shape.batch, k.shape.m, k.shape.n, k.shape.k,
                       k.count, k.latency_s, k.low_s, k.high_s, k.flops, k.bytes, k.limit, tile,
                       k.waves, k.utilization_ratio, k.predictor, k.extrapolated);
  }
  return out;
}

}  // namespace tilecast
