// Handles of models and devices in the façade. Bundled files cannot change, so each is read once;
// other files are read each time.

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "accelerator/names.h"
#include "base/file.h"
#include "base/text.h"
#include "devices/cluster.h"
#include "devices/registry.h"
#include "importers/bundled.h"
#include "scenario/internal.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

ModelRef ref_of(Model model) {
  ModelRef ref;
  ref.content = std::make_shared<const ModelRef::Content>(ModelRef::Content{std::move(model)});
  return ref;
}

/// Files that were loaded before, by name.
template <typename Ref>
class Loaded {
 public:
  template <typename Load>
  Ref get(const std::string& name, const Load& load) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = refs_.find(name); found != refs_.end()) return found->second;
    }
    Ref ref = load();  // may throw
    const std::lock_guard lock(mutex_);
    return refs_.emplace(name, std::move(ref)).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Ref> refs_;
};

}  // namespace

GpuRef ref_of_device(Device device) {
  GpuRef ref;
  ref.content = std::make_shared<const GpuRef::Content>(GpuRef::Content{std::move(device)});
  return ref;
}

GpuRef with_numbers(const GpuRef& gpu, const GivenNumbers& numbers) {
  return ref_of_device(with_numbers(gpu.content->device, numbers));
}

const std::string& ModelRef::name() const { return content->model.name; }
const std::string& GpuRef::id() const { return content->device.id; }
const std::vector<std::string>& GpuRef::warnings() const { return content->device.warnings; }

ModelRef load_model_ref(const std::string& name_or_path) {
  static Loaded<ModelRef> bundled;
  const std::optional<std::string> name = find_bundled_model(name_or_path);
  if (!name) return ref_of(load_model(name_or_path));
  return bundled.get(*name, [&] { return ref_of(load_bundled_model(*name)); });
}

ModelRef model_from_text(const std::string& text, const std::string& name) {
  return ref_of(import_model(text, printable(name)));
}

/// "H100:sm_count=160" is written as designs of accelerators are.
bool is_accelerator(const std::string& spec) {
  if (!accelerator::names_accelerator(spec)) return false;
  const size_t colon = spec.rfind(':');
  return colon == std::string::npos || spec.find('=', colon) == std::string::npos ||
         !names_bundled_device(split_slice(spec.substr(0, colon)).first);
}

GpuRef load_gpu_ref(const std::string& name_or_path) {
  static Loaded<GpuRef> bundled;
  const auto load = [&] {
    if (is_accelerator(name_or_path))
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{} is an accelerator, described by its objects: only 'tilecast "
                              "forecast' and 'tilecast sweep' take it; 'tilecast gpus' lists GPUs",
                              shown_name(name_or_path)));
    return ref_of_device(find_device(name_or_path));
  };
  // Names of bundled ones are compared by letters and digits, which numbers are more than.
  if (auto [device, numbers] = split_numbers(name_or_path); !numbers.empty())
    return with_numbers(load_gpu_ref(device), numbers);
  return is_path(split_slice(name_or_path).first)
             ? load()
             : bundled.get(normalized_name(name_or_path), load);
}

GpuRef load_cluster_gpu_ref(const std::string& cluster) {
  return ref_of_device(find_cluster(cluster).device);
}

GpuRef load_gpu_or_cluster(const std::string& gpu, const std::string& cluster) {
  if (cluster.empty() && gpu.empty()) throw OptionError("`gpu` is missing");
  if (cluster.empty()) return load_gpu_ref(gpu);
  GpuRef own = load_cluster_gpu_ref(cluster);
  if (!gpu.empty() && load_gpu_ref(gpu).id() != own.id())
    throw OptionError(fmt::format("`gpu` {}: the GPUs of `cluster` {} are {}; omit `gpu`",
                                  printable(gpu), printable(cluster), own.id()));
  return own;
}

GpuRef gpu_from_text(const std::string& text, const std::string& name) {
  return ref_of_device(parse_device(text, printable(name)));
}

}  // namespace tilecast
