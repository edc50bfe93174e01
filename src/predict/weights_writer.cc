#include "base/weights_container.h"
#include "predict/kernel_kinds.h"
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

Json widths_of(const PrecisionWidths& widths) {
  Json list = Json::array();
  for (const PrecisionWidth& w : widths)
    list.push_back(
        {dtype_name(w.dtype), dtype_name(w.kv_dtype), scheme_info(w.scheme).name, w.factor});
  return list;
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
                    {"widths", widths_of(device.widths)},
                    {"call_overhead_s", device.call_overhead_s}});
  return list;
}

Json kind_header(const KindModel& model, KernelKind kind) {
  Json vendor_intervals = Json::object();
  for (const auto& [vendor, interval] : model.vendor_intervals)
    vendor_intervals[vendor] = interval_header(interval);
  Json vendor_widths = Json::object();
  for (const auto& [vendor, widths] : model.vendor_widths)
    vendor_widths[vendor] = widths_of(widths);
  Json classes = Json::array();
  for (const ClassResidual& c : model.classes)
    classes.push_back({{"architecture", choice_word(c.of.architecture)},
                       {"hbm", c.of.hbm},
                       {"matrix_instruction", choice_word(c.matrix_instruction)},
                       {"forests", forests_of(c.forests)},
                       {"interval", interval_header(c.interval)},
                       {"devices", devices_of(c.devices)}});
  return {{"trained_on", trained_on_header(model.trained_on)},
          {"features", feature_names(kind)},
          {"classes", classes},
          {"mean", model.mean},
          {"scale", model.scale},
          {"minimum", model.minimum},
          {"maximum", model.maximum},
          {"vendor_intervals", vendor_intervals},
          {"interval", interval_header(model.interval)},
          {"vendor_widths", vendor_widths},
          {"class_widths", widths_of(model.class_widths)},
          {"sibling_widths", widths_of(model.sibling_widths)},
          {"call_overhead_s",
           {model.call_overhead.seconds, model.call_overhead.low_s, model.call_overhead.high_s}}};
}

}  // namespace

std::string serialize_weights(const Weights& weights) {
  std::string payload;
  Json models = Json::object();
  for (size_t i = 0; i < kKernelKindCount; ++i) {
    const KindModel& model = weights.models[i];
    if (!model.known()) continue;
    const auto kind = static_cast<KernelKind>(i);
    models[std::string(kernel_kind_name(kind))] = kind_header(model, kind);
    for (const ClassResidual& residual : model.classes) {
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
  return write_container({{"nets", models}, {"provenance", provenance}}, payload);
}

}  // namespace tilecast
