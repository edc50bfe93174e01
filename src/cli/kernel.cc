// 'tilecast kernel': flags and help of the sizes are derived from the operator table.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

using Operators = std::vector<OpEntry>;

/// The key of a size on the command line: "head_dim" → "head-dim".
std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string flag_of(const std::string& name) { return "--" + key_of(name); }

bool takes(const SizeEntry& size, const std::string& key) {
  return key_of(size.name) == key ||
         std::any_of(size.other_names.begin(), size.other_names.end(),
                     [&](const std::string& other) { return key_of(other) == key; });
}

using Alike = std::vector<const OpEntry*>;  ///< operators with the same sizes

/// Whether the name is the main name of a size of any operator, and so has its own flag.
bool is_main_name(const std::vector<Alike>& groups, const std::string& name) {
  for (const Alike& group : groups) {
    for (const SizeEntry& size : group.front()->sizes) {
      if (size.name == name) return true;
    }
  }
  return false;
}

CommandOption option_of(const SizeEntry& size, const std::vector<Alike>& groups) {
  CommandOption option = {.names = flag_of(size.name), .help = size.description};
  // A name of one letter gets both -m and --m.
  if (size.name.size() == 1) option.names = "-" + size.name + "," + option.names;
  for (const std::string& other : size.other_names) {
    if (!is_main_name(groups, other)) option.old_names.push_back(flag_of(other));
  }
  if (size.is_switch) return option;
  option.value = size.is_list            ? "N:N:..."
                 : size.choices.empty()  ? "N"
                 : size.name == "scheme" ? "SCHEME"
                                         : "DTYPE";
  option.default_value = size.default_value;
  option.choices = size.choices;
  return option;
}

bool same_sizes(const OpEntry& a, const OpEntry& b) {
  return std::equal(a.sizes.begin(), a.sizes.end(), b.sizes.begin(), b.sizes.end(),
                    [](const SizeEntry& x, const SizeEntry& y) {
                      return x.name == y.name && x.description == y.description;
                    });
}

/// One group for all operators with the same sizes; the group with the most operators comes last.
std::vector<OptionGroup> size_groups() {
  const Operators operators = op_catalog();
  std::vector<Alike> alike;
  for (const OpEntry& op : operators) {
    if (op.sizes.empty()) continue;
    const auto found = std::find_if(alike.begin(), alike.end(), [&](const Alike& group) {
      return same_sizes(*group.front(), op);
    });
    if (found == alike.end())
      alike.push_back({&op});
    else
      found->push_back(&op);
  }
  const auto largest =
      std::max_element(alike.begin(), alike.end(),
                       [](const Alike& a, const Alike& b) { return a.size() < b.size(); });
  std::rotate(largest, largest + 1, alike.end());
  std::vector<OptionGroup> groups;
  for (const Alike& group : alike) {
    std::vector<std::string> names;
    for (const OpEntry* op : group) names.push_back(op->name);
    OptionGroup& added = groups.emplace_back();
    added.title = "Sizes of " + (&group == &alike.back() ? "all others" : join(names, ", "));
    for (const SizeEntry& size : group.front()->sizes)
      added.options.push_back(option_of(size, alike));
  }
  return groups;
}

std::string taken(const OpEntry& op) {
  std::vector<std::string> flags;
  for (const SizeEntry& size : op.sizes) flags.push_back(flag_of(size.name));
  return join(flags, ", ");
}

/// A list as it was given. Throws UsageError if it is none.
std::string checked_list(const std::string& key, const std::string& text, const SizeEntry& size) {
  for (const std::string& part : split(text, ':')) {
    try {
      integer_of({{key, {part}}}, key, 0, size.min, size.max);
    } catch (const UsageError&) {
      throw UsageError(
          fmt::format("--{}: expected whole numbers of at least {} with colons between them "
                      "(900:200:7), found '{}'",
                      key, size.min, shown_name(text)));
    }
  }
  return text;
}

/// The given sizes, for this operator. Throws UsageError for a size that it does not have.
std::vector<GivenSize> sizes_of(const Given& given, const OpEntry& op, const Operators& operators) {
  std::vector<GivenSize> sizes;
  for (const auto& [key, values] : given) {
    const auto is_key = [&key = key](const SizeEntry& size) { return takes(size, key); };
    const bool is_size = std::any_of(operators.begin(), operators.end(), [&](const OpEntry& other) {
      return std::any_of(other.sizes.begin(), other.sizes.end(), is_key);
    });
    if (!is_size) continue;
    const auto size = std::find_if(op.sizes.begin(), op.sizes.end(), is_key);
    if (size == op.sizes.end())
      throw UsageError(
          fmt::format("{} takes no {}; it takes {}", op.name, flag_of(key), taken(op)));
    const bool twice = std::any_of(sizes.begin(), sizes.end(), [&](const GivenSize& before) {
      return before.name == size->name;
    });
    if (twice)
      throw UsageError(fmt::format("{} is given twice, once by another name", flag_of(size->name)));
    if (size->is_switch)
      sizes.push_back({size->name, 1});
    else if (size->is_list)
      sizes.push_back({size->name, checked_list(key, values.back(), *size)});
    else if (size->choices.empty())
      sizes.push_back({size->name, integer_of(given, key, 0, size->min, size->max)});
    else
      sizes.push_back({size->name, values.back()});
  }
  return sizes;
}

/// The given sizes; empty for an unknown operator, which the library reports later with similar
/// names.
std::vector<GivenSize> sizes_of(const Given& given, const std::string& name) {
  const Operators operators = op_catalog();
  for (const OpEntry& op : operators) {
    if (op.name == name && !op.sizes.empty()) return sizes_of(given, op, operators);
  }
  return {};
}

/// Of the sizes, those that are lists.
std::vector<GivenSize> lists(const std::vector<GivenSize>& sizes, const std::string& name) {
  std::vector<GivenSize> lists;
  for (const OpEntry& op : op_catalog()) {
    if (op.name != name) continue;
    for (const SizeEntry& size : op.sizes) {
      const auto given = std::find_if(sizes.begin(), sizes.end(),
                                      [&](const GivenSize& g) { return g.name == size.name; });
      if (size.is_list && given != sizes.end()) lists.push_back(*given);
    }
  }
  return lists;
}

void run_kernel(const Given& given) {
  const std::string op = text_of(given, "OP");
  const std::vector<GivenSize> sizes = sizes_of(given, op);
  const KernelOptions options = {.predictor = text_of(given, "predictor", "learned"),
                                 .software = text_of(given, "software", "pytorch"),
                                 .warm = given.count("warm") > 0,
                                 .clocks = text_of(given, "clocks", "boost")};
  const std::string output = text_of(given, "output-file");
  const GpuRef gpu = load_gpu_ref(text_of(given, "gpu"));
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  const std::vector<KernelForecast> kernels =
      forecaster.kernel(op, gpu, text_of(given, "dtype", "fp32"), sizes, options);
  std::vector<std::string> warnings = gpu.warnings();
  for (const std::string& warning : kernel_warnings(kernels)) warnings.push_back(warning);
  const KernelQuestion question = {.gpu = gpu.id(),
                                   .clocks = options.clocks,
                                   .software = options.software,
                                   .lists = lists(sizes, op)};
  if (text_of(given, "format") == "json")
    return emit(kernel_json(kernels, question, warnings), output);
  emit(kernel_table(kernels, question, output_style(output)), output, warnings);
}

}  // namespace

Command kernel_command() {
  const std::vector<OptionGroup> groups = {
      {"Arguments",
       {{.names = "OP",
         .help = "operator ('tilecast ops')",
         .kind = ValueKind::kOperator,
         .required = true}}},
      {"Options",
       {gpu_option(),
        {.names = "--dtype",
         .default_value = "fp32",
         .help = "of the operands",
         .choices = kernel_dtypes()},
        {.names = "--software",
         .default_value = "pytorch",
         .help = "whose kernels run the operator; rocblas and pipeweave are libraries of matrix "
                 "products that were measured alone",
         .choices = kernel_software()},
        {.names = "--warm",
         .help = "operands are already in L2, as when a benchmark replays the kernel"},
        pass_option("predictor"),
        pass_option("clocks"),
        format_option({"table", "json"}),
        output_option(),
        weights_option(),
        calibration_option()}}};
  return {.name = "kernel",
          .help = "One operator's kernel, explained",
          .usage = {"OP --gpu GPU [options]"},
          .groups = groups,
          .derived_groups = size_groups,
          .examples = {"tilecast kernel linear --gpu A100 -m 4096 -n 5120 -k 1280",
                       "tilecast kernel cached_attention --gpu H100 --dtype bf16 --software vllm "
                       "--batch 64 --queries 1 --keys 4096 --head-dim 128"},
          .run = run_kernel};
}

}  // namespace tilecast
