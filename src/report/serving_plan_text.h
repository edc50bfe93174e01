#pragma once

// Words about candidates of 'tilecast plan' for serving, and the table of reasons.

#include <string>

#include "report/text_table.h"
#include "schema/plan_options.h"
#include "tilecast/search.h"

namespace tilecast {

/// "on 8 GPUs"; "100 requests/s"
std::string load_text(const ServingPlan& plan);

/// "limits: TTFT 1.00 s (p99 of the steady part)"
std::string limits_text(const ServingPlan& plan);

/// "295 candidates: 91 meet the limits, 54 miss them (40 pruned: …), …, 8 do not fit."
std::string counts_text(const ServingPlan& plan);

/// "fp8, cache int8"
std::string dtype_text(const ServingCandidate& c);

/// A GPU's id without its vendor: "h100-sxm5-80gb"; of several kinds no more of it than tells them
/// apart: "h100".
std::string short_gpu(const ServingPlan& plan, const ServingCandidate& c);

/// The value of an option in tables.
std::string shown_text(const ServingPlan& plan, const ServingOption& option,
                       const ServingCandidate& c);

/// "TTFT 1.20 s instead of 1.00 s"
std::string missed_text(const ServingPlan& plan, const ServingCandidate& c);

/// Whether it is not certain that the first candidate is better than another. Errors on the same
/// GPU are mostly the same, so there the intervals say nothing of the order, and throughputs that
/// hardly differ tie.
bool order_is_uncertain(const ServingPlan& plan, const ServingCandidate& c);

/// The front as a picture of characters; nothing if it has one point.
void add_front_picture(std::string& out, const ServingPlan& plan, const TableStyle& style);

/// Why other values of the options are worse.
void add_reasons(std::string& out, const ServingPlan& plan, const TableStyle& style);

}  // namespace tilecast
