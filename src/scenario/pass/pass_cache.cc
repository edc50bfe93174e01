#include "scenario/pass/pass_cache.h"

#include <fmt/format.h>

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
  std::string key =
      fmt::format("{} {} {} {} {} {} {}\n", static_cast<int>(precision.dtype),
                  static_cast<int>(precision.scheme), precision.autocast, precision.as_stored,
                  precision.rows_only, precision.name, precision.source);
  for (const OptionDef& option : request_options()) {
    if (!option.applies_to(used.kind)) continue;
    key += option.access.get(used, option);
    key += '\n';
  }
  return key;
}

void PassCache::keep_nodes(size_t nodes) {
  const std::lock_guard lock(mutex_);
  most_nodes_ = nodes;
}

bool PassCache::is_full() const {
  return entries_.size() > kMaxEntries && (most_nodes_ == 0 || nodes_ > most_nodes_);
}

PassCache::Counts PassCache::counts() const {
  const std::lock_guard lock(mutex_);
  return {.found = found_,
          .built = built_,
          .passes = static_cast<int64_t>(entries_.size()),
          .nodes = static_cast<int64_t>(nodes_)};
}

std::shared_ptr<const PassWork> PassCache::find(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  ++found_;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->work;
}

std::shared_ptr<const PassWork> PassCache::get(const ModelRef& model, const Request& used,
                                               const Precision& precision) {
  std::string name = fmt::format("{} {}", fmt::ptr(model.content.get()), pass_key(used, precision));
  {
    const std::lock_guard lock(mutex_);
    if (std::shared_ptr<const PassWork> known = find(name)) return known;
  }
  auto work = std::make_shared<const PassWork>(build_graph(model.content->model, used, precision),
                                               LifetimeOptions{.zero_grad = used.zero_grad});
  const std::lock_guard lock(mutex_);
  ++built_;
  // Another thread may have built it meanwhile.
  if (std::shared_ptr<const PassWork> known = find(name)) return known;
  entries_.push_front({model.content, name, work});
  by_name_.emplace(std::move(name), entries_.begin());
  nodes_ += work->graph.nodes.size();
  while (is_full()) {
    nodes_ -= entries_.back().work->graph.nodes.size();
    by_name_.erase(entries_.back().name);
    entries_.pop_back();
  }
  return work;
}

}  // namespace tilecast
