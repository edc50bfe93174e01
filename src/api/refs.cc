// Handles of models and devices in the façade.

#include "api/internal.h"
#include "base/text.h"
#include "devices/cluster.h"
#include "devices/registry.h"

namespace tilecast {
namespace {

ModelRef ref_of(Model model) {
  ModelRef ref;
  ref.content = std::make_shared<const ModelRef::Content>(ModelRef::Content{std::move(model)});
  return ref;
}

GpuRef ref_of(Device device) {
  GpuRef ref;
  ref.content = std::make_shared<const GpuRef::Content>(GpuRef::Content{std::move(device)});
  return ref;
}

}  // namespace

const std::string& ModelRef::name() const { return content->model.name; }
const std::string& GpuRef::id() const { return content->device.id; }
const std::vector<std::string>& GpuRef::warnings() const { return content->device.warnings; }

ModelRef load_model_ref(const std::string& name_or_path) {
  return ref_of(load_model(name_or_path));
}

ModelRef model_from_text(const std::string& text, const std::string& name) {
  return ref_of(import_model(text, printable(name)));
}

GpuRef load_gpu_ref(const std::string& name_or_path) { return ref_of(find_device(name_or_path)); }

GpuRef load_cluster_gpu_ref(const std::string& cluster) {
  return ref_of(find_cluster(cluster).device);
}

GpuRef gpu_from_text(const std::string& text, const std::string& name) {
  return ref_of(parse_device(text, printable(name)));
}

}  // namespace tilecast
