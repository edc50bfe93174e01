#include "ops/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked.h"

namespace tilecast {
namespace {

template <class T>
constexpr auto kSizeNames = [] {
  constexpr auto sizes = T::sizes();
  std::array<std::string_view, sizes.size()> names;
  for (size_t i = 0; i < sizes.size(); ++i) names[i] = sizes[i].name;
  return names;
}();

template <size_t... I>
constexpr auto type_table(std::index_sequence<I...>) {
  return std::array{KernelTypeInfo{std::variant_alternative_t<I, KernelVariant>::kName,
                                   std::variant_alternative_t<I, KernelVariant>::kText,
                                   kSizeNames<std::variant_alternative_t<I, KernelVariant>>}...};
}
constexpr auto kTypes = type_table(std::make_index_sequence<std::variant_size_v<KernelVariant>>{});

static_assert(std::ranges::all_of(kTypes,
                                  [](const auto& t) { return t.sizes.size() <= kMaxSizes; }));

Gemm implicit_gemm(const Convolution& c) {
  const int64_t pixels = checked_product({c.batch, c.out_height, c.out_width});
  const int64_t window =
      checked_product({c.in_channels / c.groups, c.window_height, c.window_width});
  const int64_t out = c.out_channels / c.groups;
  Gemm gemm{.batch = c.groups, .m = pixels, .n = out, .k = window, .batched = c.groups != 1};
  switch (c.pass) {
    case Convolution::Pass::kForward:
      break;
    case Convolution::Pass::kInputGradient:
      std::swap(gemm.n, gemm.k);
      break;
    case Convolution::Pass::kWeightGradient:
      gemm = {.batch = c.groups, .m = out, .n = window, .k = pixels, .batched = c.groups != 1};
      break;
  }
  return gemm;
}

}  // namespace

Gemm gemm_of(const Kernel& kernel) {
  if (const Gemm* gemm = kernel.as<Gemm>()) return *gemm;
  const Convolution* convolution = kernel.as<Convolution>();
  TILECAST_CHECK(convolution != nullptr);
  return implicit_gemm(*convolution);
}

std::span<const KernelTypeInfo> kernel_types() { return kTypes; }

const KernelTypeInfo& type_info(const Kernel& kernel) { return kTypes[kernel.shape.index()]; }

std::array<int64_t, kMaxSizes> sizes_of(const Kernel& kernel) {
  std::array<int64_t, kMaxSizes> values{};
  std::visit(
      [&]<class T>(const T& shape) {
        size_t i = 0;
        for (const SizeOf<T>& size : T::sizes()) values[i++] = shape.*size.member;
      },
      kernel.shape);
  return values;
}

size_t KernelHash::operator()(const Kernel& kernel) const {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a over words
  const auto mix = [&](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211ull;
  };
  mix(static_cast<int64_t>(kernel.shape.index()) * 64 + static_cast<int64_t>(kernel.dtype));
  mix(kernel.op);
  mix(kernel.quantized_input ? 1 : 0);
  mix(kernel.read_bytes);
  mix(kernel.write_bytes);
  std::visit(
      [&]<class T>(const T& shape) {
        for (const SizeOf<T>& size : T::sizes()) mix(shape.*size.member);
      },
      kernel.shape);
  return hash;
}

/// Names of all pairs of dtypes ("bf16/fp8"), so that a name is a constant.
static const std::string& pair_name(DType first, DType second) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (size_t i = 0; i < kDTypeCount * kDTypeCount; ++i)
      all.push_back(fmt::format("{}/{}", dtype_name(static_cast<DType>(i / kDTypeCount)),
                                dtype_name(static_cast<DType>(i % kDTypeCount))));
    return all;
  }();
  return names[static_cast<size_t>(first) * kDTypeCount + static_cast<size_t>(second)];
}

std::string_view precision_name(const Kernel& kernel) {
  if (kernel.scheme != QuantScheme::kNone) return scheme_info(kernel.scheme).name;
  const Attention* attention = kernel.as<Attention>();
  if (attention != nullptr && attention->kv_dtype != kernel.dtype)
    return pair_name(kernel.dtype, attention->kv_dtype);
  return dtype_name(kernel.dtype);
}

}  // namespace tilecast
