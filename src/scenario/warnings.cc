#include "scenario/warnings.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "ops/op_def.h"
#include "predict/roofline.h"

namespace tilecast {

namespace {

std::optional<Warning> extrapolated_share(const std::string& subject, double outside, double all) {
  if (outside <= kNoticedShare * all) return std::nullopt;
  return Warning{WarningCode::kExtrapolated, subject, outside / all, {}};
}

}  // namespace

std::optional<Warning> extrapolation_warning(const std::string& subject, const Timeline& timeline,
                                             const std::vector<KernelTime>& times) {
  double outside = 0, all = 0;
  for (const Event& event : timeline.events) {
    const double seconds = event.duration_s * static_cast<double>(event.count);
    all += seconds;
    if (times[event.kernel].extrapolated) outside += seconds;
  }
  return extrapolated_share(subject, outside, all);
}

std::optional<Warning> extrapolation_warning(const std::string& subject,
                                             const std::vector<KernelForecast>& kernels) {
  double outside = 0, all = 0;
  for (const KernelForecast& k : kernels) {
    const double seconds = k.latency_s * static_cast<double>(k.count);
    all += seconds;
    if (k.extrapolated) outside += seconds;
  }
  return extrapolated_share(subject, outside, all);
}

std::optional<Warning> no_model_warning(const std::string& subject,
                                        const std::vector<KernelForecast>& kernels) {
  std::set<std::string> missing;
  double all = 0, without = 0;
  for (const KernelForecast& k : kernels) {
    const double seconds = k.latency_s * static_cast<double>(k.count);
    all += seconds;
    if (k.extrapolated_feature != kNoModel) continue;
    without += seconds;
    missing.insert(fmt::format("{} {}", k.op, k.dtype));
  }
  if (missing.empty()) return std::nullopt;
  const std::vector<std::string> names(missing.begin(), missing.end());
  return Warning{WarningCode::kNoModel, subject, without / all, {{"kernels", join(names, ", ")}}};
}

std::optional<Warning> host_wait_warning(const std::string& subject, double wait_s, double all_s) {
  if (wait_s <= kNoticedShare * all_s) return std::nullopt;
  return Warning{WarningCode::kHostWait, subject, wait_s / all_s, {}};
}

std::vector<Warning> link_warnings(const Cluster& cluster, int64_t ranks, const LinkOrigins& links,
                                   double share) {
  const int64_t gpus = cluster.gpus();
  const std::string used =
      ranks < gpus ? fmt::format("{} of {} GPUs of {}", ranks, gpus, cluster.name) : cluster.name;
  std::vector<Warning> warnings;
  if (links.unmeasured) warnings.push_back({WarningCode::kUnmeasuredLinks, used, share, {}});
  if (links.one_server && share > kNoticedShare)
    warnings.push_back({WarningCode::kOneMeasuredServer, used, share, {}});
  return warnings;
}

namespace {

struct ShareOfTime {
  int64_t count = 0;
  double seconds = 0;
};

/// The name of the operator that a node of this kind stands for; "": it is none.
std::string_view unmapped_name(const Node& node) {
  const AttributeValue* name = node.find_attribute("unmapped");
  return name == nullptr ? "" : std::string_view(std::get<std::string>(*name));
}

std::string_view unmeasured_name(const Node& node) {
  if (const AttributeValue* name = node.find_attribute("unmeasured"))
    return std::get<std::string>(*name);
  const OpDef& op = op_def(node.op);
  if (!op.unmeasured) return "";
  const bool by_mode = find_attribute_def(op, "training") != nullptr;
  return by_mode && attribute<int64_t>(node, "training") == 0 ? "" : op.name;
}

/// The operators that `name_of` names, "avg_pool (3 times, 2.1 %)", and their share of the kernels'
/// time.
struct NamedShares {
  double share = 0;
  std::string text;  ///< "": none
};

NamedShares shares_of(const std::vector<CountedTimeline>& timelines,
                      std::string_view (*name_of)(const Node&)) {
  std::map<std::string, ShareOfTime, std::less<>> named;
  double all = 0, sum = 0;
  for (const CountedTimeline& counted : timelines) {
    for (const Event& event : counted.timeline.events) {
      const Node& node = *counted.program.launches[event.launch].node;
      const int64_t runs = node.phase == Phase::kOptimizer ? counted.steps : counted.passes;
      const int64_t count = checked_multiply(event.count, runs);
      const double seconds = event.duration_s * static_cast<double>(count);
      all += seconds;
      const std::string_view name = name_of(node);
      if (name.empty()) continue;
      ShareOfTime& share = named[std::string(name)];
      share.count += count;
      share.seconds += seconds;
      sum += seconds;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, share] : named)
    parts.push_back(
        fmt::format("{} ({} times, {:.1f} %)", name, share.count, 100 * share.seconds / all));
  return {all > 0 ? sum / all : 0, join(parts, ", ")};
}

}  // namespace

std::vector<std::string> unmapped_operators(const std::vector<CountedTimeline>& timelines) {
  const NamedShares unmapped = shares_of(timelines, unmapped_name);
  if (unmapped.text.empty()) return {};
  return {fmt::format(
      "{:.1f} % of the kernels' time is of operators that Tilecast does not know, forecast as "
      "one kernel each that reads and writes its tensors once: {}",
      100 * unmapped.share, unmapped.text)};
}

std::optional<Warning> unmeasured_operators(const std::vector<CountedTimeline>& timelines) {
  // Less does not change a forecast noticeably: most networks have one pooling.
  constexpr double kSmallShare = 0.01;
  const NamedShares unmeasured = shares_of(timelines, unmeasured_name);
  if (unmeasured.share <= kSmallShare) return std::nullopt;
  const std::string message = fmt::format(
      "{:.1f} % of the kernels' time is of operators without a measured kernel, forecast "
      "from their work as kernels of other operators: {}",
      100 * unmeasured.share, unmeasured.text);
  return Warning{WarningCode::kUnmeasuredOperators, "", unmeasured.share, {{"message", message}}};
}

void add_warning(std::vector<Warning>& warnings, std::optional<Warning> warning) {
  if (warning) warnings.push_back(*std::move(warning));
}

void add_messages(std::vector<Warning>& warnings, WarningCode code, const std::string& subject,
                  const std::vector<std::string>& messages) {
  for (const std::string& message : messages)
    warnings.push_back({code, subject, 0, {{"message", message}}});
}

}  // namespace tilecast
