// Forecasts against measured cycles of layers under given mappings: columns n, c, k, p, q, r, s,
// stride, dram_order, tile_* and spatial_* as in the files of DOSA (../shared/data/accelerators).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "accelerator/fixed_point.h"
#include "accelerator/registry.h"
#include "accelerator/tiling.h"
#include "base/csv.h"
#include "base/quantile.h"
#include "base/text.h"
#include "evaluate/tables.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

using accelerator::kDimCount;
using accelerator::kDimNames;

/// One measured layer under one mapping.
struct Row {
  int64_t pe_dim = 0;
  accelerator::Layer layer;
  accelerator::Mapping mapping;
  double cycles = 0;
  std::string group;  ///< equal for equal layers
};

class Reader {
 public:
  explicit Reader(const CsvTable& table) : table_(table) {}
  Row read(size_t row) const {
    Row result;
    result.pe_dim = value(row, table_.column("pe_dim") ? "pe_dim" : "pe_dim_inferred");
    result.cycles = static_cast<double>(value(row, "rtl_cycles"));
    result.layer.stride = value(row, "stride");
    result.mapping.order = table_.rows[row][table_.require_column("dram_order")];
    for (size_t i = 0; i < kDimCount; ++i) {
      const std::string dim(1, kDimNames[i]);
      result.layer.sizes[i] = value(row, dim);
      result.group += fmt::format("{},", result.layer.sizes[i]);
      if (dim == "n") continue;
      result.mapping.tile[i] = value(row, "tile_" + dim);
      if (dim == "k" || dim == "c") result.mapping.tile[i] *= value(row, "spatial_" + dim);
      if (dim == "p" || dim == "q") result.mapping.tile[i] *= value(row, "stream_" + dim);
    }
    result.group += std::to_string(result.layer.stride);
    check_covers(result.mapping, result.layer, table_.place(row));
    return result;
  }

 private:
  int64_t value(size_t row, const std::string& column) const {
    return table_.integer(row, table_.require_column(column));
  }
  const CsvTable& table_;
};

/// Whether the generator of the measurement rounded the tile up: the row is faster than its own
/// tile allows (README of the data).
bool is_faster_than_its_tile(const Row& row) {
  double least = 1;
  for (size_t i = 0; i < kDimCount; ++i) {
    const int64_t tile = row.mapping.tile[i];
    const bool array = kDimNames[i] == 'k' || kDimNames[i] == 'c';
    least *= static_cast<double>(row.layer.sizes[i]) / static_cast<double>(tile) *
             static_cast<double>(array ? (tile + row.pe_dim - 1) / row.pe_dim : tile);
  }
  return row.cycles < least;
}

/// A product is a convolution of one pixel by a window of one.
bool is_product(const Row& row) {
  const auto& sizes = row.layer.sizes;
  return sizes[4] == 1 && sizes[5] == 1 && sizes[6] == 1;
}

/// The generator cuts matrix products in whole blocks of the array (the same README, its note on
/// defects): narrower tiles are rounded up.
void round_products_up(Row& row) {
  if (!is_product(row)) return;
  const auto& sizes = row.layer.sizes;
  for (const size_t i : {1, 2, 3}) {
    int64_t& tile = row.mapping.tile[i];
    tile = std::min(sizes[i], (tile + row.pe_dim - 1) / row.pe_dim * row.pe_dim);
  }
}

/// Forecasts of all rows with one set of parameters.
std::vector<double> forecast(const std::vector<Row>& rows, const std::string& id,
                             accelerator::ParameterValues values) {
  std::map<int64_t, accelerator::Design> designs;
  std::vector<double> cycles;
  for (const Row& row : rows) {
    auto it = designs.find(row.pe_dim);
    if (it == designs.end()) {
      values["DIM"] = static_cast<double>(row.pe_dim);
      it = designs.emplace(row.pe_dim, accelerator::open_accelerator(id, values)).first;
    }
    const accelerator::Design& design = it->second;
    const accelerator::LoopNest nest =
        tile_layer(design.machine, design.flow, row.layer, row.mapping);
    cycles.push_back(evaluate_nest(design.machine, nest).cycles);
  }
  return cycles;
}

struct Candidate {
  accelerator::ParameterValues values;
  std::vector<double> cycles;
};

/// All combinations of the values that the description offers for fitting.
std::vector<Candidate> candidates(const std::vector<Row>& rows, const std::string& id) {
  std::vector<Candidate> all = {{}};
  const accelerator::Design design = accelerator::open_accelerator(id);
  for (const accelerator::Parameter& parameter : design.machine.parameters) {
    std::vector<Candidate> next;
    for (const Candidate& candidate : all) {
      if (parameter.fit.empty()) next.push_back(candidate);
      for (const double value : parameter.fit) {
        next.push_back(candidate);
        next.back().values[parameter.name] = value;
      }
    }
    all = std::move(next);
  }
  for (Candidate& candidate : all) candidate.cycles = forecast(rows, id, candidate.values);
  return all;
}

double error(const Row& row, double cycles) { return std::abs(cycles / row.cycles - 1) * 100; }

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Ranks from 1; equal values share their mean rank.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double value : values) {
    double below = 0, equal = 0;
    for (const double other : values) {
      below += other < value;
      equal += other == value;
    }
    result.push_back(below + (equal + 1) / 2);
  }
  return result;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

/// Mean over layers with at least five mappings; over all rows where there are none.
std::optional<double> rank_of_forecasts(const std::vector<Row>& rows,
                                        const std::vector<double>& cycles) {
  constexpr size_t kLeast = 5;
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> layers;
  for (size_t i = 0; i < rows.size(); ++i) {
    layers[rows[i].group].first.push_back(rows[i].cycles);
    layers[rows[i].group].second.push_back(cycles[i]);
  }
  std::vector<double> correlations;
  for (const auto& [name, pair] : layers)
    if (pair.first.size() >= kLeast)
      correlations.push_back(rank_correlation(pair.first, pair.second));
  if (!correlations.empty()) return mean(correlations);
  if (rows.size() < 2) return std::nullopt;
  std::vector<double> measured;
  for (const Row& row : rows) measured.push_back(row.cycles);
  return rank_correlation(measured, cycles);
}

std::vector<EvaluationRow> errors_by_operator(const std::vector<Row>& rows,
                                              const std::vector<double>& cycles,
                                              const std::string& id) {
  std::vector<EvaluationRow> result;
  const std::string dtype = accelerator::open_accelerator(id).operand_dtype;
  for (const bool product : {false, true}) {
    std::vector<double> errors;
    double log_sum = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (is_product(rows[i]) != product) continue;
      errors.push_back(error(rows[i], cycles[i]));
      log_sum += std::log(cycles[i] / rows[i].cycles);
    }
    if (errors.empty()) continue;
    result.push_back({.gpu = id,
                      .op = product ? "linear" : "conv2d",
                      .dtype = dtype,
                      .software = "",
                      .count = static_cast<int64_t>(errors.size()),
                      .mape_percent = mean(errors),
                      .median_percent = quantile(errors, 0.5),
                      .p90_percent = quantile(errors, 0.9),
                      .bias_ratio = std::exp(log_sum / static_cast<double>(errors.size()))});
  }
  return result;
}

/// Errors where the parameters are fitted without the layer of each row.
std::vector<double> held_out_errors(const std::vector<Row>& rows,
                                    const std::vector<Candidate>& all) {
  std::map<std::string, size_t> best;
  std::vector<double> errors;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (best.find(rows[i].group) == best.end()) {
      double least = 0;
      for (size_t c = 0; c < all.size(); ++c) {
        double sum = 0;
        for (size_t j = 0; j < rows.size(); ++j)
          if (rows[j].group != rows[i].group) sum += error(rows[j], all[c].cycles[j]);
        if (c == 0 || sum < least) {
          least = sum;
          best[rows[i].group] = c;
        }
      }
    }
    errors.push_back(error(rows[i], all[best[rows[i].group]].cycles[i]));
  }
  return errors;
}

/// The accelerator that the rows were measured on: as given, the column `accelerator`, or the
/// accelerator whose id begins the name of the file.
std::string measured_on(const CsvTable& table, const std::string& file, const std::string& given) {
  if (!given.empty()) return given;
  if (table.column("accelerator") && !table.rows.empty())
    return table.rows.front()[table.require_column("accelerator")];
  for (const std::string& id : accelerator::bundled_accelerators())
    if (file.starts_with(id)) return id;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: which accelerator was measured? Give it with --gpu, in a column "
                          "'accelerator', or begin the file's name with one of: {}",
                          printable(file), join(accelerator::bundled_accelerators(), ", ")));
}

AcceleratorEvaluation evaluate_cycles(const CsvTable& table, const std::string& file,
                                      const std::string& given) {
  const Reader reader(table);
  const std::string id = measured_on(table, file, given);
  AcceleratorEvaluation result{.file = file, .accelerator = id};
  std::vector<Row> rows;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    Row row = reader.read(i);
    if (is_faster_than_its_tile(row)) {
      ++result.left_out;
      continue;
    }
    round_products_up(row);
    rows.push_back(std::move(row));
  }
  result.rows = static_cast<int64_t>(rows.size());
  const std::vector<double> cycles = forecast(rows, id, {});
  std::vector<double> errors;
  double log_sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    errors.push_back(error(rows[i], cycles[i]));
    log_sum += std::log(cycles[i] / rows[i].cycles);
  }
  result.mape_percent = mean(errors);
  result.median_percent = quantile(errors, 0.5);
  result.p90_percent = quantile(errors, 0.9);
  result.bias_ratio = std::exp(log_sum / std::max<double>(1, static_cast<double>(rows.size())));
  result.rank_correlation = rank_of_forecasts(rows, cycles);
  result.by_operator = errors_by_operator(rows, cycles, id);
  const std::vector<Candidate> all = candidates(rows, id);
  for (const auto& [name, value] : all.front().values) result.fitted.push_back(name);
  const std::vector<double> held_out = held_out_errors(rows, all);
  result.held_out_mape_percent = mean(held_out);
  result.held_out_median_percent = quantile(held_out, 0.5);
  return result;
}

}  // namespace

std::optional<std::vector<AcceleratorEvaluation>> evaluate_accelerators(
    const std::string& path, const std::string& accelerator) {
  return evaluate_tables<AcceleratorEvaluation>(
      path, "", is_cycles_table, [&](const CsvTable& table, const std::filesystem::path& file) {
        return evaluate_cycles(table, file.filename().string(), accelerator);
      });
}

}  // namespace tilecast
