#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "measurements/layouts.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Operators of the neusight data set: its name, Tilecast's name, and the columns of the sizes.
struct NeusightOp {
  std::string_view name;
  std::string_view op;
};
constexpr NeusightOp kNeusightOps[] = {
    {"bmm", "matmul"},      {"linear", "linear"},   {"softmax", "softmax"}, {"ln", "layer_norm"},
    {"add", "add"},         {"mul", "mul"},         {"div", "div"},         {"pow", "pow"},
    {"addu", "add_scalar"}, {"mulu", "mul_scalar"}, {"divu", "div_scalar"}, {"powu", "pow_scalar"},
    {"relu", "relu"},       {"gelu", "gelu"},       {"tanh", "tanh"},       {"conv", "conv2d"},
};

/// The algorithm of a convolution, by the kernels that cuDNN launched for it.
std::string algorithm_of(const std::string& kernels) {
  struct Mark {
    std::string_view in_name, algorithm;
  };
  constexpr Mark kMarks[] = {{"winograd_nonfused", "Winograd in steps"},
                             {"winograd", "Winograd"},
                             {"fft", "FFT"},
                             {"gcgemm", "FFT"},
                             {"explicit_convolve", "explicit product"},
                             {"conv", "implicit product"},
                             {"scudnn", "implicit product"}};
  for (const Mark& mark : kMarks) {
    if (kernels.find(mark.in_name) != std::string::npos) return std::string(mark.algorithm);
  }
  return "";
}

void read_neusight(const CsvTable& table, Collector& collector) {
  const size_t name = table.require_column("OPName");
  const size_t latency = table.require_column("Latency");
  const size_t device = table.require_column("Device");
  const size_t b = table.require_column("B");
  const std::optional<size_t> kernel_name = table.column("Kernel Name");
  const std::optional<size_t> kernels = table.column("Kernels");
  const auto m = table.column("M"), n = table.column("N"), k = table.column("K"),
             h = table.column("H");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const std::string& found = table.rows[r][name];
    const auto* op = std::find_if(std::begin(kNeusightOps), std::end(kNeusightOps),
                                  [&](const NeusightOp& o) { return o.name == found; });
    if (op == std::end(kNeusightOps)) {
      collector.skip(table.where, fmt::format("operator '{}' is not forecast", found));
      continue;
    }
    SizeList sizes;
    RowFacts facts{.gpu = table.rows[r][device],
                   .seconds = table.number(r, latency) * 1e-3,
                   .protocol = Protocol::kSingleCall};
    if (found == "bmm" || found == "linear") {
      if (!m || !n || !k)
        throw Error(ErrorKind::kInput, table.where + ": columns M, N, K are missing");
      // In these files, N is the reduction and K the number of output columns.
      sizes = {{"batch", table.integer(r, b)},
               {"m", table.integer(r, *m)},
               {"n", table.integer(r, *k)},
               {"k", table.integer(r, *n)}};
      if (kernel_name) facts.tile = tile_in_name(table.rows[r][*kernel_name]);
    } else if (found == "conv") {
      const auto at = [&](std::string_view column) {
        return table.integer(r, table.require_column(column));
      };
      const int64_t window = at("Kernel_Szie");  // misspelled in the data set
      if (at("Padding") != window / 2) {
        collector.skip(table.where, "a padding other than half the kernel is not forecast");
        continue;
      }
      sizes = {{"batch", at("B")},           {"out_channels", at("Output_Channel")},
               {"height", at("Input_Size")}, {"in_channels", at("Input_Channel")},
               {"window_height", window},    {"stride", at("Stride")}};
      facts.protocol = Protocol::kSlowingCall;
      if (kernels) facts.algorithm = algorithm_of(table.rows[r][*kernels]);
    } else {
      if (!h) throw Error(ErrorKind::kInput, table.where + ": column H is missing");
      sizes = {{"rows", table.integer(r, b)}, {"columns", table.integer(r, *h)}};
      // One kernel again and again with the same operands.
      facts.caches = Caches::kWarm;
    }
    collector.add_kernel({table, r}, op->op, DType::kFp32, sizes, std::move(facts));
  }
}

}  // namespace

extern const LayoutDef kNeusightLayout = {
    "neusight", {"OPName", "Latency", "Device"}, read_neusight};

namespace {

/// Whether the traced graph next to the label ends in a classifier. The configs name a
/// language-model head, a tenth of the work, which the inference runs of BERT did not have.
bool traced_a_classifier(const std::filesystem::path& label, const std::smatch& name) {
  const std::filesystem::path trace =
      label.parent_path() /
      fmt::format("{}-{}-{}-{}.csv", name.str(1), name.str(2), name.str(3), name.str(4));
  std::error_code code;
  if (!std::filesystem::exists(trace, code)) return false;
  return read_file(trace).find("\ncall_module,classifier,") != std::string::npos;
}

/// The config with a classifier as BERT's head.
std::string with_classifier(const std::string& config) {
  Json json = parse_json(read_file(config), config);
  if (!json.is_object() || json.value("model_type", "") != "bert") return "";
  json["architectures"] = {"BertForSequenceClassification"};
  return json.dump();
}

}  // namespace

/// label/<GPU>/<model>-<inf|train>-<seq>-<batch>[-option].json
void read_neusight_label(const std::filesystem::path& path, Collector& collector) {
  static const std::regex kName(R"(^(.+)-(inf|train)-(\d{1,9})-(\d{1,9})(?:-(.+))?$)");
  const std::string stem = path.stem().string();
  std::smatch match;
  if (!std::regex_match(stem, match, kName)) return;  // configs and other files
  const Json json = parse_json(read_file(path), printable(path.string()));
  const JsonObject object(json, printable(path.string()));
  if (!object.has("e2e_latency")) return collector.skip(path.string(), "'e2e_latency' is missing");
  ModelMeasurement measurement;
  measurement.gpu = path.parent_path().filename().string();
  measurement.model = match[1];
  measurement.mode = match[2] == "inf" ? "inference" : "training";
  measurement.seq = std::stoll(match[3]);
  measurement.batch = std::stoll(match[4]);
  measurement.option = match[5];
  measurement.measured_s = object.number("e2e_latency") * 1e-3;
  measurement.source = path.string();
  // The configs lie in a sibling folder: …/label/<GPU>/x.json,
  // …/data/DLmodel_configs/<model>.json
  const std::filesystem::path config = path.parent_path().parent_path().parent_path() / "data" /
                                       "DLmodel_configs" / (measurement.model + ".json");
  std::error_code code;
  if (std::filesystem::exists(config, code)) measurement.config = config.string();
  if (!measurement.config.empty() && traced_a_classifier(path, match))
    measurement.config_text = with_classifier(measurement.config);
  collector.add_model(std::move(measurement));
}

}  // namespace tilecast
