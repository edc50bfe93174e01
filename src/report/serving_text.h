#pragma once

// What is shown of a server under load.

#include <string>

#include "base/json.h"
#include "report/text_table.h"
#include "tilecast/llm.h"

namespace tilecast {

/// A table of names, values and remarks; remarks that are too long are wrapped.
class Lines {
 public:
  void add(const std::string& name, const std::string& value, const std::string& more) {
    table_.rows.push_back({name, value, more});
  }
  std::string text(const TableStyle& style) const;

 private:
  TextTable table_;
};

Json estimate_json(const Estimate& estimate);

/// The load, what clients see over all requests and over the steady part, and what that part is.
std::string serving_text(const LlmForecast::Serving& serving, const TableStyle& style);
Json serving_json(const LlmForecast::Serving& serving);

}  // namespace tilecast
