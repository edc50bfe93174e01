#include "predict/nets.h"

#include "base/check.h"

namespace tilecast {

const NetDef& net_def(NetKind kind) {
  // In the order of NetKind.
  static const std::array<NetDef, kNetCount> nets = {
      matmul_net(),     causal_conv_net(),   elementwise_net(), softmax_net(),
      layer_norm_net(), tensor_matmul_net(), attention_net(),   decode_attention_net(),
      experts_net(),    scan_net(),          scan_step_net(),   convolution_net(),
      block_rows_net()};
  return nets[static_cast<size_t>(kind)];
}

std::string_view net_name(NetKind kind) { return net_def(kind).name; }

const std::vector<std::string_view>& feature_names(NetKind kind) { return net_def(kind).features; }

std::optional<NetKind> find_net(const Kernel& kernel) {
  for (size_t n = 0; n < kNetCount; ++n) {
    const auto kind = static_cast<NetKind>(n);
    if (net_def(kind).covers(kernel)) return kind;
  }
  return std::nullopt;
}

NetKind net_of(const Kernel& kernel) {
  const std::optional<NetKind> kind = find_net(kernel);
  TILECAST_CHECK(kind.has_value()) << "no learned model is for this kernel";
  return *kind;
}

}  // namespace tilecast
