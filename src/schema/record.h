#pragma once

// Fields of results: name, unit, what it is, and how it is read. A result lists them once, in its
// static function `fields`; JSON, CSV, JSON schemas, Python's classes and the reference page are
// made from the table that `record_of` makes of that list:
//
//   struct RankTables {
//     int64_t rank = 0;
//     double forward_s = 0;
//
//     template <typename Fields>
//     static void fields(Fields& field) {
//       field.is("RankTables", "The embedding tables of one rank.");
//       field("rank", "", "number of the rank", &RankTables::rank);
//       field("forward_s", "s", "time of the lookups", &RankTables::forward_s);
//     }
//   };
//
// `fields` is a template that only src/schema instantiates: headers of results need nothing for it.
// Not in here: what tables on the terminal show, which is written by hand in src/report.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/value.h"

namespace tilecast {

enum class FieldKind : uint8_t { kBool, kWhole, kNumber, kText, kRecord, kList, kMap, kOneOf };

/// The type of a field.
struct FieldType {
  FieldKind kind = FieldKind::kText;
  bool nullable = false;                ///< it may have no value
  const RecordDef* record = nullptr;    ///< of kRecord
  std::vector<FieldType> items;         ///< of kList and kMap: one; of kOneOf: all
  size_t length = 0;                    ///< of a list with a fixed length; 0: any length
  std::vector<std::string_view> words;  ///< of texts of a closed list
};

struct FieldDef {
  std::string name;
  std::string_view unit;  ///< "s", "bytes", "FLOP", …; "": none
  std::string_view doc;
  FieldType type;
  bool left_out = false;  ///< JSON has no such key where it has no value; else null
  std::function<Value(const void* record)> get;
};

struct RecordDef {
  std::string_view name;  ///< of Python's class and in JSON schemas
  std::string_view doc;
  std::vector<FieldDef> fields;
  std::vector<uint16_t> by_name;  ///< indices into `fields` in the order of JSON's keys
};

/// The table of the fields of T. The types are listed in results.h.
template <typename T>
const RecordDef& record_of();

/// A record as a value; it must outlive the value.
template <typename T>
Value value_of(const T& record) {
  return {.data = RecordRef{&record_of<T>(), &record}, .owner = nullptr};
}

}  // namespace tilecast
