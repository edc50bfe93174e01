#include "predict/nets.h"
#include "predict/weights.h"
#include "predict/weights_container.h"

namespace tilecast {
namespace {

Json widths_of(const std::vector<Mlp>& members) {
  Json list = Json::array();
  for (const Mlp& mlp : members) list.push_back(mlp.widths);
  return list;
}

Json forests_of(const std::vector<SoftwareForest>& forests) {
  Json list = Json::array();
  for (const SoftwareForest& f : forests)
    list.push_back({{"software", software_name(f.software)}, {"trees", f.forest.trees().size()}});
  return list;
}

Json combinations_of(const std::vector<Combination>& combinations) {
  Json list = Json::array();
  for (const Combination& c : combinations)
    list.push_back({software_name(c.software), dtype_name(c.dtype), dtype_name(c.kv_dtype),
                    scheme_info(c.scheme).name});
  return list;
}

Json interval_header(const IntervalLaw& interval) {
  return {{"low_log", interval.low_log},
          {"high_log", interval.high_log},
          {"common_share", interval.common_share}};
}

Json trained_on_header(const TrainedOn& trained) {
  return {{"operators", trained.operators},
          {"vendors", trained.vendors},
          {"forms", form_names(trained.forms)}};
}

Json net_header(const Net& net, NetKind kind) {
  Json residuals = Json::array();
  for (const DeviceResidual& c : net.residuals)
    residuals.push_back({{"source", c.source},
                         {"signature", c.signature},
                         {"kriging", c.kriging},
                         {"members", widths_of(c.members)},
                         {"forests", forests_of(c.forests)},
                         {"measured", combinations_of(c.measured)},
                         {"interval", interval_header(c.interval)},
                         {"call_overhead_s", c.call_overhead_s}});
  return {{"trained_on", trained_on_header(net.trained_on)},
          {"features", feature_names(kind)},
          {"members", widths_of(net.members)},
          {"corrections", residuals},
          {"mean", net.mean},
          {"scale", net.scale},
          {"minimum", net.minimum},
          {"maximum", net.maximum},
          {"interval", interval_header(net.interval)},
          {"call_overhead_s",
           {net.call_overhead.seconds, net.call_overhead.low_s, net.call_overhead.high_s}}};
}

}  // namespace

std::string serialize_weights(const Weights& weights) {
  std::string payload;
  Json nets = Json::object();
  for (size_t i = 0; i < kNetCount; ++i) {
    const Net& net = weights.nets[i];
    if (net.members.empty()) continue;
    const auto kind = static_cast<NetKind>(i);
    nets[std::string(net_name(kind))] = net_header(net, kind);
    const auto append = [&](const Mlp& mlp) {
      payload.append(reinterpret_cast<const char*>(mlp.parameters.data()),
                     mlp.parameters.size() * sizeof(float));
    };
    for (const Mlp& mlp : net.members) append(mlp);
    for (const DeviceResidual& residual : net.residuals) {
      for (const Mlp& mlp : residual.members) append(mlp);
      for (const SoftwareForest& f : residual.forests)
        payload.append(reinterpret_cast<const char*>(f.forest.trees().data()),
                       f.forest.trees().size_bytes());
    }
  }
  Json tiles = Json::array();
  for (const TileTree& tree : weights.tiles) {
    tiles.push_back({{"library", tree.library}, {"nodes", tree.nodes.size()}});
    payload.append(reinterpret_cast<const char*>(tree.nodes.data()),
                   tree.nodes.size() * sizeof(TileTree::Node));
  }
  const Json provenance =
      weights.provenance.empty() ? Json::object() : Json::parse(weights.provenance);
  return write_container({{"nets", nets},
                          {"vector_pj_per_flop", weights.vector_pj_per_flop},
                          {"tiles", tiles},
                          {"provenance", provenance}},
                         payload);
}

}  // namespace tilecast
