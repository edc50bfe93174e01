#include "predict/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/embedded.h"
#include "base/file.h"
#include "base/json.h"
#include "tilecast/error.h"

// The container: the magic line, the length of the header in decimal and a newline, the header
// (JSON: shapes and all that is small), then 32-bit little-endian floats, the networks'
// parameters, and the forests' trees as they lie in memory. The header holds their number and a
// checksum.

namespace tilecast {
namespace {

constexpr std::string_view kMagic = "tilecast-weights 4\n";

/// FNV-1a over words of 8 bytes, which is enough to notice damage and fast at the start of a
/// program.
uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 14695981039346656037ull;
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 32;
  }
  return hash;
}

[[noreturn]] void damaged(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: not a usable weights file: {}; make one with 'tilecast train'",
                          where, what));
}

std::vector<float> float_list(const Json& json) {
  std::vector<float> values;
  for (const Json& item : json) values.push_back(item.get<float>());
  return values;
}

Json widths_of(const std::vector<Mlp>& members) {
  Json list = Json::array();
  for (const Mlp& mlp : members) list.push_back(mlp.widths);
  return list;
}

Json forests_of(const std::vector<SoftwareForest>& forests) {
  Json list = Json::array();
  for (const SoftwareForest& f : forests)
    list.push_back({{"software", software_name(f.software)}, {"trees", f.forest.trees.size()}});
  return list;
}

Json combinations_of(const std::vector<Combination>& combinations) {
  Json list = Json::array();
  for (const Combination& c : combinations)
    list.push_back({software_name(c.software), dtype_name(c.dtype), dtype_name(c.kv_dtype),
                    scheme_info(c.scheme).name});
  return list;
}

constexpr size_t kTreeBytes = sizeof(Forest::Tree);
static_assert(kTreeBytes == 3 * (Forest::kInner + 1) + 2 * Forest::kLeaves);
static_assert(kTreeBytes % sizeof(float) == 0);

Json interval_header(const IntervalLaw& interval) {
  return {{"low_log", interval.low_log},
          {"high_log", interval.high_log},
          {"common_share", interval.common_share}};
}

Json net_header(const Net& net) {
  Json corrections = Json::array();
  for (const Correction& c : net.corrections)
    corrections.push_back({{"source", c.source},
                           {"signature", c.signature},
                           {"kriging", c.kriging},
                           {"members", widths_of(c.members)},
                           {"forests", forests_of(c.forests)},
                           {"measured", combinations_of(c.measured)},
                           {"interval", interval_header(c.interval)},
                           {"call_overhead_s", c.call_overhead_s}});
  return {{"members", widths_of(net.members)},
          {"corrections", corrections},
          {"mean", net.mean},
          {"scale", net.scale},
          {"minimum", net.minimum},
          {"maximum", net.maximum},
          {"interval", interval_header(net.interval)},
          {"call_overhead_s",
           {net.call_overhead.seconds, net.call_overhead.low_s, net.call_overhead.high_s}}};
}

Json tree_header(const TileTree& tree) {
  Json nodes = Json::array();
  for (const TileTree::Node& n : tree.nodes)
    nodes.push_back({n.feature, n.threshold, n.left, n.right, n.tile.m, n.tile.n});
  return {{"library", tree.library}, {"nodes", nodes}};
}

class Reader {
 public:
  Reader(std::string_view content, const std::string& where) : rest_(content), where_(where) {}

  Weights read() {
    const Json header = read_header();
    try {
      return interpret(header);
    } catch (const Json::exception& error) {
      damaged(where_, error.what());
    }
  }

 private:
  Json read_header() {
    if (!rest_.starts_with(kMagic)) damaged(where_, "it does not start with 'tilecast-weights 4'");
    rest_.remove_prefix(kMagic.size());
    const size_t newline = rest_.substr(0, 20).find('\n');
    if (newline == std::string_view::npos) damaged(where_, "it is truncated");
    size_t length = 0;
    for (char c : rest_.substr(0, newline)) {
      if (c < '0' || c > '9') damaged(where_, "the header's length is no number");
      length = length * 10 + static_cast<size_t>(c - '0');
    }
    rest_.remove_prefix(newline + 1);
    if (rest_.size() < length) damaged(where_, "it is truncated");
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return parse_json(text, where_);
  }

  Weights interpret(const Json& header) {
    if (header.at("schema_version").get<int>() != 4) damaged(where_, "unknown schema_version");
    const size_t count = header.at("float_count").get<size_t>();
    if (count > rest_.size() / sizeof(float) || rest_.size() != count * sizeof(float))
      damaged(where_, fmt::format("expected {} parameters, found {} bytes", count, rest_.size()));
    if (checksum(rest_) != header.at("checksum").get<uint64_t>())
      damaged(where_, "the checksum of the parameters differs");
    Weights weights;
    weights.provenance = header.at("provenance").dump();
    for (size_t i = 0; i < kNetCount; ++i) {
      const NetKind kind = static_cast<NetKind>(i);
      weights.nets[i] = read_net(header.at("nets").at(std::string(net_name(kind))), kind);
    }
    if (!rest_.empty()) damaged(where_, "there are more parameters than the networks need");
    weights.vector_pj_per_flop = header.at("vector_pj_per_flop").get<double>();
    if (!(weights.vector_pj_per_flop >= 0)) damaged(where_, "an energy is below 0");
    for (const Json& tree : header.at("tiles")) weights.tiles.push_back(read_tree(tree));
    return weights;
  }

  Net read_net(const Json& json, NetKind kind) {
    Net net;
    net.mean = float_list(json.at("mean"));
    net.scale = float_list(json.at("scale"));
    net.minimum = float_list(json.at("minimum"));
    net.maximum = float_list(json.at("maximum"));
    net.interval = read_interval(json.at("interval"));
    const auto overhead = json.at("call_overhead_s").get<std::array<double, 3>>();
    net.call_overhead = {overhead[0], overhead[1], overhead[2]};
    // A network that there was nothing to learn from.
    if (json.at("members").empty() && json.at("corrections").empty() && net.mean.empty() &&
        net.scale.empty() && net.minimum.empty() && net.maximum.empty())
      return net;
    const size_t width = feature_names(kind).size();
    for (const std::vector<float>* list : {&net.mean, &net.scale, &net.minimum, &net.maximum}) {
      if (list->size() != width)
        damaged(where_, fmt::format("network '{}' has {} features, this version expects {}",
                                    net_name(kind), list->size(), width));
    }
    for (float scale : net.scale) {
      if (!(scale > 0)) damaged(where_, "a feature's scale is not above 0");
    }
    net.members = read_members(json.at("members"), shared_feature_count(kind));
    for (const Json& item : json.at("corrections"))
      net.corrections.push_back(read_correction(item, width));
    for (const Correction& correction : net.corrections) {
      if (correction.kriging.size() != net.corrections.size())
        damaged(where_, "a correction does not fit the others");
    }
    return net;
  }

  std::vector<Mlp> read_members(const Json& json, size_t inputs) {
    std::vector<Mlp> members;
    for (const Json& widths : json) members.push_back(read_mlp(widths, inputs));
    if (members.empty()) damaged(where_, "a network is missing");
    return members;
  }

  Correction read_correction(const Json& json, size_t width) {
    Correction correction;
    correction.source = json.at("source").get<std::string>();
    correction.signature = json.at("signature").get<Signature>();
    correction.kriging = float_list(json.at("kriging"));
    if (!json.at("members").empty()) correction.members = read_members(json.at("members"), width);
    for (const Json& item : json.at("forests"))
      correction.forests.push_back(read_forest(item, width));
    for (const Json& item : json.at("measured"))
      correction.measured.push_back(read_combination(item));
    if (correction.members.empty() == correction.forests.empty())
      damaged(where_, "a correction is neither networks nor forests");
    correction.interval = read_interval(json.at("interval"));
    correction.call_overhead_s = json.at("call_overhead_s").get<double>();
    return correction;
  }

  Combination read_combination(const Json& json) const {
    const std::optional<Software> software = find_software(json.at(0).get<std::string>());
    const std::optional<DType> dtype = find_dtype(json.at(1).get<std::string>());
    const std::optional<DType> kv_dtype = find_dtype(json.at(2).get<std::string>());
    const std::string scheme = json.at(3).get<std::string>();
    const bool none = scheme == scheme_info(Scheme::kNone).name;
    const std::optional<Scheme> found = none ? Scheme::kNone : find_scheme(scheme);
    if (!software || !dtype || !kv_dtype || !found)
      damaged(where_, "a measured combination is unknown");
    return {*software, *dtype, *kv_dtype, *found};
  }

  SoftwareForest read_forest(const Json& json, size_t width) {
    const std::optional<Software> software = find_software(json.at("software").get<std::string>());
    if (!software) damaged(where_, "a forest is of unknown software");
    const size_t count = json.at("trees").get<size_t>();
    if (count < 1 || count > rest_.size() / kTreeBytes) damaged(where_, "it is truncated");
    SoftwareForest result{*software, {}};
    result.forest.trees.resize(count);
    std::memcpy(result.forest.trees.data(), rest_.data(), count * kTreeBytes);
    rest_.remove_prefix(count * kTreeBytes);
    for (const Forest::Tree& tree : result.forest.trees) {
      bool valid = true;
      for (uint8_t f : tree.feature) valid = valid && f < width;
      if (!valid) damaged(where_, "a forest has an impossible tree");
    }
    return result;
  }

  IntervalLaw read_interval(const Json& json) const {
    IntervalLaw interval;
    interval.low_log = json.at("low_log").get<std::array<double, 3>>();
    interval.high_log = json.at("high_log").get<std::array<double, 3>>();
    interval.common_share = json.at("common_share").get<double>();
    if (!interval.valid()) damaged(where_, "an interval does not hold its forecast");
    return interval;
  }

  Mlp read_mlp(const Json& widths, size_t inputs) {
    Mlp mlp;
    mlp.widths = widths.get<std::vector<int>>();
    bool valid = mlp.widths.size() >= 2 && mlp.widths.size() <= 16 &&
                 mlp.widths.front() == static_cast<int>(inputs) && mlp.widths.back() == 1;
    for (int w : mlp.widths) valid = valid && w >= 1 && w <= 4096;
    if (!valid) damaged(where_, "a network has impossible layers");
    const size_t bytes = mlp_parameter_count(mlp.widths) * sizeof(float);
    if (rest_.size() < bytes) damaged(where_, "it is truncated");
    mlp.parameters.resize(bytes / sizeof(float));
    std::memcpy(mlp.parameters.data(), rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    for (float p : mlp.parameters) {
      if (!std::isfinite(p)) damaged(where_, "a parameter is not a number");
    }
    return mlp;
  }

  TileTree read_tree(const Json& json) {
    TileTree tree;
    tree.library = json.at("library").get<std::string>();
    for (const Json& item : json.at("nodes")) {
      TileTree::Node node{item.at(0).get<int32_t>(),
                          item.at(1).get<float>(),
                          item.at(2).get<int32_t>(),
                          item.at(3).get<int32_t>(),
                          {item.at(4).get<int32_t>(), item.at(5).get<int32_t>()}};
      const auto index = static_cast<int32_t>(tree.nodes.size());
      const auto size = static_cast<int32_t>(json.at("nodes").size());
      // Children come after their parent, so a walk always ends.
      const bool inner = node.feature >= 0 && node.feature < static_cast<int32_t>(kTileFeatures) &&
                         node.left > index && node.left < size && node.right > index &&
                         node.right < size;
      const bool leaf = node.feature == -1 && node.tile.m >= 1 && node.tile.m <= 4096 &&
                        node.tile.n >= 1 && node.tile.n <= 4096;
      if (!inner && !leaf) damaged(where_, "a tile tree is broken");
      tree.nodes.push_back(node);
    }
    if (tree.nodes.empty()) damaged(where_, "a tile tree is empty");
    return tree;
  }

  std::string_view rest_;
  const std::string& where_;
};

}  // namespace

Combination combination_of(const Kernel& kernel, const Conditions& conditions) {
  const auto wide = [](DType dtype) { return dtype == DType::kFp16 ? DType::kBf16 : dtype; };
  const DType dtype = wide(kernel.dtype);
  const Attention* attention = kernel.as<Attention>();
  return {conditions.software, dtype, attention != nullptr ? wide(attention->kv_dtype) : dtype,
          kernel.scheme};
}

bool Correction::covers(const Combination& combination) const {
  return forests.empty() ||
         std::find(measured.begin(), measured.end(), combination) != measured.end();
}

const Forest* Correction::forest_of(Software software) const {
  // PyTorch, vLLM and SGLang share cuBLAS, FlashAttention and Triton; TensorRT-LLM has its own.
  static const std::array<std::vector<Software>, 4> kNearest = {{
      {Software::kPyTorch, Software::kVllm, Software::kSglang, Software::kTensorRtLlm},
      {Software::kVllm, Software::kSglang, Software::kPyTorch, Software::kTensorRtLlm},
      {Software::kSglang, Software::kVllm, Software::kPyTorch, Software::kTensorRtLlm},
      {Software::kTensorRtLlm, Software::kVllm, Software::kSglang, Software::kPyTorch},
  }};
  for (const Software near : kNearest[static_cast<size_t>(software)]) {
    for (const SoftwareForest& f : forests) {
      if (f.software == near) return &f.forest;
    }
  }
  return nullptr;
}

const TileTree* Weights::tiles_of(std::string_view vendor) const {
  for (const TileTree& tree : tiles) {
    if (tree.library == vendor) return &tree;
  }
  return tiles.empty() ? nullptr : &tiles.front();
}

Weights parse_weights(std::string_view content, const std::string& where) {
  return Reader(content, where).read();
}

std::string serialize_weights(const Weights& weights) {
  std::string payload;
  Json nets = Json::object();
  for (size_t i = 0; i < kNetCount; ++i) {
    const Net& net = weights.nets[i];
    nets[std::string(net_name(static_cast<NetKind>(i)))] = net_header(net);
    const auto append = [&](const Mlp& mlp) {
      payload.append(reinterpret_cast<const char*>(mlp.parameters.data()),
                     mlp.parameters.size() * sizeof(float));
    };
    for (const Mlp& mlp : net.members) append(mlp);
    for (const Correction& correction : net.corrections) {
      for (const Mlp& mlp : correction.members) append(mlp);
      for (const SoftwareForest& f : correction.forests)
        payload.append(reinterpret_cast<const char*>(f.forest.trees.data()),
                       f.forest.trees.size() * kTreeBytes);
    }
  }
  Json tiles = Json::array();
  for (const TileTree& tree : weights.tiles) tiles.push_back(tree_header(tree));
  const Json provenance =
      weights.provenance.empty() ? Json::object() : Json::parse(weights.provenance);
  const std::string header = Json{
      {"schema_version", 4},
      {"nets", nets},
      {"vector_pj_per_flop", weights.vector_pj_per_flop},
      {"tiles", tiles},
      {"provenance", provenance},
      {"float_count", payload.size() / sizeof(float)},
      {"checksum",
       checksum(payload)}}.dump();
  return fmt::format("{}{}\n{}", kMagic, header.size(), header) + payload;
}

Weights load_weights(const std::filesystem::path& folder) {
  if (!folder.empty()) {
    const std::filesystem::path path = folder / kWeightsFile;
    return parse_weights(read_file(path), path.string());
  }
  const std::vector<EmbeddedFile> files = embedded_files("weights/" + std::string(kWeightsFile));
  if (files.empty())
    throw Error(ErrorKind::kNotFound, "this build holds no weights; give a folder with --weights");
  return parse_weights(files.front().content, "embedded weights");
}

}  // namespace tilecast
