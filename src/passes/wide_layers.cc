#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Repetitions of a segment that are alike.
struct Piece {
  int64_t repeat = 0;
  bool wide = false;
};

/// Not of a vision tower, which is in front of the model's layers.
bool has_layers(const Segment& segment) {
  return segment.is_layers() && segment.role != Role::kVision;
}

/// Copies a graph of modules; a segment whose repetitions are not alike becomes several.
class SegmentCutter {
 public:
  SegmentCutter(const Graph& from, int64_t first_narrow, int64_t end_narrow)
      : from_(from),
        first_narrow_(first_narrow),
        end_narrow_(end_narrow),
        b_(to_),
        now_(from.tensors.size(), -1),
        made_(made_tensors(from)) {}

  Graph run() {
    to_.name = from_.name;
    for (size_t id = 0; id < made_.size(); ++id) {
      if (!made_[id] && from_.tensors[id].segment < 0) copy_given(id, -1);
    }
    int64_t layer = 0;
    for (size_t s = 0; s < from_.segments.size(); ++s) {
      const Segment& segment = from_.segments[s];
      copy_pieces(s, pieces_of(segment, layer));
      if (has_layers(segment)) layer += segment.repeat;
    }
    for (const TensorId id : from_.outputs) to_.outputs.push_back(now(id));
    return std::move(to_);
  }

 private:
  TensorId now(TensorId id) const { return now_[static_cast<size_t>(id)]; }
  TensorId& now(TensorId id) { return now_[static_cast<size_t>(id)]; }

  std::vector<Piece> pieces_of(const Segment& segment, int64_t first) const {
    if (!has_layers(segment)) return {{segment.repeat, false}};
    const int64_t end = first + segment.repeat;
    const int64_t narrow_first = std::clamp(first_narrow_, first, end);
    const int64_t narrow_end = std::clamp(end_narrow_, narrow_first, end);
    std::vector<Piece> pieces = {
        {narrow_first - first, true}, {narrow_end - narrow_first, false}, {end - narrow_end, true}};
    std::erase_if(pieces, [](const Piece& piece) { return piece.repeat == 0; });
    return pieces;
  }

  /// A tensor that no node computes, with the splits of a weight.
  void copy_given(size_t id, int32_t segment) {
    Tensor tensor = from_.tensors[id];
    tensor.storage = tensor.storage == static_cast<TensorId>(id) ? -1 : now(tensor.storage);
    tensor.segment = segment;
    now_[id] = b_.tensor(std::move(tensor));
    for (WeightSplit split : from_.splits) {
      if (split.weight != static_cast<TensorId>(id)) continue;
      split.weight = now_[id];
      to_.splits.push_back(split);
    }
  }

  void copy_pieces(size_t s, const std::vector<Piece>& pieces) {
    const Segment& segment = from_.segments[s];
    std::vector<TensorId> initial;
    for (const Carry& carry : segment.carries) initial.push_back(now(carry.initial));
    for (size_t piece = 0; piece < pieces.size(); ++piece) {
      // The first repetition of a piece reads what the last one of the piece before gives.
      for (const Carry& carry : segment.carries) {
        if (piece > 0) now(carry.initial) = now(carry.next);
      }
      b_.begin_segment(segment, pieces[piece].repeat);
      if (pieces[piece].wide) to_.segments.back().role = Role::kSixteenBits;
      for (size_t id = 0; id < made_.size(); ++id) {
        if (!made_[id] && from_.tensors[id].segment == static_cast<int32_t>(s))
          copy_given(id, b_.current_segment());
      }
      for (int32_t i = 0; i < segment.node_count; ++i)
        copy_node(from_.nodes[static_cast<size_t>(segment.first_node + i)]);
      for (const Carry& carry : segment.carries) b_.carry(now(carry.initial), now(carry.next));
    }
    for (size_t i = 0; i < initial.size(); ++i) now(segment.carries[i].initial) = initial[i];
  }

  void copy_node(const Node& node) {
    std::vector<TensorId> inputs;
    for (const TensorId id : node.inputs) inputs.push_back(now(id));
    b_.set_counts(node.counts);
    b_.set_role(node.role);
    const std::vector<TensorId> outputs =
        b_.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
    for (size_t i = 0; i < outputs.size(); ++i) now(node.outputs[i]) = outputs[i];
  }

  const Graph& from_;
  const int64_t first_narrow_, end_narrow_;
  Graph to_;
  GraphBuilder b_;
  std::vector<TensorId> now_;
  const std::vector<bool> made_;
};

}  // namespace

Graph keep_in_16_bits(const Graph& modules, const WideLayers& layers) {
  const int64_t kept = checked_add(layers.at_start, layers.at_end);
  int64_t all = 0;
  for (const Segment& segment : modules.segments)
    all = checked_add(all, has_layers(segment) ? segment.repeat : 0);
  if (kept > all)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: `num-layers-at-start-in-bf16` {} and `num-layers-at-end-in-bf16` "
                            "{} are more than the model's {} layers",
                            modules.name, layers.at_start, layers.at_end, all));
  Graph cut = SegmentCutter(modules, layers.at_start, all - layers.at_end).run();
  validate_if_debug(cut);
  return cut;
}

}  // namespace tilecast
