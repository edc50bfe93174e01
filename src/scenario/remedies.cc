// Options to change if a pass does not fit into memory.

#include "scenario/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text.h"
#include "memory/replay.h"
#include "scenario/change.h"
#include "scenario/fit.h"
#include "scenario/internal.h"
#include "scenario/parallel/model_part.h"
#include "scenario/parallel/rank_layout.h"
#include "scenario/parallel/rank_memory.h"
#include "scenario/pass/pass.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

/// The changes of one kind of options that could save memory in a request.
class Changes {
 public:
  explicit Changes(const PassSetup& setup) : setup_(setup), r_(setup.request) {}

  std::vector<Change> all() {
    const bool training = r_.mode == Mode::kTraining;
    const bool eager = r_.execution.attention == AttentionKind::kEager;
    if (training && setup_.model.has_modules && r_.checkpointing != Checkpointing::kFull) {
      add("checkpointing", "full");
      if (eager && r_.checkpointing == Checkpointing::kNone) add("checkpointing", "selective");
    }
    if (setup_.model.has_fused_attention && eager) add("attention", "flash");
    if (!setup_.model.fixed_dtype && dtype_bits(setup_.precision.dtype) == 32) {
      const bool bf16 = setup_.device.matmul_peak(DType::kBf16) > 0;
      add("dtype", bf16 ? "bf16" : "fp16");
      if (training) add("dtype", bf16 ? "amp" : "amp-fp16");
    }
    const bool adam = r_.optimizer == Optimizer::kAdam || r_.optimizer == Optimizer::kAdamW;
    if (adam && r_.optimizer_impl == OptimizerImpl::kForeach) add("optimizer-impl", "fused");
    if (training && setup_.model.has_modules && !setup_.model.has_backward) of_ranks();
    return changes_;
  }

 private:
  void add(const char* option, std::string value) {
    changes_.push_back({{option, std::move(value)}});
  }

  void of_ranks() {
    const Execution& e = r_.execution;
    const int64_t share = r_.batch / e.dp;
    const int64_t micro =
        r_.parallel.micro_batch_size.value_or(std::max<int64_t>(1, share / e.microbatches));
    // Half of the micro-batch, and the smallest.
    const bool counted = e.microbatches > 1;
    const char* const option = counted ? "microbatches" : "micro-batch-size";
    for (const int64_t size : {micro / 2, int64_t{1}}) {
      if (size < 1 || size >= micro || share % size != 0) continue;
      add(option, std::to_string(counted ? share / size : size));
      if (size == 1) break;
    }
    if (e.dp > 1 || r_.parallel.cp > 1) {
      for (int zero = static_cast<int>(r_.parallel.zero) + 1; zero <= 3; ++zero)
        add("zero", std::to_string(zero));
    }
    // The same number of GPUs.
    if (e.dp % 2 == 0 && e.dp >= 2)
      changes_.push_back({{"tp", std::to_string(2 * e.tp)}, {"dp", std::to_string(e.dp / 2)}});
  }

  const PassSetup& setup_;
  const Request& r_;
  std::vector<Change> changes_;
};

class Search {
 public:
  Search(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
         const Request& asked)
      : forecaster_(forecaster),
        model_(model),
        gpu_(gpu),
        asked_(asked),
        before_(memory_of(asked).peak_bytes) {}

  std::vector<MemoryRemedy> run(const std::vector<Change>& changes) {
    std::vector<Found> singles;
    for (const Change& change : changes) {
      std::optional<PassMemory> memory = memory_with(change);
      if (memory) singles.push_back({change, memory->peak_bytes, memory->fits});
    }
    sort(singles);
    // A change that saves less than a percent is no help, but may be one beside another, which
    // moves the peak to where this one counts.
    std::vector<Found> found;
    std::copy_if(singles.begin(), singles.end(), std::back_inserter(found),
                 [&](const Found& one) { return one.peak_bytes < before_ - before_ / 100; });
    const auto fit = [](const Found& one) { return one.fits; };
    if (std::none_of(singles.begin(), singles.end(), fit)) add_pairs(singles, found);
    if (!singles.empty() && std::none_of(found.begin(), found.end(), fit))
      add_together(singles, found);
    std::vector<MemoryRemedy> remedies;
    for (const Found& one : found) remedies.push_back(remedy_of(one));
    return remedies;
  }

 private:
  struct Found {
    Change change;
    int64_t peak_bytes = 0;
    bool fits = false;
  };

  static void sort(std::vector<Found>& found) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.peak_bytes < b.peak_bytes; });
  }

  PassMemory memory_of(const Request& request) const {
    return std::get<Forecast>(ask(forecaster_, model_, gpu_, request, Detail::kNumbers)).memory;
  }
  std::optional<PassMemory> memory_with(const Change& change) const {
    return if_possible([&] { return memory_of(changed(asked_, change)); });
  }

  /// Pairs that fit and change the peak least: as a rule they cost the least time.
  void add_pairs(const std::vector<Found>& singles, std::vector<Found>& found) {
    constexpr size_t kMost = 3, kMostTried = 24;  // so that large plans do not take seconds
    std::vector<Found> pairs;
    size_t tried = 0;
    for (size_t b = 1; b < singles.size(); ++b) {
      for (size_t a = 0; a < b && tried < kMostTried; ++a) {
        const std::optional<Change> both = joined(singles[a].change, singles[b].change);
        if (!both) continue;
        ++tried;
        const std::optional<PassMemory> memory = memory_with(*both);
        if (memory && memory->fits) pairs.push_back({*both, memory->peak_bytes, true});
      }
    }
    sort(pairs);
    const size_t first = pairs.size() > kMost ? pairs.size() - kMost : 0;
    found.insert(found.end(), pairs.rbegin(), pairs.rend() - static_cast<std::ptrdiff_t>(first));
  }

  /// One change of each kind, from the one that saves most.
  void add_together(const std::vector<Found>& singles, std::vector<Found>& found) {
    Found all = singles.front();
    for (const Found& more : singles) {
      const std::optional<Change> both = joined(all.change, more.change);
      const std::optional<PassMemory> memory =
          both && !all.fits ? memory_with(*both) : std::nullopt;
      if (memory && memory->peak_bytes < all.peak_bytes)
        all = {*both, memory->peak_bytes, memory->fits};
    }
    if (all.change.size() > singles.front().change.size()) found.push_back(all);
  }

  MemoryRemedy remedy_of(const Found& found) const {
    MemoryRemedy remedy{.option = found.change.front().name,
                        .value = found.change.front().text,
                        .also = {},
                        .peak_bytes = found.peak_bytes,
                        .fits = found.fits,
                        .largest_batch = {}};
    for (size_t i = 1; i < found.change.size(); ++i)
      remedy.also.push_back({found.change[i].name, found.change[i].text});
    const Request request = changed(asked_, found.change);
    const Model& model = model_.content->model;
    const Device& device = gpu_.content->device;
    if (!model.takes_batch() || is_parallel(request)) return remedy;
    const auto [used, precision] = checked_pass(model, device, request);
    remedy.largest_batch = largest_fitting_batch(
        {model, device, used, precision},
        found.fits ? std::nullopt : std::optional(BatchBytes{request.batch, found.peak_bytes}));
    return remedy;
  }

  const Forecaster& forecaster_;
  const ModelRef& model_;
  const GpuRef& gpu_;
  const Request& asked_;
  int64_t before_;
};

/// Bytes that the caching allocator takes at most; nullopt where the peak leaves enough room for
/// what it splits and cannot use, and for steps over several ranks which no single graph describes.
std::optional<int64_t> reserved_bytes(const PassMemory& memory, const PassSetup& setup) {
  // The replay takes milliseconds.
  if (!is_tight(memory)) return std::nullopt;
  int64_t buckets = 0;  // DistributedDataParallel's, allocated at the start
  Graph graph;
  if (is_parallel(setup.request)) {
    const ModelModules modules = rank_modules(setup, rank_share(setup.model, setup.request));
    const RankLayout plan = lay_out_ranks(setup.model, cluster_of(setup.device, setup.request),
                                          modules.layers, setup.request);
    if (plan.pp > 1 || !is_plain(setup.request, plan)) return std::nullopt;
    graph = part_graph({setup, plan, modules.graph}, plan.parts.front());
    if (plan.data_ranks() > 1) buckets = memory.gradients_bytes;
  } else {
    graph = build_graph(setup.model, setup.request, setup.precision);
  }
  const ZeroGrad zero_grad = setup.request.zero_grad;
  const Lifetimes lifetimes = find_lifetimes(graph, {.folded = false, .zero_grad = zero_grad});
  return memory.framework_bytes + buckets +
         replay_allocations(graph, lifetimes, zero_grad, memory.workspace_bytes).reserved_bytes;
}

/// The remedies that make it fit, as options of the command line.
std::string ways_that_fit(const std::vector<MemoryRemedy>& remedies) {
  std::vector<std::string> ways;
  for (const MemoryRemedy& remedy : remedies) {
    if (!remedy.fits) continue;
    std::string way = fmt::format("--{} {}", remedy.option, remedy.value);
    for (const auto& [option, value] : remedy.also) way += fmt::format(" --{} {}", option, value);
    ways.push_back(std::move(way));
  }
  return join(ways, ", or with ");
}

}  // namespace

std::vector<MemoryRemedy> memory_remedies(const Forecaster& forecaster, const ModelRef& model_ref,
                                          const GpuRef& gpu, const Request& asked) {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  const auto [request, precision] = checked_pass(model, device, asked);
  const std::vector<Change> changes = Changes({model, device, request, precision}).all();
  return Search(forecaster, model_ref, gpu, asked).run(changes);
}

void add_remedies(Forecast& forecast, const Forecaster& forecaster, const ModelRef& model,
                  const GpuRef& gpu, const Request& request) {
  PassMemory& memory = forecast.memory;
  if (!memory.fits && !model.content->model.recommendation)
    memory.remedies = memory_remedies(forecaster, model, gpu, request);
  const std::string ways = ways_that_fit(memory.remedies);
  for (Warning& warning : forecast.warnings) {
    if (warning.code == WarningCode::kDoesNotFit && !ways.empty())
      warning.facts.push_back({"ways_that_fit", ways});
  }
  if (!memory.fits) return;
  const auto [used, precision] = checked_pass(model.content->model, gpu.content->device, request);
  if (!model.content->model.recommendation)
    memory.reserved_bytes =
        reserved_bytes(memory, {model.content->model, gpu.content->device, used, precision});
  if (!forecast.parallel) memory.largest_batch = forecaster.largest_batch(model, gpu, request);
}

}  // namespace tilecast
