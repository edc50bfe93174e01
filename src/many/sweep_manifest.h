#pragma once

// What the rows of a sweep were made with, in a file beside them: OUT.manifest.json. Rows of two
// versions, two weights or two models do not mix in one file.

#include <map>
#include <string>

#include "base/json.h"
#include "many/sweep_spec.h"

namespace tilecast {

class SweepManifest {
 public:
  /// Reads the files that the spec names.
  SweepManifest(const std::string& output, const SweepSpec& spec);

  /// Throws Error{kInput} where the rows of the output were made with something else, or where
  /// their manifest is missing; without rows it writes the manifest (Error{kIo}). Called while the
  /// output is locked.
  void check(bool has_rows) const;

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  std::string difference(const Json& before) const;

  std::string output_, path_;
  Json content_;
};

}  // namespace tilecast
