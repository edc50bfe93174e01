#include "scenario/pass/batch_passes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "scenario/internal.h"
#include "scenario/pass/pass.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// So few passes the cache keeps for the next table, which then needs no graph at all.
constexpr size_t kFew = 8;

}  // namespace

BatchPasses::BatchPasses(PassCache& cache, std::vector<int64_t> batches) : cache_(cache) {
  if (batches.empty()) return;
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  first_ = batches.front();
  last_ = batches.back();
  several_ = batches.size() > kFew && first_ > 0;
}

BatchPasses::Family BatchPasses::make(const ModelRef& model, const Request& used,
                                      const Precision& precision) const {
  Family family;
  Request request = used;
  const GraphFamily::Batches batches = {first_, first_ + 1, last_};
  std::array<Graph, 3> graphs;
  try {
    for (size_t i = 0; i < graphs.size(); ++i) {
      request.batch = batches[i];
      graphs[i] = build_graph(model.content->model, request, precision);
    }
  } catch (const Error&) {
    return family;  // not all batches are possible
  }
  family.graphs = GraphFamily::find(batches, {&graphs[0], &graphs[1], &graphs[2]});
  if (!family.graphs) return family;
  family.graphs->set_batch(graphs[0], used.batch);
  family.batch = used.batch;
  family.work = std::make_shared<PassWork>(std::move(graphs[0]),
                                           LifetimeOptions{.zero_grad = used.zero_grad});
  return family;
}

std::shared_ptr<const PassWork> BatchPasses::get(const ModelRef& model, const Request& used,
                                                 const Precision& precision) {
  if (!several_ || used.batch < first_ || used.batch > last_)
    return cache_.get(model, used, precision);
  if (model_ != model.content.get()) families_.clear();
  model_ = model.content.get();
  Request others = used;
  others.batch = first_;
  std::string key = pass_key(others, precision);
  auto family = std::find_if(families_.begin(), families_.end(),
                             [&](const Family& known) { return known.key == key; });
  if (family == families_.end()) {
    families_.push_back(make(model, used, precision));
    family = families_.end() - 1;
    family->key = std::move(key);
  }
  const bool held = family->work.use_count() > 1;  // by a caller that still reads it
  if (!family->graphs || (held && family->batch != used.batch))
    return cache_.get(model, used, precision);
  if (family->batch != used.batch) {
    family->batch = 0;  // of none, should the work overflow 64 bits
    family->graphs->set_batch(family->work->graph, used.batch);
    family->work->sizes_changed();
    family->batch = used.batch;
  }
  return family->work;
}

}  // namespace tilecast
