#pragma once

// The options in which candidates of a plan differ: one list for searches and tables.

#include <span>
#include <string>

#include "tilecast/search.h"

namespace tilecast {

struct TrainingOption {
  const char* name;    ///< of the option
  const char* column;  ///< of tables
  std::string (*value)(const TrainingCandidate&);
  /// In tables, where it is not the value: a schedule with its parts, "-" without a pipeline.
  std::string (*text)(const TrainingCandidate&) = nullptr;
  bool is_number = false;

  std::string shown(const TrainingCandidate& c) const {
    return text != nullptr ? text(c) : value(c);
  }
};
std::span<const TrainingOption> training_plan_options();

struct ServingOption {
  const char* name;
  const char* column;
  std::string (*value)(const ServingPlan&, const ServingCandidate&);
  std::string (*text)(const ServingPlan&, const ServingCandidate&) = nullptr;
  bool is_number = true;

  std::string shown(const ServingPlan& plan, const ServingCandidate& c) const {
    return text != nullptr ? text(plan, c) : value(plan, c);
  }
};
std::span<const ServingOption> serving_plan_options();

}  // namespace tilecast
