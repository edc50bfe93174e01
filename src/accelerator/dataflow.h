#pragma once

// How an accelerator's instructions cover a tile: the part of a description that says which
// operations load, compute and store, in what blocks and in which order.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/layer.h"
#include "accelerator/machine.h"

namespace tilecast::accelerator {

/// When an instruction is issued.
enum class IssuePoint : uint8_t {
  kTile,     ///< before a tile that it is needed for; stores: after it
  kBlock,    ///< before the first computation with a block of the stationary operand
  kCompute,  ///< before each computation
  kDone,     ///< after the last computation with a block of the stationary operand
};

/// An instruction of the dataflow: the operation, and the block that one instruction handles.
struct DataflowInstruction {
  int operation = -1;  ///< index into Machine::operations
  IssuePoint point = IssuePoint::kTile;
  Sizes block = kOnes;     ///< 0: the whole tile
  bool each_unit = false;  ///< one for each unit of the operation, the work divided
  bool chained = false;    ///< as each_unit, and each unit waits for the one before it
};

/// Where an operand's tiles lie.
struct Buffer {
  int memory = -1;
  double share = 1;    ///< of the memory's bytes
  int64_t copies = 1;  ///< tiles that are there at once: 2 for double buffering
  double element_bytes = 1;
};

struct Dataflow {
  std::string name;
  std::string order;  ///< loops inside a tile, outermost first
  Operand stationary = Operand::kWeight;
  bool fences = false;    ///< a tile is fetched when the one before the last is complete
  bool flattens = false;  ///< convolutions are run as matrix products (im2col)
  std::array<Buffer, kOperandCount> buffers;
  double stored_bytes = 1;  ///< of an output element outside the chip
  std::array<std::optional<DataflowInstruction>, kOperandCount>
      loads;  ///< [kOutput]: of partial sums
  std::optional<DataflowInstruction> preload, finish, store;
  /// Operators (`tilecast ops`) that are applied to outputs as they are stored, or folded into
  /// weights before: no layers of their own where they follow a layer.
  std::vector<std::string> store_applies;
  /// By kind of layer; nullopt: it does not run this kind.
  std::array<std::optional<DataflowInstruction>, kLayerKindCount> compute;

  bool applies(std::string_view op) const {
    return std::find(store_applies.begin(), store_applies.end(), op) != store_applies.end();
  }
  bool runs(LayerKind kind) const { return compute[static_cast<size_t>(kind)].has_value(); }
};

/// Reads the dataflow of that name, or the default one for "". Throws Error{kInput}.
Dataflow read_dataflow(const JsonObject& file, const Machine& machine, const std::string& name);

}  // namespace tilecast::accelerator
