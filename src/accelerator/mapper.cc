#include "accelerator/mapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "accelerator/nest_times.h"
#include "accelerator/tiling.h"
#include "accelerator/traffic.h"
#include "base/budget.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

/// Orders around tiles: sums stay on the chip, with inputs or with weights loaded once.
constexpr std::array<const char*, 4> kOrders = {"nkpqcrs", "npqkcrs", "kncrspq", "npkqcrs"};
/// Dimensions whose tiles are chosen: images run one by one, filters whole.
constexpr std::array<Dim, 4> kTiled = {Dim::kK, Dim::kC, Dim::kP, Dim::kQ};

/// A mapping by its place in the lists of sizes, along each of kTiled, and of orders.
struct Choice {
  std::array<size_t, kTiled.size()> size{};
  size_t order = 0;
};

struct Candidate {
  Choice choice;
  Mapping mapping;
  double bound = 0;
};

/// Mappings that fit, with a bound of the time of each: computation, or bytes moved.
class Candidates {
 public:
  Candidates(const Design& accelerator, const Layer& layer)
      : accelerator_(accelerator), flow_(accelerator.flow), layer_(layer) {
    for (size_t i = 0; i < kTiled.size(); ++i) sizes_[i] = sizes_along(kTiled[i]);
  }

  /// All, by their bound.
  std::vector<Candidate> ranked() const {
    std::vector<Candidate> found;
    choose({}, 0, found);
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
    return found;
  }
  /// Neighbours of a choice: a step in one size, or in two where one grows as the other shrinks, in
  /// the same order; then the same in the other orders, where sums may fit that do not fit in this
  /// one.
  std::vector<Candidate> near(const Choice& choice) const {
    std::vector<Candidate> found;
    add_near(choice, found);
    for (size_t order = 0; order < kOrders.size(); ++order) {
      if (order == choice.order) continue;
      const Choice other{.size = choice.size, .order = order};
      add(other, found);
      add_near(other, found);
    }
    return found;
  }
  void add_near(const Choice& choice, std::vector<Candidate>& found) const {
    const auto step = [&](Choice& other, size_t dim, int64_t by) {
      other.size[dim] += static_cast<size_t>(by);  // 0 - 1: past the end
      return other.size[dim] < sizes_[dim].size();
    };
    for (size_t i = 0; i < kTiled.size(); ++i) {
      for (const int64_t by : {1, -1}) {
        Choice other = choice;
        if (step(other, i, by)) add(other, found);
      }
      for (size_t j = 0; j < kTiled.size(); ++j) {
        Choice other = choice;
        if (i != j && step(other, i, 1) && step(other, j, -1)) add(other, found);
      }
    }
  }
  Sizes smallest_tile() const {
    Choice choice;
    for (size_t i = 0; i < kTiled.size(); ++i) choice.size[i] = sizes_[i].size() - 1;
    return tile_of(choice);
  }
  /// No mapping is faster: each multiplication takes a unit for a cycle, each operand moves once.
  double least_cycles() const {
    double bytes = 0;
    for (const Operand operand : kOperands)
      if (operand != Operand::kWeight || layer_.uses(operand, Dim::kR))
        bytes += static_cast<double>(layer_.elements(operand, layer_.sizes)) *
                 element_bytes(flow_, operand);
    const auto units = static_cast<double>(std::max<int64_t>(1, accelerator_.machine.pe_count()));
    const bool multiplies = layer_.kind == LayerKind::kProduct;
    const double computing = multiplies ? static_cast<double>(layer_.macs()) / units : 0;
    return std::max(computing, bytes / off_chip_width());
  }

 private:
  /// Sizes of a tile along one dimension: the whole, then halves, as multiples of the block that an
  /// instruction computes.
  std::vector<int64_t> sizes_along(Dim dim) const {
    const auto i = static_cast<size_t>(dim);
    const int64_t all = layer_.sizes[i];
    const DataflowInstruction& step = *flow_.compute[static_cast<size_t>(layer_.kind)];
    const int64_t block = std::clamp<int64_t>(step.block[i], 1, all);
    std::vector<int64_t> sizes = {all};
    for (int64_t parts = 2; parts < 2 * all; parts *= 2) {
      const int64_t part = (all + parts - 1) / parts;
      const int64_t size = std::min(all, (part + block - 1) / block * block);
      if (size < sizes.back()) sizes.push_back(size);
      if (size <= block) break;
    }
    return sizes;
  }
  bool fits(const Sizes& tile) const {
    for (size_t memory = 0; memory < accelerator_.machine.memories.size(); ++memory) {
      double needed = 0, share = 1;
      for (const Operand operand : kOperands) {
        const Buffer& buffer = flow_.buffers[static_cast<size_t>(operand)];
        if (buffer.memory != static_cast<int>(memory)) continue;
        needed += buffer_bytes(layer_, tile, flow_, operand);
        share = std::min(share, buffer.share);
      }
      if (needed > accelerator_.machine.memories[memory].bytes * share) return false;
    }
    return true;
  }
  /// Without loads of partial sums, they must stay on the chip until they are complete, beside the
  /// tiles of the other operands.
  bool sums_stay(const Mapping& mapping) const {
    double needed = spilled_bytes(layer_, mapping, flow_);
    if (needed == 0) return true;
    const Buffer& sums = flow_.buffers[static_cast<size_t>(Operand::kOutput)];
    for (const Operand operand : {Operand::kInput, Operand::kWeight})
      if (flow_.buffers[static_cast<size_t>(operand)].memory == sums.memory)
        needed += buffer_bytes(layer_, mapping.tile, flow_, operand);
    return needed <=
           accelerator_.machine.memories[static_cast<size_t>(sums.memory)].bytes * sums.share;
  }
  Sizes tile_of(const Choice& choice) const {
    Sizes tile = layer_.sizes;
    tile[0] = 1;
    for (size_t i = 0; i < kTiled.size(); ++i)
      tile[static_cast<size_t>(kTiled[i])] = sizes_[i][choice.size[i]];
    return tile;
  }
  void choose(Choice choice, size_t at, std::vector<Candidate>& found) const {
    if (at < kTiled.size()) {
      for (size_t size = 0; size < sizes_[at].size(); ++size) {
        choice.size[at] = size;
        choose(choice, at + 1, found);
      }
      return;
    }
    if (!fits(tile_of(choice))) return;
    for (choice.order = 0; choice.order < kOrders.size(); ++choice.order) add(choice, found);
  }
  /// Leaves out what does not fit, and what is the mapping of the one before.
  void add(const Choice& choice, std::vector<Candidate>& found) const {
    Candidate candidate{.choice = choice, .mapping = {.order = {}, .tile = tile_of(choice)}};
    Mapping& mapping = candidate.mapping;
    if (!fits(mapping.tile)) return;
    const Sizes counts = tile_counts(layer_, mapping);
    for (const char* dim = kOrders[choice.order]; *dim != 0; ++dim)
      if (counts[kDimNames.find(*dim)] > 1) mapping.order += *dim;
    if (!found.empty() && found.back().mapping == mapping) return;
    if (!sums_stay(mapping)) return;
    candidate.bound = bound(mapping, counts);
    found.push_back(std::move(candidate));
  }
  double bound(const Mapping& mapping, const Sizes& counts) const {
    double bytes = 0;
    for (const Operand operand : kOperands) {
      if (operand == Operand::kWeight && !layer_.uses(operand, Dim::kR)) continue;
      size_t last = mapping.order.size();
      while (last > 0 &&
             !layer_.uses(operand, static_cast<Dim>(kDimNames.find(mapping.order[last - 1]))))
        --last;
      double tiles = 1;
      for (size_t i = 0; i < last; ++i)
        tiles *= static_cast<double>(counts[kDimNames.find(mapping.order[i])]);
      bytes += tiles * static_cast<double>(layer_.elements(operand, mapping.tile)) *
               (operand == Operand::kOutput ? flow_.stored_bytes : 1);
    }
    double tiles = 1, blocks = 1;
    const DataflowInstruction& step = *flow_.compute[static_cast<size_t>(layer_.kind)];
    for (size_t i = 0; i < kDimCount; ++i) {
      const int64_t part = step.block[i] == 0 ? mapping.tile[i] : step.block[i];
      tiles *= static_cast<double>(counts[i]);
      const int64_t count = (mapping.tile[i] + part - 1) / part;
      blocks *= static_cast<double>(count);
    }
    // Equal bounds: the fewer tiles, the less is waited for at their ends.
    return std::max(bytes / off_chip_width(), tiles * blocks) + tiles;
  }
  double off_chip_width() const {
    double width = 1e15;
    for (const Memory& memory : accelerator_.machine.memories)
      if (memory.type != "sram") width = std::min(width, memory.width_bytes * memory.ports);
    return width;
  }

  const Design& accelerator_;
  const Dataflow& flow_;
  const Layer& layer_;
  std::array<std::vector<int64_t>, kTiled.size()> sizes_;
};

NestTime evaluate(const Design& accelerator, const Layer& layer, const Mapping& mapping,
                  const EvaluationLimits& limits, NestTimes* times = nullptr) {
  if (times != nullptr) return times->time_of(accelerator, layer, mapping, limits);
  const LoopNest nest = tile_layer(accelerator.machine, accelerator.flow, layer, mapping);
  return evaluate_nest(accelerator.machine, nest, limits);
}

/// Evaluates the candidates with the best bounds, then goes from the best to its neighbours while
/// they are faster.
class Climb {
 public:
  Climb(const Design& accelerator, const Layer& layer, const MapperOptions& options)
      : accelerator_(accelerator), layer_(layer), options_(options), all_(accelerator, layer) {}

  /// nullopt if no tile fits.
  std::optional<Candidate> run() {
    const std::vector<Candidate> ranked = all_.ranked();
    if (ranked.empty()) return std::nullopt;
    enough_ = kCloseEnough * all_.least_cycles();
    best_ = ranked.front();
    if (ranked.size() == 1) return best_;
    // The first of each order, beside the first of all.
    std::array<bool, kOrders.size()> seen{};
    for (size_t i = 0; i < ranked.size(); ++i)
      if (!std::exchange(seen[ranked[i].choice.order], true) || i < options_.seeds)
        try_out(ranked[i]);
    for (bool better = true; better;) {
      Budget::here().check("looking for the mapping of a layer");
      const std::vector<Candidate> near = all_.near(best_.choice);
      better = std::any_of(near.begin(), near.end(),
                           [&](const Candidate& next) { return try_out(next); });
    }
    return best_;
  }
  /// Why no tile fits.
  std::string why_none(const std::string& where) const {
    const Mapping smallest{.order = {}, .tile = all_.smallest_tile()};
    const std::string why = misfit(layer_, smallest.tile, accelerator_.machine, accelerator_.flow);
    return fmt::format("{}: {}{}not even the smallest tile of the layer runs ({}): {}",
                       accelerator_.id, where, where.empty() ? "" : ": ",
                       mapping_text(smallest, layer_),
                       why.empty() ? "its incomplete sums do not fit" : why);
  }
  /// Time of the best choice, as far as it was evaluated.
  const NestTime& time() const { return time_; }

 private:
  /// Close enough to the least possible time: the remaining gain is less than the model's error.
  static constexpr double kCloseEnough = 1.03;

  /// Whether it is the best so far.
  bool try_out(const Candidate& candidate) {
    if (tried_ >= options_.evaluated || work_ > options_.most_work || best_cycles_ <= enough_)
      return false;
    const Mapping& mapping = candidate.mapping;
    const auto known = std::find(known_.begin(), known_.end(), mapping);
    if (known != known_.end()) return false;
    known_.push_back(mapping);
    ++tried_;
    EvaluationLimits limits = options_.limits;
    limits.exact = false;
    limits.most_rerun = 0;
    NestTime time = evaluate(accelerator_, layer_, mapping, limits, options_.times);
    work_ += time.evaluated;
    if (time.cycles >= best_cycles_) return false;
    best_cycles_ = time.cycles;
    time_ = std::move(time);
    best_ = candidate;
    return true;
  }

  const Design& accelerator_;
  const Layer& layer_;
  const MapperOptions& options_;
  const Candidates all_;
  std::vector<Mapping> known_;
  Candidate best_;
  NestTime time_;
  double best_cycles_ = std::numeric_limits<double>::infinity(), enough_ = 0;
  size_t tried_ = 0;
  int64_t work_ = 0;
};

void check_runs(const Design& accelerator, const Layer& layer) {
  if (accelerator.flow.runs(layer.kind)) return;
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: the dataflow '{}' does not run {} layers", accelerator.id,
                          accelerator.flow.name, layer_kind_name(layer.kind)));
}

}  // namespace

MappedLayer map_layer(const Design& accelerator, const Layer& given, const MapperOptions& options) {
  check_runs(accelerator, given);
  MappedLayer best{.layer = as_run(given, accelerator.flow)};
  Climb climb(accelerator, best.layer, options);
  const std::optional<Candidate> chosen = climb.run();
  if (!chosen) throw Error(ErrorKind::kUnsupported, climb.why_none(options.where));
  best.mapping = chosen->mapping;
  best.time = climb.time();
  if (options.limits.exact || best.time.instructions == 0 || !best.time.converged)
    best.time = evaluate(accelerator, best.layer, best.mapping, options.limits, options.times);
  return best;
}

MappedLayer run_mapping(const Design& accelerator, const Layer& given, const Mapping& mapping,
                        const EvaluationLimits& limits, const std::string& where) {
  check_runs(accelerator, given);
  MappedLayer result{.layer = as_run(given, accelerator.flow), .mapping = mapping};
  check_covers(mapping, result.layer, where);
  check_fits(result.layer, mapping, accelerator.machine, accelerator.flow, where);
  check_sums_stay(result.layer, mapping, accelerator.machine, accelerator.flow, where);
  result.time = evaluate(accelerator, result.layer, mapping, limits);
  return result;
}

}  // namespace tilecast::accelerator
