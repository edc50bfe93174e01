// Not a test: hit rates of caches forecast from reuse histograms against exact simulations of LRU
// caches, on streams drawn from histograms of production tables. Prints the table of
// docs/explanation/recommendation.md.
//
//   embedding_hits locality_stats_2021.txt locality_stats_2022.txt
//
// The files are from the public dlrm_datasets repository (Meta, MIT). A block of a file is a
// recording: its lookups ("indices"), rows that it uses ("unique cols"), and for each bin of uses
// the share of these rows ("histogram of col sizes") and of the lookups ("ratio of index
// distribution").

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <string>

#include "base/rng.h"
#include "embedding/reuse.h"
#include "tests/support/lru.h"

namespace tilecast {
namespace {

struct Recording {
  std::string name;
  double lookups = 0, rows = 0;
  int64_t tables = 1;
  ReuseShares of_rows{}, of_lookups{};
};

double number_after(const std::string& line, size_t at) { return std::stod(line.substr(at)); }

std::vector<Recording> read(const std::string& path) {
  std::ifstream in(path);
  std::vector<Recording> all;
  ReuseShares* bins = nullptr;
  size_t bin = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with(".pt")) {
      all.push_back({.name = line.substr(0, line.size() - 3)});
      const size_t tables = line.find("_t");
      all.back().tables = std::stoll(line.substr(tables + 2));
    }
    if (all.empty()) continue;
    if (line.starts_with("Avg # of indices: ")) all.back().lookups = number_after(line, 18);
    if (line.starts_with("Avg # of unique cols: ")) all.back().rows = number_after(line, 22);
    if (line.starts_with("Histogram of col")) bins = &all.back().of_rows, bin = 0;
    if (line.starts_with("Ratio of index")) bins = &all.back().of_lookups, bin = 0;
    if (line.starts_with("(") && bins != nullptr && bin < kReuseBins)
      (*bins)[bin++] = number_after(line, line.rfind(": ") + 2);
  }
  return all;
}

/// The error in points, signed; prints a line.
double compare(const Recording& r, double row_bytes, double cache_bytes, Rng& rng) {
  const double lookups = r.lookups / static_cast<double>(r.tables);
  ReuseShares means{};
  for (size_t i = 0; i < kReuseBins; ++i) {
    if (r.of_rows[i] >= 0.005)  // else the file's three digits do not tell
      means[i] = r.of_lookups[i] * r.lookups / (r.of_rows[i] * r.rows);
  }
  const std::vector<int32_t> stream = draw_stream(r.of_lookups, lookups, rng, means);
  const auto size = static_cast<double>(stream.size());
  const double exact = lru_hit_share(stream, static_cast<size_t>(cache_bytes / row_bytes));
  const double forecast = hit_share(histogram_access(r.of_lookups, 1e12, size, size),
                                    {.cache_bytes = cache_bytes, .row_bytes = row_bytes});
  fmt::print("| {} | {:.0f} | {:.0f} | {:.0f} | {:.1f} | {:.1f} | {:+.1f} |\n", r.name, size / 1e3,
             row_bytes, cache_bytes / (1 << 20), 100 * exact, 100 * forecast,
             100 * (forecast - exact));
  return 100 * (forecast - exact);
}

int run(int count, char** paths) {
  struct Gpu {
    double l2_bytes;
    double row_bytes;
  };
  // L2 of V100, A100 and H100; rows of 64 and 128 numbers in fp32.
  constexpr Gpu kCases[] = {{6 << 20, 512}, {40 << 20, 256}, {40 << 20, 512}, {50 << 20, 512}};
  Rng rng(1);
  double worst = 0, sum = 0;
  int n = 0;
  fmt::print(
      "| recording | lookups (thousands) | row (bytes) | cache (MiB) | LRU (%) | forecast "
      "(%) | error (points) |\n|---|--:|--:|--:|--:|--:|--:|\n");
  for (int i = 0; i < count; ++i) {
    for (const Recording& recording : read(paths[i])) {
      const Gpu& c = kCases[static_cast<size_t>(n) % std::size(kCases)];
      const double error = std::abs(compare(recording, c.row_bytes, c.l2_bytes, rng));
      worst = std::max(worst, error);
      sum += error;
      ++n;
    }
  }
  if (n == 0) {
    fmt::print(stderr,
               "embedding_hits: no recordings; give the files locality_stats_*.txt of "
               "dlrm_datasets\n");
    return 1;
  }
  fmt::print("\n{} streams: mean error {:.2f} points, largest {:.2f}\n", n, sum / n, worst);
  return worst <= 5 ? 0 : 1;
}

}  // namespace
}  // namespace tilecast

int main(int argc, char** argv) { return tilecast::run(argc - 1, argv + 1); }
