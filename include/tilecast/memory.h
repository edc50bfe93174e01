#pragma once

// Memory of a pass over time: where its peak is, and what is in memory then.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

/// Bytes by what they are for.
struct MemoryParts {
  int64_t weights_bytes = 0;      ///< parameters and buffers
  int64_t gradients_bytes = 0;    ///< of parameters
  int64_t optimizer_bytes = 0;    ///< optimizer states
  int64_t activations_bytes = 0;  ///< computed by the forward pass for the backward pass
  int64_t temporaries_bytes = 0;  ///< other tensors that nodes compute
  int64_t loss_bytes = 0;         ///< logits and other outputs, the loss and its gradient
  int64_t inputs_bytes = 0;
  int64_t cache_bytes = 0;

  int64_t sum() const {
    return weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes +
           temporaries_bytes + loss_bytes + inputs_bytes + cache_bytes;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryParts", "Bytes by what they are for.");
    field("weights_bytes", "bytes", "parameters and buffers", &MemoryParts::weights_bytes);
    field("optimizer_bytes", "bytes", "optimizer states", &MemoryParts::optimizer_bytes);
    field("inputs_bytes", "bytes", "inputs of the model", &MemoryParts::inputs_bytes);
    field("cache_bytes", "bytes", "keys, values and states of text generation",
          &MemoryParts::cache_bytes);
    field("gradients_bytes", "bytes", "gradients of the parameters", &MemoryParts::gradients_bytes);
    field("activations_bytes", "bytes",
          "tensors that are kept from the forward pass for the backward pass",
          &MemoryParts::activations_bytes);
    field("temporaries_bytes", "bytes", "other tensors that nodes compute",
          &MemoryParts::temporaries_bytes);
    field("loss_bytes", "bytes", "logits and other outputs, the loss and its gradient",
          &MemoryParts::loss_bytes);
  }
};

/// The parts with their names, in the order of tables and pictures: the largest part of training
/// jobs that stays in memory first.
struct NamedPart {
  std::string_view name;
  int64_t MemoryParts::* bytes;
};
inline constexpr std::array kMemoryParts = {
    NamedPart{"weights", &MemoryParts::weights_bytes},
    NamedPart{"optimizer", &MemoryParts::optimizer_bytes},
    NamedPart{"inputs", &MemoryParts::inputs_bytes},
    NamedPart{"cache", &MemoryParts::cache_bytes},
    NamedPart{"gradients", &MemoryParts::gradients_bytes},
    NamedPart{"activations", &MemoryParts::activations_bytes},
    NamedPart{"temporaries", &MemoryParts::temporaries_bytes},
    NamedPart{"loss", &MemoryParts::loss_bytes}};

/// An option with another value.
struct OptionChange {
  std::string option, value;  ///< "checkpointing", "full"

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("OptionChange", "An option with another value.");
    field("option", "", "name of the option", &OptionChange::option);
    field("value", "", "its value", &OptionChange::value);
  }
};

/// A change of one option, or of several together, and the memory with it.
struct MemoryRemedy {
  std::string option, value;  ///< "checkpointing", "full"
  /// Further options and values; empty if one is enough, or none is.
  std::vector<OptionChange> also;
  int64_t peak_bytes = 0;  ///< of the same batch
  bool fits = false;
  std::optional<int64_t> largest_batch;  ///< that fits; nullopt: none

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryRemedy",
             "A change of one option, or of several together, and the memory with it.");
    field("option", "", "name of the option", &MemoryRemedy::option);
    field("value", "", "its value", &MemoryRemedy::value);
    field("also", "", "further options that are changed together with the first",
          &MemoryRemedy::also);
    field("peak_bytes", "bytes", "memory with the same batch", &MemoryRemedy::peak_bytes);
    field("fits", "", "whether it fits", &MemoryRemedy::fits);
    field("largest_batch", "", "the largest batch that fits", &MemoryRemedy::largest_batch);
  }
};

/// Memory while one node runs.
struct MemoryPoint {
  std::string_view phase;  ///< "forward", "backward" or "optimizer"
  std::string segment;     ///< "h", "head"
  int64_t repetition = 0;  ///< of the segment, from 0
  std::string node;
  MemoryParts parts;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryPoint", "Memory while one operator runs.");
    field("phase", "", "of the pass", &MemoryPoint::phase);
    field("segment", "", "part of the model, e.g. its layers", &MemoryPoint::segment);
    field("repetition", "", "of the segment", &MemoryPoint::repetition);
    field("node", "", "the operator that runs", &MemoryPoint::node);
    field("bytes", "bytes", "the sum of the parts",
          [](const MemoryPoint& x) { return x.parts.sum(); });
    field("parts", "", "what is in memory", &MemoryPoint::parts);
  }
};

/// One repetition of a segment, at its highest node.
struct MemoryRepetition {
  MemoryPoint highest;
  int64_t bytes_after = 0;  ///< at the last node of the repetition

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryRepetition", "One repetition of a segment, at its highest operator.");
    field.flat(&MemoryRepetition::highest);
    field("bytes_after", "bytes", "at the last operator of the repetition",
          &MemoryRepetition::bytes_after);
  }
};

/// Tensors of one name that are in memory at the peak, over all repetitions.
struct MemoryHolder {
  std::string name;
  std::string_view part;  ///< a name of kMemoryParts
  int64_t bytes = 0;      ///< of all together
  int64_t count = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryHolder", "Tensors of one name at the peak.");
    field("name", "", "of the tensors", &MemoryHolder::name);
    field("part", "", "what they are for", &MemoryHolder::part);
    field("bytes", "bytes", "of all together", &MemoryHolder::bytes);
    field("count", "", "how many", &MemoryHolder::count);
  }
};

struct MemoryTimeline {
  std::string model, gpu, gpu_name, mode, dtype;
  int64_t batch = 0, seq = 0;
  std::vector<MemoryPoint> points;    ///< a point for each node, in order of execution
  size_t peak_point = 0;              ///< index of the highest one
  std::vector<MemoryHolder> holders;  ///< at the peak, the largest first
  int64_t workspace_bytes = 0;
  int64_t framework_bytes = 0;
  int64_t device_bytes = 0;     ///< what programs see of the device's
  int64_t allocated_bytes = 0;  ///< torch.cuda.max_memory_allocated: peak and workspace
  /// torch.cuda.max_memory_reserved: at least the segments that hold the peak; at most what the
  /// simulated allocator takes from the driver in two steps, without ever giving back.
  int64_t reserved_low_bytes = 0, reserved_high_bytes = 0;
  bool fits = true;  ///< the peak with workspace and framework

  const MemoryPoint* peak() const { return points.empty() ? nullptr : &points[peak_point]; }
  /// Each repetition of each segment.
  std::vector<MemoryRepetition> repetitions() const;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryTimeline", "Memory over one pass or training step.");
    field("schema_version", "", "of this schema", [](const MemoryTimeline&) { return 1; });
    field("model", "", "name of the model", &MemoryTimeline::model);
    field("gpu", "", "id of the GPU", &MemoryTimeline::gpu);
    field("mode", "", "of the pass", &MemoryTimeline::mode, {"inference", "training"});
    field("batch", "", "sequences", &MemoryTimeline::batch);
    field("seq", "tokens", "length of a sequence", &MemoryTimeline::seq);
    field("dtype", "", "the dtype that was used", &MemoryTimeline::dtype);
    field("peak", "", "the highest point", &MemoryTimeline::peak);
    field("holders", "",
          "tensors in memory at the peak, those of one name together, the largest first",
          &MemoryTimeline::holders);
    field("timeline", "", "each repetition of each segment, at its highest operator",
          &MemoryTimeline::repetitions);
    field("allocated_bytes", "bytes",
          "torch.cuda.max_memory_allocated: blocks in use, with workspaces",
          &MemoryTimeline::allocated_bytes);
    field("reserved_low_bytes", "bytes", "torch.cuda.max_memory_reserved, at least",
          &MemoryTimeline::reserved_low_bytes);
    field("reserved_high_bytes", "bytes",
          "the same by a simulation of the caching allocator over two steps",
          &MemoryTimeline::reserved_high_bytes);
    field("workspace_bytes", "bytes", "workspace of cuBLAS", &MemoryTimeline::workspace_bytes);
    field("framework_bytes", "bytes", "context and code of the framework",
          &MemoryTimeline::framework_bytes);
    field("device_bytes", "bytes", "what programs see of the device's memory",
          &MemoryTimeline::device_bytes);
    field("fits", "", "the peak with workspace and framework", &MemoryTimeline::fits);
  }
};

/// The points of one repetition of a segment in one phase: indices into MemoryTimeline::points.
struct MemoryBlock {
  size_t first = 0, last = 0;
  size_t highest = 0;  ///< the point with the most bytes
};
std::vector<MemoryBlock> memory_blocks(const MemoryTimeline& timeline);

}  // namespace tilecast
