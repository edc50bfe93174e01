#pragma once

// Tables of options from Python, and tables of results.

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bindings/arrow.h"
#include "schema/record.h"
#include "tilecast/search.h"

namespace tilecast::python {

namespace py = pybind11;

/// The columns of results, in the order of tables.
inline const std::vector<FieldDef>& totals_fields() { return record_of<ForecastTotals>().fields; }

/// Collects the values of one column.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(std::string name) { column_.name = std::move(name); }

  void add(std::string_view text);
  void add_missing() { column_.codes.push_back(OptionColumn::kNotGiven); }
  /// The same value, or none, for the rest of `rows` rows.
  void fill(size_t rows);
  size_t rows() const { return column_.codes.size(); }
  OptionColumn take() { return std::move(column_); }

 private:
  OptionColumn column_;
  std::unordered_map<std::string, int32_t> codes_;
};

struct OptionTable {
  std::vector<OptionColumn> columns;
  size_t rows = 0;
};

/// Reads all of a stream of record batches. Throws Error{kUnsupported} for a type of column that no
/// option has, Error{kInput} for what is not a table.
OptionTable import_stream(ArrowArrayStream& stream);
/// Reads one record batch.
OptionTable import_batch(const ArrowSchema& schema, const ArrowArray& array);

/// A table that others read. Texts of values must live as long as the table.
struct ExportedTable {
  struct Column {
    std::string name;
    FieldKind kind = FieldKind::kText;
    std::string unit = {}, doc = {};  ///< metadata of the column; "": none
    std::function<Value(size_t row)> get;
  };
  std::vector<Column> columns;
  size_t rows = 0;
};

/// A capsule with a stream of record batches: what `__arrow_c_stream__` returns.
py::capsule export_table(std::shared_ptr<const ExportedTable> table);

/// An option's name in a table or as a keyword: `optimizer_impl` for "optimizer-impl".
std::string option_of_keyword(std::string keyword);
std::string keyword_of_option(std::string option);

}  // namespace tilecast::python
