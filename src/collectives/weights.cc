#include "collectives/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/embedded.h"
#include "base/json.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr double kPrecision = 1e-3;  ///< of stored residuals: 0.1 %

LinkCurves read_curves(const JsonObject& entry) {
  entry.reject_unknown({"kind", "generation", "curves"});
  LinkCurves link;
  link.kind = entry.string("kind");
  link.generation = entry.integer({"generation"}, 0, 1000);
  const JsonObject curves = entry.object("curves");
  for (size_t c = 0; c < kCurveCount; ++c) {
    const std::string name(choice_words(Curve{})[c]);
    if (!curves.has(name)) continue;
    link.known[c] = true;
    const Json& rows = curves.json()[name];
    if (!rows.is_array() || rows.size() != kWidthCount)
      curves.fail(name, fmt::format("expected a list of {} lists", kWidthCount));
    for (size_t w = 0; w < kWidthCount; ++w) {
      if (!rows[w].is_array() || rows[w].size() != kSizeCount)
        curves.fail(name, fmt::format("expected lists of {} numbers", kSizeCount));
      for (size_t s = 0; s < kSizeCount; ++s) {
        const std::optional<int64_t> value = whole_number(rows[w][s], -10000, 10000);
        if (!value) curves.fail(name, "expected whole numbers from -10000 to 10000");
        link.values[c][w][s] = kPrecision * static_cast<double>(*value);
      }
    }
  }
  return link;
}

std::array<double, kCurveCount> read_spread(const JsonObject& file, const std::string& key) {
  std::array<double, kCurveCount> spread{};
  const JsonObject entry = file.object(key);
  for (size_t c = 0; c < kCurveCount; ++c) {
    spread[c] = entry.number(std::string(choice_words(Curve{})[c]));
    if (!std::isfinite(spread[c]) || spread[c] < 0)
      entry.fail(std::string(choice_words(Curve{})[c]), "expected a number of at least 0");
  }
  return spread;
}

Json spread_json(const std::array<double, kCurveCount>& spread) {
  Json json = Json::object();
  for (size_t c = 0; c < kCurveCount; ++c)
    json[std::string(choice_words(Curve{})[c])] = std::round(spread[c] * 1e3) / 1e3;
  return json;
}

}  // namespace

Between Between::of(double value, int first, int count) {
  const double place = std::clamp(value - first, 0.0, static_cast<double>(count - 1));
  const int below = std::min(static_cast<int>(place), count - 2);
  return {below, place - below};
}

CurveMix mix_for(const CollectiveWeights& weights, Curve curve, std::string_view kind,
                 std::optional<int64_t> generation) {
  CurveMix mix;
  mix.parts[0] = mix.parts[1] = {&weights.links.front(), 0.5};
  const LinkCurves* below = nullptr;
  const LinkCurves* above = nullptr;
  if (!generation) return mix;
  for (const LinkCurves& link : weights.links) {
    if (link.kind != kind || !link.known[static_cast<size_t>(curve)]) continue;
    if (link.generation <= *generation) below = &link;  // in order of generation
    if (link.generation >= *generation && above == nullptr) above = &link;
  }
  if (below == nullptr && above == nullptr) return mix;
  if (below == nullptr) below = above;
  if (above == nullptr) above = below;
  mix.known = below->generation == *generation;
  const auto span = static_cast<double>(above->generation - below->generation);
  const double share = span > 0 ? static_cast<double>(*generation - below->generation) / span : 0;
  mix.parts = {{{below, 1 - share}, {above, share}}};
  return mix;
}

double residual_at(const CurveMix& mix, Curve curve, const Between& width, int size) {
  double sum = 0;
  for (const CurveMix::Part& part : mix.parts) {
    if (part.share == 0) continue;
    const CurveTable& table = part.curves->values[static_cast<size_t>(curve)];
    const auto at = static_cast<size_t>(width.first), s = static_cast<size_t>(size);
    sum += part.share * ((1 - width.share) * table[at][s] + width.share * table[at + 1][s]);
  }
  return sum;
}

CollectiveWeights parse_collective_weights(std::string_view json_text, const std::string& where) {
  const Json json = parse_json(json_text, where);
  const JsonObject file(json, where);
  file.reject_unknown(
      {"schema_version", "command", "unit", "links", "known_spread", "unknown_spread"});
  file.integer({"schema_version"}, 1, 1);
  CollectiveWeights weights;
  weights.command = file.string("command");
  if (!json["links"].is_array() || json["links"].empty())
    file.fail("links", "expected a list with at least the curves of all links");
  for (const Json& item : json["links"])
    weights.links.push_back(read_curves(JsonObject(item, where + ": links")));
  weights.known_spread = read_spread(file, "known_spread");
  weights.unknown_spread = read_spread(file, "unknown_spread");
  return weights;
}

std::string collective_weights_json(const CollectiveWeights& weights) {
  Json links = Json::array();
  for (const LinkCurves& link : weights.links) {
    Json curves = Json::object();
    for (size_t c = 0; c < kCurveCount; ++c) {
      if (!link.known[c]) continue;
      Json rows = Json::array();
      for (const auto& row : link.values[c]) {
        Json values = Json::array();
        for (const double value : row)
          values.push_back(static_cast<int64_t>(std::lround(value / kPrecision)));
        rows.push_back(values);
      }
      curves[std::string(choice_words(Curve{})[c])] = rows;
    }
    links.push_back({{"kind", link.kind}, {"generation", link.generation}, {"curves", curves}});
  }
  const Json file = {{"schema_version", 1},
                     {"command", weights.command},
                     {"unit", "1000 log(measured / law), by width and size: weights.h"},
                     {"links", links},
                     {"known_spread", spread_json(weights.known_spread)},
                     {"unknown_spread", spread_json(weights.unknown_spread)}};
  return file.dump() + "\n";
}

const CollectiveWeights& bundled_collective_weights() {
  static const CollectiveWeights weights = [] {
    const std::vector<EmbeddedFile> files = embedded_files("weights/collectives.json");
    if (!files.empty())
      return parse_collective_weights(files.front().content, std::string(files.front().path));
    CollectiveWeights none;  // the law alone
    none.links.resize(1);
    none.known_spread.fill(0.3);  // guess
    none.unknown_spread.fill(0.5);
    return none;
  }();
  return weights;
}

}  // namespace tilecast
