#pragma once

// Reads rows that a test writes.

#include <string>

#include "base/file.h"
#include "measurements/measurements.h"
#include "test_support.h"

namespace tilecast {

/// Rows of one table.
inline MeasurementSet table_rows(const std::string& file, const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder.path() / file, text);
  return read_measurements(folder.path());
}

/// The reasons why rows are left out, without the files' names.
inline std::string reasons(const MeasurementSet& set) {
  std::string all;
  for (const std::string& line : set.unmatched) all += line.substr(line.find(": ") + 2) + "\n";
  return all;
}

}  // namespace tilecast
