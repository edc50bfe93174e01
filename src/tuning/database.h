#pragma once

// The text form of MIOpen's databases, one record a line:
// find database: KEY=SOLVER:milliseconds,workspace bytes,ALGORITHM;SOLVER:...
// performance database: KEY=SOLVER:parameters;SOLVER:...
// This form is written from memory of MIOpen's sources (src/db_record.cpp, find_db.hpp), which were
// not at hand, and no MIOpen has read it: an assumption, which reading a file with one would
// settle. The parameters' strings are the public databases' (docs/explanation/tuning.md).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/solver_table.h"

namespace tilecast::tuning {

struct FindEntry {
  std::string solver;
  double time_ms = 0;
  int64_t workspace_bytes = 0;
  std::string algorithm;
  bool operator==(const FindEntry&) const = default;
};
struct FindRecord {
  std::string key;
  std::vector<FindEntry> entries;
  bool operator==(const FindRecord&) const = default;
};

struct PerfEntry {
  std::string solver, parameters;
  bool operator==(const PerfEntry&) const = default;
};
struct PerfRecord {
  std::string key;
  std::vector<PerfEntry> entries;
  bool operator==(const PerfRecord&) const = default;
};

/// Throw Error{kInput} with file and line for a broken line.
std::vector<FindRecord> parse_find_database(std::string_view text, const std::string& where);
std::vector<PerfRecord> parse_perf_database(std::string_view text, const std::string& where);

/// Times as MIOpen prints them: at most six significant digits.
std::string format_find_database(const std::vector<FindRecord>& records);
std::string format_perf_database(const std::vector<PerfRecord>& records);

/// Workspace that a solver asks for: the unrolled image of GEMM; 0 where it needs none.
int64_t workspace_bytes(const Solver& solver, const ConvProblem& problem);

}  // namespace tilecast::tuning
