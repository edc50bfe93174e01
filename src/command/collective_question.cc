// The time of one collective operation on a cluster.

#include "command/question.h"
#include "command/shared_options.h"
#include "software/software.h"

namespace tilecast {
namespace {

void set_bytes(void* query, const CommandOption& option, const GivenValue& value) {
  GivenValue number = value;
  for (std::string& text : number.texts) text = internal::without_unit_of_bytes(text);
  into<&CollectiveQuery::bytes>()(query, option, number);
}

std::vector<OptionGroup> collective_groups() {
  constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max() / 1024;
  constexpr int64_t kMostRanks = int64_t{1} << 24, kMostNodes = int64_t{1} << 20;
  using Asked = CollectiveQuery;
  const Asked defaults;
  CommandOption ranks =
      whole_option("--ranks", "", "GPUs that take part", into<&Asked::ranks>(), 1, kMostRanks);
  CommandOption bytes = whole_option(
      "--bytes", "", "of the whole buffer, as NCCL's tests count them: 268435456, 256MiB",
      set_bytes, 0, kMostBytes);
  ranks.required = bytes.required = true;
  return {{"Options",
           {{.names = "KIND",
             .help = "the operation",
             .choices = collective_kinds(),
             .required = true,
             .set = into<&Asked::kind>()},
            cluster_option(into<&Asked::cluster>()),
            ranks,
            bytes,
            whole_option("--ranks-per-node", "all GPUs of a node", "of these ranks",
                         into<&Asked::ranks_per_node>(), 1, kMostRanks),
            whole_option("--nodes", "as many as needed", "of the cluster", into<&Asked::nodes>(), 1,
                         kMostNodes),
            whole_option("--concurrent", "1", "groups alike that share each node's links",
                         into<&Asked::concurrent>(), 1, kMostNodes),
            {.names = "--dtype",
             .value = "DTYPE",
             .default_value = defaults.dtype,
             .help = "of the elements: switches do not sum all",
             .set = into<&Asked::dtype>()},
            {.names = "--software",
             .value = "",
             .default_value = defaults.software,
             .help = "whose kernels run: serving software has all-reduces of its own",
             .choices = model_software_names(),
             .set = into<&Asked::software>()}}}};
}

Reply answer_collective(CollectiveQuery&& query, const Given&, const Asking&) {
  CollectiveForecast forecast = forecast_collective(query);
  std::vector<std::string> warnings = warning_texts(forecast.warnings);
  return {.answer = std::move(forecast), .warnings = std::move(warnings)};
}

}  // namespace

Question collective_question() {
  return question_of<CollectiveQuery, collective_groups, answer_collective>(
      "collective", "Forecast of one collective on a cluster", {{"", "Collective"}});
}

}  // namespace tilecast
