#pragma once

// The table of warnings: for each code its facts and its sentence. A warning holds the values; the
// sentence is made when it is shown, and docs/reference/warnings.md from the table.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/result.h"

namespace tilecast {

enum class FactKind : uint8_t { kText, kWhole, kFlag, kBytes, kNumber, kSeconds };

/// A fact that warnings of a code have. Names end in the unit.
struct FactDef {
  std::string_view name;
  FactKind kind = FactKind::kText;
  std::string_view doc;
  bool optional = false;
  std::string_view after = "";            ///< in the sentence, after the value
  std::string_view absent = "";           ///< in the sentence, where there is no value
  std::string_view if_0 = "", if_1 = "";  ///< in the sentence, for a flag
};

struct WarningDef {
  WarningCode code;
  std::string_view name;     ///< in JSON
  std::string_view doc;      ///< when it is given
  std::string_view subject;  ///< what its subject is; "": it has none
  /// What its share is a share of; "": it has none.
  std::string_view share;
  std::vector<FactDef> facts;
  /// With the names of facts in braces; {step} is "prefill: ", or "" for a pass; {share} is
  /// "34 %" or "less than 1 %", {share:.0f} "0 %" and {share:.1f} "0.4 %" where it is less. "":
  /// `text` makes it.
  std::string_view sentence;
  std::string (*text)(const Warning&) = nullptr;
};

/// By the order of WarningCode.
std::span<const WarningDef> warning_table();

const WarningDef& warning_def(WarningCode code);

/// The page of all codes.
std::string warning_reference();

}  // namespace tilecast
