#pragma once

// Measured servers: language models under a load of clients.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"

namespace tilecast {

/// Lengths of prompts or outputs, in tokens: of each request anything from `low` to `high`.
struct TokenRange {
  int64_t low = 0, high = 0;
  double mean() const { return 0.5 * static_cast<double>(low + high); }
};

/// One run of a server.
struct ServedRow {
  size_t line = 0;                           ///< of the file
  std::map<std::string, std::string> cells;  ///< by column, without those that are empty
  std::string gpu, model, software, version, dtype;
  int64_t gpus = 1, tp = 1, dp = 1, ep = 1;
  int64_t clients = 0;
  /// nullopt: the table does not say.
  std::optional<TokenRange> prompt, output;
  /// The times are medians over all requests, else means.
  bool medians = false;
  /// The run was measured while the server was full; else its start and end count.
  bool steady = false;
  std::optional<double> ttft_s, tpot_s;
  std::optional<double> itl_s;  ///< median time between two tokens of a stream, of all tokens
  std::string ttft_use;
  std::optional<double> output_tokens_per_s_per_gpu;
  std::optional<double> power_w;  ///< of one GPU
  std::string left_out;           ///< why the row is no single server of the model alone; "": it is
};

/// Tables of closed loops of clients with the means or medians over requests, or of servers that
/// are kept full, with the time between tokens.
bool is_served_table(const CsvTable& table);
/// The columns that such tables have, for checks of what refers to them.
const std::vector<std::string>& served_columns();
/// Throws Error{kInput} naming line and column for numbers that are none or out of range, for GPUs
/// that are not tp x dp, and for a row without any measurement.
std::vector<ServedRow> read_served_rows(const CsvTable& table);

/// Output tokens a second that a closed loop of clients implies: each waits for its answer.
double closed_loop_tokens_per_s(int64_t clients, double output, double ttft_s, double tpot_s);

}  // namespace tilecast
