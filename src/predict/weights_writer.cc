#include "base/weights_container.h"
#include "predict/nets.h"
#include "predict/weights.h"

namespace tilecast {
namespace {

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

Json devices_of(const std::vector<MeasuredDevice>& devices) {
  Json list = Json::array();
  for (const MeasuredDevice& device : devices)
    list.push_back({{"source", device.source},
                    {"signature", device.signature},
                    {"measured", combinations_of(device.measured)},
                    {"interval", interval_header(device.interval)},
                    {"call_overhead_s", device.call_overhead_s}});
  return list;
}

Json net_header(const Net& net, NetKind kind) {
  Json vendor_intervals = Json::object();
  for (const auto& [vendor, interval] : net.vendor_intervals)
    vendor_intervals[vendor] = interval_header(interval);
  Json classes = Json::array();
  for (const ClassResidual& c : net.classes)
    classes.push_back({{"architecture", choice_word(c.of.architecture)},
                       {"hbm", c.of.hbm},
                       {"matrix_instruction", choice_word(c.matrix_instruction)},
                       {"forests", forests_of(c.forests)},
                       {"interval", interval_header(c.interval)},
                       {"devices", devices_of(c.devices)}});
  return {{"trained_on", trained_on_header(net.trained_on)},
          {"features", feature_names(kind)},
          {"classes", classes},
          {"mean", net.mean},
          {"scale", net.scale},
          {"minimum", net.minimum},
          {"maximum", net.maximum},
          {"vendor_intervals", vendor_intervals},
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
    if (!net.known()) continue;
    const auto kind = static_cast<NetKind>(i);
    nets[std::string(net_name(kind))] = net_header(net, kind);
    for (const ClassResidual& residual : net.classes) {
      for (const SoftwareForest& f : residual.forests) {
        payload.append(reinterpret_cast<const char*>(f.forest.trees().data()),
                       f.forest.trees().size_bytes());
        for (const std::vector<float>* list : {&f.minimum, &f.maximum})
          payload.append(reinterpret_cast<const char*>(list->data()), list->size() * sizeof(float));
      }
    }
  }
  const Json provenance =
      weights.provenance.empty() ? Json::object() : Json::parse(weights.provenance);
  return write_container({{"nets", nets}, {"provenance", provenance}}, payload);
}

}  // namespace tilecast
