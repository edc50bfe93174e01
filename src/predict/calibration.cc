#include "predict/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilecast/error.h"

namespace tilecast {
namespace {

/// 3: it moves the law's constants, and offsets count for software and precision.
constexpr int kSchemaVersion = 3;

[[noreturn]] void broken(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: not a usable calibration: {}; make one with 'tilecast calibrate'",
                          where, what));
}

LawScales read_law(const Json& json, const std::string& where) {
  constexpr double kLargest = 14;  // a factor of a million
  LawScales law;
  for (size_t c = 0; c < kLawConstantCount; ++c) {
    law.logs[c] = json.at(std::string(kLawConstantNames[c])).get<double>();
    if (!(std::abs(law.logs[c]) < kLargest)) broken(where, "a factor on a law is out of range");
  }
  return law;
}

CalibrationGroup read_group(const Json& json, const std::string& where) {
  const std::optional<Combination> combination = combination_of_words(
      json.at("software").get<std::string>(), json.at("dtype").get<std::string>(),
      json.at("kv_dtype").get<std::string>(), json.at("scheme").get<std::string>());
  if (!combination) broken(where, "a group's software or precision is unknown");
  const CalibrationGroup group{*combination, json.at("offset").get<double>()};
  if (!std::isfinite(group.offset)) broken(where, "a group's offset is not finite");
  return group;
}

KindCalibration read_kind(const Json& json, KernelKind kind, const std::string& where) {
  KindCalibration model;
  constexpr int64_t kMostRows = 1'000'000;
  const std::optional<int64_t> rows = whole_number(json.at("rows"), 0, kMostRows);
  if (!rows) broken(where, fmt::format("'{}': rows is no count of rows", kernel_kind_name(kind)));
  model.rows = static_cast<size_t>(*rows);
  if (json.at("features").get<std::vector<std::string>>() !=
      std::vector<std::string>(feature_names(kind).begin(), feature_names(kind).end()))
    broken(where, fmt::format("'{}' has other features than this version", kernel_kind_name(kind)));
  model.law = read_law(json.at("law"), where);
  model.offset = json.at("offset").get<double>();
  for (const Json& item : json.at("groups")) model.groups.push_back(read_group(item, where));
  model.length = json.at("length").get<double>();
  model.points = json.at("points").get<std::vector<float>>();
  model.weights = json.at("weights").get<std::vector<float>>();
  model.group_of_row = json.at("group_of_row").get<std::vector<size_t>>();
  model.other_group_share = json.at("other_group_share").get<double>();
  model.low_ratio = json.at("low_ratio").get<double>();
  model.high_ratio = json.at("high_ratio").get<double>();
  model.error_before_percent = json.at("error_before_percent").get<double>();
  model.error_after_percent = json.at("error_after_percent").get<double>();
  if (model.weights.size() != model.rows ||
      model.points.size() != model.rows * feature_names(kind).size())
    broken(where, fmt::format("'{}' has {} rows but {} weights and {} numbers of points",
                              kernel_kind_name(kind), model.rows, model.weights.size(),
                              model.points.size()));
  if (model.group_of_row.size() != model.rows ||
      std::any_of(model.group_of_row.begin(), model.group_of_row.end(),
                  [&](size_t group) { return group >= model.groups.size(); }))
    broken(where, fmt::format("'{}' has rows of no group", kernel_kind_name(kind)));
  if (!(model.other_group_share >= 0 && model.other_group_share <= 1))
    broken(where, "a share is not between 0 and 1");
  const auto finite = [](float x) { return std::isfinite(x); };
  if (!std::isfinite(model.offset) ||
      !std::all_of(model.points.begin(), model.points.end(), finite) ||
      !std::all_of(model.weights.begin(), model.weights.end(), finite))
    broken(where, fmt::format("'{}' holds a number that is not finite", kernel_kind_name(kind)));
  if (!(model.length > 0)) broken(where, "a length is not above 0");
  if (!(model.low_ratio > 0 && model.low_ratio <= 1 && model.high_ratio >= 1 &&
        model.high_ratio < 1e6))
    broken(where, "an interval does not hold its forecast");
  return model;
}

}  // namespace

bool KindCalibration::measured(const Combination& combination) const {
  return std::any_of(groups.begin(), groups.end(), [&](const CalibrationGroup& group) {
    return group.combination == combination;
  });
}

double KindCalibration::at(const float* x, size_t width, const Combination& combination) const {
  double sum = offset;
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const CalibrationGroup& group) {
    return group.combination == combination;
  });
  const auto own = static_cast<size_t>(found - groups.begin());
  if (found != groups.end()) sum += found->offset;
  const float scale = static_cast<float>(-0.5 / (length * length));
  for (size_t i = 0; i < rows; ++i) {
    const float* point = &points[i * width];
    float distance = 0;
    for (size_t j = 0; j < width; ++j) distance += (x[j] - point[j]) * (x[j] - point[j]);
    const double share = group_of_row[i] == own ? 1 : other_group_share;
    sum += share * static_cast<double>(weights[i] * std::exp(scale * distance));
  }
  return sum;
}

Calibration parse_calibration(std::string_view content, const std::string& where) {
  const Json json = parse_json(content, where);
  try {
    if (!whole_number(json.at("schema_version"), kSchemaVersion, kSchemaVersion))
      broken(where, fmt::format("it is not of version {} of the format", kSchemaVersion));
    Calibration calibration;
    calibration.gpu = json.at("gpu").get<std::string>();
    calibration.signature = json.at("signature").get<Signature>();
    for (size_t n = 0; n < kKernelKindCount; ++n) {
      const auto kind = static_cast<KernelKind>(n);
      const std::string name(kernel_kind_name(kind));
      if (json.at("nets").contains(name))
        calibration.models[n] = read_kind(json.at("nets").at(name), kind, where);
    }
    return calibration;
  } catch (const Json::exception& error) {
    broken(where, error.what());
  }
}

std::string serialize_calibration(const Calibration& calibration) {
  Json models = Json::object();
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    const KindCalibration& model = calibration.models[n];
    if (model.rows == 0) continue;
    Json law = Json::object(), groups = Json::array();
    for (size_t c = 0; c < kLawConstantCount; ++c)
      law[std::string(kLawConstantNames[c])] = model.law.logs[c];
    for (const CalibrationGroup& group : model.groups) {
      const Combination& of = group.combination;
      groups.push_back({{"software", software_name(of.software)},
                        {"dtype", dtype_name(of.dtype)},
                        {"kv_dtype", dtype_name(of.kv_dtype)},
                        {"scheme", scheme_info(of.scheme).name},
                        {"offset", group.offset}});
    }
    models[std::string(kernel_kind_name(static_cast<KernelKind>(n)))] = {
        {"rows", model.rows},
        {"features", feature_names(static_cast<KernelKind>(n))},
        {"law", law},
        {"offset", model.offset},
        {"groups", groups},
        {"length", model.length},
        {"points", model.points},
        {"weights", model.weights},
        {"group_of_row", model.group_of_row},
        {"other_group_share", model.other_group_share},
        {"low_ratio", model.low_ratio},
        {"high_ratio", model.high_ratio},
        {"error_before_percent", model.error_before_percent},
        {"error_after_percent", model.error_after_percent}};
  }
  return Json{{"schema_version", kSchemaVersion},
              {"gpu", calibration.gpu},
              {"signature", calibration.signature},
              {"nets", models}}
             .dump() +
         "\n";
}

}  // namespace tilecast
