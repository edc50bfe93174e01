#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/weights_container.h"
#include "predict/kernel_kinds.h"
#include "predict/weights.h"

namespace tilecast {
namespace {

// Trees lie in the file as they lie in memory.
static_assert(sizeof(Forest::Tree) == 3 * (Forest::kInner + 1) + 2 * Forest::kLeaves);
static_assert(sizeof(Forest::Tree) % sizeof(float) == 0);

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
    const Json& models = header.at("nets");
    for (size_t i = 0; i < kKernelKindCount; ++i) {
      // A kind that there was nothing to learn from is not in the file.
      const auto kind = static_cast<KernelKind>(i);
      const auto found = models.find(std::string(kernel_kind_name(kind)));
      if (found != models.end()) weights.models[i] = read_kind(*found, kind);
    }
    if (!rest_.empty()) unusable_weights(where_, "there are more trees than the models have");
    return weights;
  }

 private:
  KindModel read_kind(const Json& json, KernelKind kind) {
    KindModel model;
    model.mean = float_list(json.at("mean"));
    model.scale = float_list(json.at("scale"));
    model.minimum = float_list(json.at("minimum"));
    model.maximum = float_list(json.at("maximum"));
    for (const auto& [vendor, interval] : json.at("vendor_intervals").items())
      model.vendor_intervals[vendor] = read_interval(interval);
    model.interval = read_interval(json.at("interval"));
    model.class_widths = read_widths(json, "class_widths");
    if (json.contains("vendor_widths")) {
      for (const auto& [vendor, widths] : json.at("vendor_widths").items())
        model.vendor_widths[vendor] = read_widths(widths);
    }
    model.sibling_widths = read_widths(json, "sibling_widths");
    const auto overhead = json.at("call_overhead_s").get<std::array<double, 3>>();
    model.call_overhead = {overhead[0], overhead[1], overhead[2]};
    model.trained_on = read_trained_on(json.at("trained_on"));
    const auto features = json.at("features").get<std::vector<std::string>>();
    if (!std::ranges::equal(features, feature_names(kind)))
      unusable_weights(where_, fmt::format("model '{}' has other features than this version",
                                           kernel_kind_name(kind)));
    const size_t width = feature_names(kind).size();
    for (const std::vector<float>* list :
         {&model.mean, &model.scale, &model.minimum, &model.maximum}) {
      if (list->size() != width)
        unusable_weights(where_,
                         fmt::format("model '{}' has {} features, but one of its lists has {}",
                                     kernel_kind_name(kind), width, list->size()));
    }
    check_range(model.minimum, model.maximum);
    for (float scale : model.scale) {
      if (!(scale > 0)) unusable_weights(where_, "a feature's scale is not above 0");
    }
    for (const Json& item : json.at("classes")) model.classes.push_back(read_class(item, width));
    return model;
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

  template <typename Choice>
  Choice read_choice(const Json& json) const {
    const auto words = choice_words(Choice{});
    const auto found = std::find(words.begin(), words.end(), json.get<std::string>());
    if (found == words.end()) unusable_weights(where_, "a word of a class is unknown");
    return static_cast<Choice>(found - words.begin());
  }

  ClassResidual read_class(const Json& json, size_t width) {
    ClassResidual residual{
        .of = {read_choice<Architecture>(json.at("architecture")), json.at("hbm").get<bool>()},
        .matrix_instruction = read_choice<MatrixInstruction>(json.at("matrix_instruction"))};
    for (const Json& item : json.at("forests"))
      residual.forests.push_back(read_forest(item, width));
    for (const Json& item : json.at("devices")) residual.devices.push_back(read_device(item));
    residual.interval = read_interval(json.at("interval"));
    if (residual.devices.empty()) unusable_weights(where_, "a class was measured on no device");
    return residual;
  }

  MeasuredDevice read_device(const Json& json) const {
    MeasuredDevice device;
    device.source = json.at("source").get<std::string>();
    device.signature = json.at("signature").get<Signature>();
    for (const Json& item : json.at("measured")) device.measured.push_back(read_combination(item));
    device.interval = read_interval(json.at("interval"));
    device.widths = read_widths(json, "widths");
    for (const auto& [op, seconds] : json.at("call_overhead_s").items())
      device.call_overhead_s[op] = seconds.get<double>();
    return device;
  }

  Combination read_combination(const Json& json) const {
    const std::optional<Combination> combination =
        combination_of_words(json.at(0).get<std::string>(), json.at(1).get<std::string>(),
                             json.at(2).get<std::string>(), json.at(3).get<std::string>());
    if (!combination) unusable_weights(where_, "a measured combination is unknown");
    return *combination;
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
    SoftwareForest learned{.software = *software, .forest = take_forest(count, width)};
    learned.minimum = take_floats(width);
    learned.maximum = take_floats(width);
    check_range(learned.minimum, learned.maximum);
    return learned;
  }

  void check_range(const std::vector<float>& minimum, const std::vector<float>& maximum) const {
    for (size_t j = 0; j < minimum.size(); ++j) {
      const bool ordered =
          std::isfinite(minimum[j]) && std::isfinite(maximum[j]) && minimum[j] <= maximum[j];
      if (!ordered) unusable_weights(where_, "a range of a feature is empty or not finite");
    }
  }

  std::vector<float> take_floats(size_t count) {
    const size_t bytes = count * sizeof(float);
    if (rest_.size() < bytes) unusable_weights(where_, "it is truncated");
    std::vector<float> values(count);
    std::memcpy(values.data(), rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    for (const float value : values) {
      if (!std::isfinite(value)) unusable_weights(where_, "a range is not a number");
    }
    return values;
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

  /// Weights of before have none.
  PrecisionWidths read_widths(const Json& json, const char* key) const {
    return json.contains(key) ? read_widths(json.at(key)) : PrecisionWidths{};
  }

  PrecisionWidths read_widths(const Json& json) const {
    constexpr double kMost = 100;
    PrecisionWidths widths;
    for (const Json& item : json) {
      const std::optional<Combination> of =
          combination_of_words("pytorch", item.at(0).get<std::string>(),
                               item.at(1).get<std::string>(), item.at(2).get<std::string>());
      const auto factor = item.at(3).get<double>();
      if (!of || !(factor > 0 && factor < kMost))
        unusable_weights(where_, "a width of an interval is impossible");
      widths.push_back({of->dtype, of->kv_dtype, of->scheme, factor});
    }
    return widths;
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
