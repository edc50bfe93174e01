#pragma once

// Curves learned from measured collectives: for each curve (a kind of collective by one algorithm),
// width (ranks of a node, or nodes) and size, the logarithm of measured over law, for each
// generation of links that was measured. `tilecast train --collectives` writes it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/cluster.h"

namespace tilecast {

enum class Curve : uint8_t {
  kRingAllReduce,
  kSwitchAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSendRecv,
  kVllmAllReduce,
  kSglangAllReduce,
  kTrtllmAllReduce,
  kDispatch,
  kCombine,
  kLowLatencyDispatch,
  kLowLatencyCombine,
};
constexpr auto choice_words(Curve) {
  return std::array<std::string_view, 13>{
      "ring_all_reduce",    "switch_all_reduce", "all_gather",      "reduce_scatter",
      "all_to_all",         "send_recv",         "vllm_all_reduce", "sglang_all_reduce",
      "trtllm_all_reduce",  "dispatch",          "combine",         "low_latency_dispatch",
      "low_latency_combine"};
}
constexpr size_t kCurveCount = choice_words(Curve{}).size();

/// Size: log2 of the microseconds that the bytes take at the link's rate, from -10 (about 0.5 kB on
/// NVLink 4) to 20. Width: log2 of ranks or nodes, 1 to 8.
constexpr int kFirstSize = -10, kSizeCount = 31, kWidthCount = 4;
using CurveTable = std::array<std::array<double, kSizeCount>, kWidthCount>;

/// The two neighbours of a point between whole numbers, with the share of the second. Clamped.
struct Between {
  int first = 0;
  double share = 0;
  static Between of(double value, int first, int count);
};

/// The curves of one generation of links, or of all.
struct LinkCurves {
  std::string kind;  ///< "": all links
  int64_t generation = 0;
  std::array<CurveTable, kCurveCount> values{};
  std::array<bool, kCurveCount> known{};  ///< measured on these links
};

struct CollectiveWeights {
  std::vector<LinkCurves> links;  ///< by kind and generation; the first is of all links
  /// 80 % of log(measured / forecast) lies within this of 0: on held-out sizes of measured links,
  /// and on links that were left out.
  std::array<double, kCurveCount> known_spread{};
  std::array<double, kCurveCount> unknown_spread{};
  std::string command;  ///< that made it
};

/// A weighted mean of tables.
struct CurveMix {
  struct Part {
    const LinkCurves* curves;
    double share;
  };
  std::array<Part, 2> parts{};
  bool known = false;  ///< this generation was measured
};

/// The tables for links of this kind and generation: its own, between the nearest ones, or of all.
CurveMix mix_for(const CollectiveWeights& weights, Curve curve, std::string_view kind,
                 std::optional<int64_t> generation);

/// log(measured / law) at knot `size`, for ranks or nodes `width`.
double residual_at(const CurveMix& mix, Curve curve, const Between& width, int size);

/// Reads data/weights/collectives.json. Throws Error{kInput}.
CollectiveWeights parse_collective_weights(std::string_view json_text, const std::string& where);
std::string collective_weights_json(const CollectiveWeights& weights);

/// The weights that the build put into the program; read once, on first use.
const CollectiveWeights& bundled_collective_weights();

}  // namespace tilecast
