#include "predict/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilecast/error.h"

namespace tilecast {
namespace {

/// 2: it adds to the logarithm of the time; before, to a logit of utilization.
constexpr int kSchemaVersion = 2;

[[noreturn]] void broken(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: not a usable calibration: {}; make one with 'tilecast calibrate'",
                          where, what));
}

CalibrationNet read_net(const Json& json, NetKind kind, const std::string& where) {
  CalibrationNet net;
  constexpr int64_t kMostRows = 1'000'000;
  const std::optional<int64_t> rows = whole_number(json.at("rows"), 0, kMostRows);
  if (!rows) broken(where, fmt::format("'{}': rows is no count of rows", net_name(kind)));
  net.rows = static_cast<size_t>(*rows);
  if (json.at("features").get<std::vector<std::string>>() !=
      std::vector<std::string>(feature_names(kind).begin(), feature_names(kind).end()))
    broken(where, fmt::format("'{}' has other features than this version", net_name(kind)));
  net.offset = json.at("offset").get<double>();
  net.length = json.at("length").get<double>();
  net.points = json.at("points").get<std::vector<float>>();
  net.weights = json.at("weights").get<std::vector<float>>();
  net.low_ratio = json.at("low_ratio").get<double>();
  net.high_ratio = json.at("high_ratio").get<double>();
  net.error_before_percent = json.at("error_before_percent").get<double>();
  net.error_after_percent = json.at("error_after_percent").get<double>();
  if (net.weights.size() != net.rows || net.points.size() != net.rows * feature_names(kind).size())
    broken(where, fmt::format("'{}' has {} rows but {} weights and {} numbers of points",
                              net_name(kind), net.rows, net.weights.size(), net.points.size()));
  const auto finite = [](float x) { return std::isfinite(x); };
  if (!std::isfinite(net.offset) || !std::all_of(net.points.begin(), net.points.end(), finite) ||
      !std::all_of(net.weights.begin(), net.weights.end(), finite))
    broken(where, fmt::format("'{}' holds a number that is not finite", net_name(kind)));
  if (!(net.length > 0)) broken(where, "a length is not above 0");
  if (!(net.low_ratio > 0 && net.low_ratio <= 1 && net.high_ratio >= 1 && net.high_ratio < 1e6))
    broken(where, "an interval does not hold its forecast");
  return net;
}

}  // namespace

double CalibrationNet::at(const float* x, size_t width) const {
  double sum = offset;
  const float scale = static_cast<float>(-0.5 / (length * length));
  for (size_t i = 0; i < rows; ++i) {
    const float* point = &points[i * width];
    float distance = 0;
    for (size_t j = 0; j < width; ++j) distance += (x[j] - point[j]) * (x[j] - point[j]);
    sum += weights[i] * std::exp(scale * distance);
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
    for (size_t n = 0; n < kNetCount; ++n) {
      const auto kind = static_cast<NetKind>(n);
      const std::string name(net_name(kind));
      if (json.at("nets").contains(name))
        calibration.nets[n] = read_net(json.at("nets").at(name), kind, where);
    }
    return calibration;
  } catch (const Json::exception& error) {
    broken(where, error.what());
  }
}

std::string serialize_calibration(const Calibration& calibration) {
  Json nets = Json::object();
  for (size_t n = 0; n < kNetCount; ++n) {
    const CalibrationNet& net = calibration.nets[n];
    if (net.rows == 0) continue;
    nets[std::string(net_name(static_cast<NetKind>(n)))] = {
        {"rows", net.rows},
        {"features", feature_names(static_cast<NetKind>(n))},
        {"offset", net.offset},
        {"length", net.length},
        {"points", net.points},
        {"weights", net.weights},
        {"low_ratio", net.low_ratio},
        {"high_ratio", net.high_ratio},
        {"error_before_percent", net.error_before_percent},
        {"error_after_percent", net.error_after_percent}};
  }
  return Json{{"schema_version", kSchemaVersion},
              {"gpu", calibration.gpu},
              {"signature", calibration.signature},
              {"nets", nets}}
             .dump() +
         "\n";
}

}  // namespace tilecast
