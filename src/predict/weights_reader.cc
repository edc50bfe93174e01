#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "predict/nets.h"
#include "predict/weights.h"
#include "predict/weights_container.h"

namespace tilecast {
namespace {

// Trees lie in the file as they lie in memory.
static_assert(sizeof(Forest::Tree) == 3 * (Forest::kInner + 1) + 2 * Forest::kLeaves);
static_assert(sizeof(Forest::Tree) % sizeof(float) == 0);
static_assert(sizeof(TileTree::Node) == 6 * sizeof(int32_t));

std::vector<float> float_list(const Json& json) {
  std::vector<float> values;
  for (const Json& item : json) values.push_back(item.get<float>());
  return values;
}

class Reader {
 public:
  Reader(std::string_view payload, const std::string& where, Checksum checksum)
      : rest_(payload), where_(where), trusted_(checksum == Checksum::kTrust) {}

  Weights read(const Json& header) {
    Weights weights;
    weights.provenance = header.at("provenance").dump();
    const Json& nets = header.at("nets");
    for (size_t i = 0; i < kNetCount; ++i) {
      // A kind that there was nothing to learn from is not in the file.
      const auto kind = static_cast<NetKind>(i);
      const auto found = nets.find(std::string(net_name(kind)));
      if (found != nets.end()) weights.nets[i] = read_net(*found, kind);
    }
    weights.vector_pj_per_flop = header.at("vector_pj_per_flop").get<double>();
    if (!(weights.vector_pj_per_flop >= 0)) unusable_weights(where_, "an energy is below 0");
    for (const Json& tree : header.at("tiles")) weights.tiles.push_back(read_tree(tree));
    if (!rest_.empty())
      unusable_weights(where_, "there are more parameters than the networks need");
    return weights;
  }

 private:
  Net read_net(const Json& json, NetKind kind) {
    Net net;
    net.mean = float_list(json.at("mean"));
    net.scale = float_list(json.at("scale"));
    net.minimum = float_list(json.at("minimum"));
    net.maximum = float_list(json.at("maximum"));
    net.interval = read_interval(json.at("interval"));
    const auto overhead = json.at("call_overhead_s").get<std::array<double, 3>>();
    net.call_overhead = {overhead[0], overhead[1], overhead[2]};
    net.trained_on = read_trained_on(json.at("trained_on"));
    const auto features = json.at("features").get<std::vector<std::string>>();
    if (!std::ranges::equal(features, feature_names(kind)))
      unusable_weights(
          where_, fmt::format("network '{}' has other features than this version", net_name(kind)));
    const size_t width = feature_names(kind).size();
    for (const std::vector<float>* list : {&net.mean, &net.scale, &net.minimum, &net.maximum}) {
      if (list->size() != width)
        unusable_weights(where_,
                         fmt::format("network '{}' has {} features, but one of its lists has {}",
                                     net_name(kind), width, list->size()));
    }
    for (float scale : net.scale) {
      if (!(scale > 0)) unusable_weights(where_, "a feature's scale is not above 0");
    }
    net.members = read_members(json.at("members"), net_def(kind).base_features);
    for (const Json& item : json.at("corrections"))
      net.residuals.push_back(read_residual(item, width));
    for (const DeviceResidual& residual : net.residuals) {
      if (residual.kriging.size() != net.residuals.size())
        unusable_weights(where_, "a device residual does not fit the others");
    }
    return net;
  }

  TrainedOn read_trained_on(const Json& json) const {
    TrainedOn trained;
    trained.operators = json.at("operators").get<std::vector<std::string>>();
    trained.vendors = json.at("vendors").get<std::vector<std::string>>();
    for (const Json& item : json.at("forms")) {
      const std::optional<Form> form = find_form(item.get<std::string>());
      if (!form) unusable_weights(where_, "a form of kernels is unknown");
      trained.forms.add(*form);
    }
    return trained;
  }

  std::vector<Mlp> read_members(const Json& json, size_t inputs) {
    std::vector<Mlp> members;
    for (const Json& widths : json) members.push_back(read_mlp(widths, inputs));
    if (members.empty()) unusable_weights(where_, "a network is missing");
    return members;
  }

  DeviceResidual read_residual(const Json& json, size_t width) {
    DeviceResidual residual;
    residual.source = json.at("source").get<std::string>();
    residual.signature = json.at("signature").get<Signature>();
    residual.kriging = float_list(json.at("kriging"));
    if (!json.at("members").empty()) residual.members = read_members(json.at("members"), width);
    for (const Json& item : json.at("forests"))
      residual.forests.push_back(read_forest(item, width));
    for (const Json& item : json.at("measured"))
      residual.measured.push_back(read_combination(item));
    if (residual.members.empty() == residual.forests.empty())
      unusable_weights(where_, "a device residual is neither networks nor forests");
    residual.interval = read_interval(json.at("interval"));
    residual.call_overhead_s = json.at("call_overhead_s").get<double>();
    return residual;
  }

  Combination read_combination(const Json& json) const {
    const std::optional<Software> software = find_software(json.at(0).get<std::string>());
    const std::optional<DType> dtype = find_dtype(json.at(1).get<std::string>());
    const std::optional<DType> kv_dtype = find_dtype(json.at(2).get<std::string>());
    const std::string scheme = json.at(3).get<std::string>();
    const bool none = scheme == scheme_info(QuantScheme::kNone).name;
    const std::optional<QuantScheme> found = none ? QuantScheme::kNone : find_scheme(scheme);
    if (!software || !dtype || !kv_dtype || !found)
      unusable_weights(where_, "a measured combination is unknown");
    return {*software, *dtype, *kv_dtype, *found};
  }

  /// How many parts of `size` bytes come next.
  size_t count_of(const Json& json, size_t size) const {
    const std::optional<int64_t> count =
        whole_number(json, 1, static_cast<int64_t>(rest_.size() / size));
    if (!count) unusable_weights(where_, "it is truncated");
    return static_cast<size_t>(*count);
  }

  SoftwareForest read_forest(const Json& json, size_t width) {
    const std::optional<Software> software = find_software(json.at("software").get<std::string>());
    if (!software) unusable_weights(where_, "a forest is of unknown software");
    const size_t count = count_of(json.at("trees"), sizeof(Forest::Tree));
    return {*software, take_forest(count, width)};
  }

  /// Trees of trusted content are used where they lie: copying them would be most of what the
  /// start of a program takes.
  Forest take_forest(size_t count, size_t width) {
    const char* at = rest_.data();
    rest_.remove_prefix(count * sizeof(Forest::Tree));
    if (trusted_ && reinterpret_cast<uintptr_t>(at) % alignof(Forest::Tree) == 0)
      return Forest::view({reinterpret_cast<const Forest::Tree*>(at), count});
    std::vector<Forest::Tree> trees(count);
    std::memcpy(trees.data(), at, count * sizeof(Forest::Tree));
    for (const Forest::Tree& tree : trees) {
      bool valid = true;
      for (uint8_t f : tree.feature) valid = valid && f < width;
      if (!valid) unusable_weights(where_, "a forest has an impossible tree");
    }
    return Forest(std::move(trees));
  }

  IntervalLaw read_interval(const Json& json) const {
    IntervalLaw interval;
    interval.low_log = json.at("low_log").get<std::array<double, 3>>();
    interval.high_log = json.at("high_log").get<std::array<double, 3>>();
    interval.common_share = json.at("common_share").get<double>();
    if (!interval.valid()) unusable_weights(where_, "an interval does not hold its forecast");
    return interval;
  }

  Mlp read_mlp(const Json& widths, size_t inputs) {
    Mlp mlp;
    constexpr int64_t kWidest = 4096;
    for (const Json& width : widths)
      mlp.widths.push_back(static_cast<int>(whole_number(width, 1, kWidest).value_or(0)));
    bool valid = mlp.widths.size() >= 2 && mlp.widths.size() <= 16 &&
                 mlp.widths.front() == static_cast<int>(inputs) && mlp.widths.back() == 1;
    for (int w : mlp.widths) valid = valid && w > 0;
    if (!valid) unusable_weights(where_, "a network has impossible layers");
    const size_t bytes = mlp_parameter_count(mlp.widths) * sizeof(float);
    if (rest_.size() < bytes) unusable_weights(where_, "it is truncated");
    mlp.parameters.resize(bytes / sizeof(float));
    std::memcpy(mlp.parameters.data(), rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    for (float p : mlp.parameters) {
      if (!std::isfinite(p)) unusable_weights(where_, "a parameter is not a number");
    }
    return mlp;
  }

  TileTree read_tree(const Json& json) {
    const size_t count = count_of(json.at("nodes"), sizeof(TileTree::Node));
    TileTree tree{json.at("library").get<std::string>(), std::vector<TileTree::Node>(count)};
    std::memcpy(tree.nodes.data(), rest_.data(), count * sizeof(TileTree::Node));
    rest_.remove_prefix(count * sizeof(TileTree::Node));
    const auto size = static_cast<int32_t>(count);
    for (int32_t i = 0; i < size; ++i) {
      const TileTree::Node& node = tree.nodes[static_cast<size_t>(i)];
      // Children come after their parent, so a walk always ends.
      const bool inner = node.feature >= 0 && node.feature < static_cast<int32_t>(kTileFeatures) &&
                         node.left > i && node.left < size && node.right > i && node.right < size;
      const bool leaf = node.feature == -1 && node.tile.m >= 1 && node.tile.m <= 4096 &&
                        node.tile.n >= 1 && node.tile.n <= 4096;
      if (!inner && !leaf) unusable_weights(where_, "a tile tree is broken");
    }
    return tree;
  }

  std::string_view rest_;  ///< of the payload
  const std::string& where_;
  const bool trusted_;
};

}  // namespace

Weights parse_weights(std::string_view content, const std::string& where, Checksum checksum) {
  try {
    const WeightsContainer container = read_container(content, where, checksum);
    return Reader(container.payload, where, checksum).read(container.header);
  } catch (const Json::exception& error) {
    unusable_weights(where, error.what());
  }
}

}  // namespace tilecast
