#include "scenario/pass/pass_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenario/internal.h"
#include "scenario/pass/pass.h"

namespace tilecast {
namespace {

/// More than the threads of a large machine; each forecasts one pass for several GPUs. The graph of
/// a model takes up to a few MB.
constexpr size_t kMaxEntries = 64;

}  // namespace

// All options of the request, so that none can be forgotten, and the precision. The schemes of its
// layers follow from the model and the names.
std::string pass_key(const Request& used, const Precision& precision) {
  std::string key = fmt::format("{} {} {} {} {} {}\n", static_cast<int>(precision.dtype),
                                static_cast<int>(precision.scheme), precision.autocast,
                                precision.as_stored, precision.name, precision.source);
  for (const OptionDef& option : request_options()) {
    if (!option.applies_to(used.kind)) continue;
    key += option.access.get(used, option);
    key += '\n';
  }
  return key;
}

std::shared_ptr<const PassWork> PassCache::find(const ModelRef& model, const std::string& key) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.model == model.content && entry.key == key;
  });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return found->work;
}

std::shared_ptr<const PassWork> PassCache::get(const ModelRef& model, const Request& used,
                                               const Precision& precision) {
  std::string key = pass_key(used, precision);
  {
    const std::lock_guard lock(mutex_);
    if (std::shared_ptr<const PassWork> known = find(model, key)) return known;
  }
  auto work = std::make_shared<const PassWork>(build_graph(model.content->model, used, precision),
                                               LifetimeOptions{.zero_grad = used.zero_grad});
  const std::lock_guard lock(mutex_);
  // Another thread may have built it meanwhile.
  if (std::shared_ptr<const PassWork> known = find(model, key)) return known;
  entries_.push_front({model.content, std::move(key), work});
  if (entries_.size() > kMaxEntries) entries_.pop_back();
  return work;
}

}  // namespace tilecast
