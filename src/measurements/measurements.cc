#include "measurements/measurements.h"

#include <fmt/format.h>
#include <lzma.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <regex>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "ops/op_def.h"
#include "ops/shapes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace fs = std::filesystem;
namespace {

/// Refuses to unpack more than this: no public data set is near it.
constexpr uint64_t kLargestFile = uint64_t{1} << 31;

std::string unpack_xz(const std::string& packed, const std::string& where) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kLargestFile, 0) != LZMA_OK)
    throw Error(ErrorKind::kInternal, "cannot start the xz decoder");
  std::string out;
  std::vector<uint8_t> buffer(1 << 20);
  stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK) {
    stream.next_out = buffer.data();
    stream.avail_out = buffer.size();
    status = lzma_code(&stream, LZMA_FINISH);
    out.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
    if (out.size() > kLargestFile) break;
  }
  lzma_end(&stream);
  if (status != LZMA_STREAM_END) throw Error(ErrorKind::kInput, where + ": not a whole .xz file");
  return out;
}

std::string read_text(const fs::path& path) {
  std::string content = read_file(path);
  return path.extension() == ".xz" ? unpack_xz(content, path.string()) : content;
}

/// The neusight data set's operators: its name, ours, and how its columns map.
struct NeusightOp {
  std::string_view name;
  std::string_view op;
};
constexpr NeusightOp kNeusightOps[] = {
    {"bmm", "matmul"},      {"linear", "linear"},   {"softmax", "softmax"}, {"ln", "layer_norm"},
    {"add", "add"},         {"mul", "mul"},         {"div", "div"},         {"pow", "pow"},
    {"addu", "add_scalar"}, {"mulu", "mul_scalar"}, {"divu", "div_scalar"}, {"powu", "pow_scalar"},
    {"relu", "relu"},       {"gelu", "gelu"},       {"tanh", "tanh"},
};

class Collector {
 public:
  explicit Collector(MeasurementSet& set) : set_(set) {}

  void file(const fs::path& path) {
    const std::string name = path.filename().string();
    if (name.ends_with(".csv") || name.ends_with(".csv.xz")) return csv(path);
    if (name.ends_with(".json")) return label(path);
  }

 private:
  void csv(const fs::path& path) {
    // The per-operator files beside whole-model labels are graphs with times, not kernels.
    std::error_code code;
    fs::path beside = path;
    if (fs::exists(beside.replace_extension(".json"), code)) return;
    const CsvTable table = parse_csv(read_text(path), path.string());
    const auto has = [&](std::string_view column) { return table.column(column).has_value(); };
    source_ = set_.sources.size();
    set_.sources.push_back(path.string());
    if (has("OPName") && has("Latency") && has("Device")) return neusight(table);
    if (has("gpu") && has("op") && has("latency_s")) return own(table);
    if (has("gpu") && has("software") && has("latency_ms")) return aiconfigurator(table);
    skip(path.string(), "the columns are of no known layout");
  }

  void skip(const std::string& what, const std::string& why) {
    const std::string line = what + ": " + why;
    if (std::find(set_.unmatched.begin(), set_.unmatched.end(), line) == set_.unmatched.end())
      set_.unmatched.push_back(line);
  }

  void add(const CsvTable& table, std::string gpu, std::string_view op, DType dtype,
           const KernelShape& shape, double seconds, Protocol protocol, std::optional<Tile> tile) {
    if (!(seconds > 0)) return skip(table.where, "a measured time is not above 0");
    const std::vector<Kernel> kernels = kernels_of_shape(op, dtype, shape);
    set_.kernels.push_back({.gpu = std::move(gpu),
                            .op = std::string(op),
                            .kernel = kernels.front(),
                            .measured_s = seconds,
                            .protocol = protocol,
                            .tile = tile,
                            .source = source_});
  }

  void neusight(const CsvTable& table) {
    const size_t name = table.require_column("OPName");
    const size_t latency = table.require_column("Latency");
    const size_t device = table.require_column("Device");
    const size_t b = table.require_column("B");
    const std::optional<size_t> kernel_name = table.column("Kernel Name");
    const auto m = table.column("M"), n = table.column("N"), k = table.column("K"),
               h = table.column("H");
    for (size_t r = 0; r < table.rows.size(); ++r) {
      const std::string& found = table.rows[r][name];
      const auto* op = std::find_if(std::begin(kNeusightOps), std::end(kNeusightOps),
                                    [&](const NeusightOp& o) { return o.name == found; });
      if (op == std::end(kNeusightOps)) {
        skip(table.where, fmt::format("operator '{}' is not forecast", found));
        continue;
      }
      KernelShape shape;
      std::optional<Tile> tile;
      if (found == "bmm" || found == "linear") {
        if (!m || !n || !k)
          throw Error(ErrorKind::kInput, table.where + ": columns M, N, K are missing");
        // There N is the reduction and K the output's columns.
        shape = {found == "bmm" ? table.integer(r, b) : 1, table.integer(r, *m),
                 table.integer(r, *k), table.integer(r, *n)};
        if (found == "linear") shape.m *= table.integer(r, b);
        if (kernel_name) tile = tile_in_name(table.rows[r][*kernel_name]);
      } else {
        if (!h) throw Error(ErrorKind::kInput, table.where + ": column H is missing");
        shape = {1, table.integer(r, b), table.integer(r, *h), 1};
      }
      add(table, table.rows[r][device], op->op, DType::kFp32, shape,
          table.number(r, latency) * 1e-3, Protocol::kSingleCall, tile);
    }
  }

  void own(const CsvTable& table) {
    const size_t gpu = table.require_column("gpu");
    const size_t op = table.require_column("op");
    const size_t latency = table.require_column("latency_s");
    const size_t dtype = table.require_column("dtype");
    const auto protocol = table.column("protocol");
    const auto size = [&](size_t row, std::string_view column) -> int64_t {
      const auto at = table.column(column);
      return !at || table.rows[row][*at].empty() ? 1 : table.integer(row, *at);
    };
    for (size_t r = 0; r < table.rows.size(); ++r) {
      if (!find_op(table.rows[r][op])) {
        skip(table.where, fmt::format("operator '{}' is not forecast", table.rows[r][op]));
        continue;
      }
      const std::string where = fmt::format("{}: row {}", table.where, r + 1);
      const bool single = protocol && table.rows[r][*protocol] == "single_call";
      add(table, table.rows[r][gpu], table.rows[r][op], parse_dtype(table.rows[r][dtype], where),
          {size(r, "batch"), size(r, "m"), size(r, "n"), size(r, "k")}, table.number(r, latency),
          single ? Protocol::kSingleCall : Protocol::kBackToBack, std::nullopt);
    }
  }

  void aiconfigurator(const CsvTable& table) {
    const auto m = table.column("m"), n = table.column("n"), k = table.column("k");
    if (!m || !n || !k)
      return skip(table.where,
                  "only matrix products (columns m, n, k) are forecast of this layout");
    static const std::map<std::string, DType> kDtypes = {
        {"bfloat16", DType::kBf16}, {"float16", DType::kFp16}, {"fp8", DType::kFp8}};
    const size_t gpu = table.require_column("gpu");
    const size_t dtype = table.require_column("dtype");
    const size_t latency = table.require_column("latency_ms");
    for (size_t r = 0; r < table.rows.size(); ++r) {
      const auto type = kDtypes.find(table.rows[r][dtype]);
      if (type == kDtypes.end()) {
        skip(table.where, fmt::format("dtype '{}' is not forecast", table.rows[r][dtype]));
        continue;
      }
      add(table, table.rows[r][gpu], "gemm", type->second,
          {1, table.integer(r, *m), table.integer(r, *n), table.integer(r, *k)},
          table.number(r, latency) * 1e-3, Protocol::kBackToBack, std::nullopt);
    }
  }

  /// label/<GPU>/<model>-<inf|train>-<seq>-<batch>[-option].json
  void label(const fs::path& path) {
    static const std::regex kName(R"(^(.+)-(inf|train)-(\d{1,9})-(\d{1,9})(?:-(.+))?$)");
    const std::string stem = path.stem().string();
    std::smatch match;
    if (!std::regex_match(stem, match, kName)) return;  // configs and the like
    const Json json = parse_json(read_text(path), path.string());
    const JsonObject object(json, path.string());
    if (!object.has("e2e_latency")) return skip(path.string(), "'e2e_latency' is missing");
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
    const fs::path config = path.parent_path().parent_path().parent_path() / "data" /
                            "DLmodel_configs" / (measurement.model + ".json");
    std::error_code code;
    if (fs::exists(config, code)) measurement.config = config.string();
    set_.models.push_back(std::move(measurement));
  }

  MeasurementSet& set_;
  size_t source_ = 0;
};

}  // namespace

std::optional<Tile> tile_in_name(std::string_view kernel_name) {
  static const std::regex kTile(
      R"((?:sgemm_|gemm_f32f32_f32f32_f32_|gemm_|tilesize|_MT)(\d{1,3})x(\d{1,3}))");
  std::match_results<std::string_view::const_iterator> match;
  if (!std::regex_search(kernel_name.begin(), kernel_name.end(), match, kTile)) return std::nullopt;
  const Tile tile{std::stoi(match[1]), std::stoi(match[2])};
  if (tile.m < 4 || tile.n < 4) return std::nullopt;
  return tile;
}

MeasurementSet read_measurements(const fs::path& path) {
  std::error_code code;
  if (!fs::exists(path, code))
    throw Error(ErrorKind::kNotFound, path.string() + ": no such file or folder");
  MeasurementSet set;
  Collector collector(set);
  if (!fs::is_directory(path, code)) {
    collector.file(path);
    return set;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) collector.file(file);
  return set;
}

}  // namespace tilecast
