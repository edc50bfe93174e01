#include "request/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/checked.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {

std::vector<TraceRequest> read_trace(const std::string& path) {
  return parse_trace(read_file(path), path);
}

std::vector<TraceRequest> parse_trace(std::string_view text, const std::string& path) {
  const CsvTable table = parse_csv(text, path);
  // Nothing of a file that is no trace is shown: who asks a service may name any file.
  const auto column = [&](std::string_view name, std::string_view other) {
    std::optional<size_t> found = table.column(other);
    if (!found) found = table.column(name);
    if (!found)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: column '{}' is missing; expected a first line with arrival_s, "
                              "prompt and output",
                              path, name));
    return *found;
  };
  const size_t arrival = column("arrival_s", "arrival"), prompt = column("prompt", "prompt"),
               output = column("output", "output");
  std::vector<TraceRequest> trace;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const auto fail = [&](size_t at, const char* expected) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}:{}: '{}': expected {}, found '{}'", path, table.lines[row],
                              table.header[at], expected, shown_name(table.rows[row][at])));
    };
    const auto number = [&](size_t at, const char* expected, double min, double max) {
      double value = min - 1;
      try {
        value = table.number(row, at);
      } catch (const Error&) {
        fail(at, expected);
      }
      if (value < min || value > max) fail(at, expected);
      return value;
    };
    constexpr double kMax = 1e9;
    const auto tokens = [&](size_t at) {
      constexpr const char* kExpected = "a whole number of tokens, 1 or more";
      const double value = number(at, kExpected, 1, kMax);
      if (value != std::floor(value)) fail(at, kExpected);
      return static_cast<int64_t>(value);
    };
    trace.push_back(
        {number(arrival, "seconds, 0 or more", 0, kMax), tokens(prompt), tokens(output)});
  }
  if (trace.empty())
    throw Error(ErrorKind::kInput,
                path + ": expected a line for each request after the header, found none");
  std::stable_sort(trace.begin(), trace.end(), [](const TraceRequest& a, const TraceRequest& b) {
    return a.arrival_s < b.arrival_s;
  });
  return trace;
}

int64_t client_count(const Request& request) {
  return checked_multiply(request.load.concurrency, request.deployment.replicas);
}

int64_t request_count(const Request& request) {
  const Load& load = request.load;
  if (load.requests > 0) return load.requests;
  if (!load.trace.empty()) return static_cast<int64_t>(load.trace.size());
  // With clients: four requests per client between the first and the last. With a rate: enough that
  // ten requests are slower than the 99th percentile.
  constexpr int64_t kRounds = 6, kMin = 200, kMax = 20000, kOpen = 1000;
  return load.rate > 0 ? kOpen
                       : std::clamp(kRounds * std::min(client_count(request), kMax), kMin, kMax);
}

}  // namespace tilecast
