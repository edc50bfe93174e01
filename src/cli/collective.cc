// 'tilecast collective': the time of one collective operation on a cluster.

#include <limits>

#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 1024;

CollectiveQuery query_of(const Given& given) {
  CollectiveQuery query;
  query.kind = text_of(given, "KIND");
  query.cluster = text_of(given, "cluster");
  query.dtype = text_of(given, "dtype", query.dtype);
  query.software = text_of(given, "software", query.software);
  query.ranks = integer_of(given, "ranks", 0, 1, int64_t{1} << 24);
  query.bytes = integer_of(given, "bytes", 0, 0, kMost);
  query.ranks_per_node = integer_of(given, "ranks-per-node", 0, 1, int64_t{1} << 24);
  query.nodes = integer_of(given, "nodes", 0, 1, int64_t{1} << 20);
  query.concurrent = integer_of(given, "concurrent", 1, 1, int64_t{1} << 20);
  return query;
}

void run_collective(const Given& given) {
  const std::string output = text_of(given, "output-file");
  const CollectiveForecast forecast = forecast_collective(query_of(given));
  emit(text_of(given, "format") == "json" ? collective_json(forecast)
                                          : collective_table(forecast, output_style(output)),
       output);
}

CommandOption number(const std::string& names, const std::string& default_value,
                     const std::string& help, bool required = false) {
  return {.names = names,
          .value = "N",
          .default_value = default_value,
          .help = help,
          .required = required};
}

}  // namespace

Command collective_command() {
  const CollectiveQuery defaults;
  return {
      .name = "collective",
      .help = "Forecast of one collective on a cluster",
      .usage = {"KIND --cluster CLUSTER --ranks N --bytes N [options]"},
      .groups = {{"Options",
                  {{.names = "KIND",
                    .help = "the operation",
                    .choices = collective_kinds(),
                    .required = true},
                   cluster_option(),
                   number("--ranks", "", "GPUs that take part", true),
                   number("--bytes", "", "of the whole buffer, as NCCL's tests count them", true),
                   number("--ranks-per-node", "all GPUs of a node", "of these ranks"),
                   number("--nodes", "as many as needed", "of the cluster"),
                   number("--concurrent", "1", "groups alike that share each node's links"),
                   {.names = "--dtype",
                    .value = "DTYPE",
                    .default_value = defaults.dtype,
                    .help = "of the elements: switches do not sum all"},
                   {.names = "--software",
                    .value = "",
                    .default_value = defaults.software,
                    .help = "whose kernels run: serving software has all-reduces of its own",
                    .choices = {"pytorch", "vllm", "sglang", "trtllm"}},
                   format_option({"table", "json"}),
                   output_option()}}},
      .examples = {"tilecast collective all_reduce --cluster dgx-h100 --ranks 8 --bytes 67108864",
                   "tilecast collective all_gather --cluster dgx-a100 --ranks 64 --bytes 268435456 "
                   "--ranks-per-node 1 --concurrent 8"},
      .run = run_collective};
}

}  // namespace tilecast
