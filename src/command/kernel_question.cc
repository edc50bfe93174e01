// One operator's kernels. Names and help of the sizes are derived from the operator table.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

struct OneKernel {
  std::string op;
  GpuSource gpu;
  std::string dtype = "fp32";
  KernelOptions options;
  ForecasterSource forecaster;
};
using Operators = std::vector<OpEntry>;

bool takes(const SizeEntry& size, const std::string& key) {
  return key_of(size.name) == key ||
         std::any_of(size.other_names.begin(), size.other_names.end(),
                     [&](const std::string& other) { return key_of(other) == key; });
}

using Alike = std::vector<const OpEntry*>;  ///< operators with the same sizes

/// Whether the name is the main name of a size of any operator, and so has its own option.
bool is_main_name(const std::vector<Alike>& groups, const std::string& name) {
  for (const Alike& group : groups) {
    for (const SizeEntry& size : group.front()->sizes) {
      if (size.name == name) return true;
    }
  }
  return false;
}

/// The sizes are read by `sizes_of`, which knows the operator.
void read_later(void*, const CommandOption&, const GivenValue&) {}

CommandOption option_of(const SizeEntry& size, const std::vector<Alike>& groups) {
  CommandOption option = {
      .names = "--" + key_of(size.name), .help = size.description, .set = read_later};
  // A name of one letter gets both -m and --m.
  if (size.name.size() == 1) option.names = "-" + size.name + "," + option.names;
  for (const std::string& other : size.other_names) {
    if (!is_main_name(groups, other)) option.old_names.push_back("--" + key_of(other));
  }
  if (size.is_switch) {
    option.type = ValueType::kSwitch;
    return option;
  }
  option.value = size.is_list            ? "N:N:..."
                 : size.choices.empty()  ? "N"
                 : size.name == "scheme" ? "SCHEME"
                                         : "DTYPE";
  if (!size.is_list && size.choices.empty()) option.type = ValueType::kWhole;
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
  std::vector<std::string> names;
  for (const SizeEntry& size : op.sizes) names.push_back("`" + key_of(size.name) + "`");
  return join(names, ", ");
}

/// The value of a size. Throws OptionError.
std::variant<int64_t, std::string> value_of(const std::string& key, const std::string& text,
                                            const SizeEntry& size) {
  const CommandOption range = {.names = "--" + key, .min = size.min, .max = size.max};
  if (size.is_switch) return int64_t{text == "on" || text == "1"};
  if (!size.is_list && !size.choices.empty()) return text;
  if (!size.is_list) return whole_of(range, text);
  for (const std::string& part : split(text, ':')) {
    try {
      whole_of(range, part);
    } catch (const OptionError&) {
      throw OptionError(
          fmt::format("`{}`: expected whole numbers of at least {} with colons between them "
                      "(900:200:7), found '{}'",
                      key, size.min, shown_name(text)));
    }
  }
  return text;
}

/// The given sizes, for this operator. Throws OptionError for a size that it does not have.
std::vector<GivenSize> sizes_of(const Given& given, const OpEntry& op, const Operators& operators) {
  std::vector<GivenSize> sizes;
  for (const auto& [key, value] : given) {
    const auto is_key = [&key = key](const SizeEntry& size) { return takes(size, key); };
    const bool is_size = std::any_of(operators.begin(), operators.end(), [&](const OpEntry& other) {
      return std::any_of(other.sizes.begin(), other.sizes.end(), is_key);
    });
    if (!is_size) continue;
    const auto size = std::find_if(op.sizes.begin(), op.sizes.end(), is_key);
    if (size == op.sizes.end())
      throw OptionError(fmt::format("{} takes no `{}`; it takes {}", op.name, key, taken(op)));
    const bool twice = std::any_of(sizes.begin(), sizes.end(), [&](const GivenSize& before) {
      return before.name == size->name;
    });
    if (twice)
      throw OptionError(
          fmt::format("`{}` is given twice, once by another name", key_of(size->name)));
    sizes.push_back({size->name, value_of(key, value.texts.back(), *size)});
  }
  return sizes;
}

/// The given sizes; empty for an unknown operator, which the library reports later with similar
/// names. `lists` gets those that are lists.
std::vector<GivenSize> sizes_of(const Given& given, const std::string& name,
                                std::vector<GivenSize>& lists) {
  const Operators operators = op_catalog();
  for (const OpEntry& op : operators) {
    if (op.name != name || op.sizes.empty()) continue;
    std::vector<GivenSize> sizes = sizes_of(given, op, operators);
    for (const SizeEntry& size : op.sizes) {
      const auto found = std::find_if(sizes.begin(), sizes.end(),
                                      [&](const GivenSize& g) { return g.name == size.name; });
      if (size.is_list && found != sizes.end()) lists.push_back(*found);
    }
    return sizes;
  }
  return {};
}

std::vector<OptionGroup> kernel_groups() {
  std::vector<CommandOption> options = {
      gpu_option(into<&OneKernel::gpu>()),
      {.names = "--dtype",
       .default_value = "fp32",
       .help = "of the operands",
       .choices = kernel_dtypes(),
       .set = into<&OneKernel::dtype>()},
      {.names = "--software",
       .default_value = "pytorch",
       .help = "whose kernels run the operator; rocblas, pipeweave and aiter are libraries of "
               "matrix products (aiter also of experts) that were measured alone",
       .choices = kernel_software(),
       .set = into<&OneKernel::options, &KernelOptions::software>()},
      switch_option("warm", "operands are already in L2, as when a benchmark replays the kernel",
                    into<&OneKernel::options, &KernelOptions::warm>()),
      request_option("predictor", RequestKind::kPass,
                     into<&OneKernel::options, &KernelOptions::predictor>()),
      request_option("clocks", RequestKind::kPass,
                     into<&OneKernel::options, &KernelOptions::clocks>())};
  for (const CommandOption& option : forecaster_options<OneKernel>()) options.push_back(option);
  std::vector<OptionGroup> all = {{"Arguments",
                                   {{.names = "OP",
                                     .help = "operator ('tilecast ops')",
                                     .kind = ValueKind::kOperator,
                                     .required = true,
                                     .set = into<&OneKernel::op>()}}},
                                  {"Options", std::move(options)}};
  for (OptionGroup& sizes : size_groups()) all.push_back(std::move(sizes));
  return all;
}

Reply answer_kernel(OneKernel&& asked, const Given& given, const Asking&) {
  std::vector<GivenSize> lists;
  const std::vector<GivenSize> sizes = sizes_of(given, asked.op, lists);
  const GpuRef gpu = asked.gpu.load();
  KernelAnswer answer =
      asked.forecaster.load()->explained_kernel(asked.op, gpu, asked.dtype, sizes, asked.options);
  answer.asked.lists = std::move(lists);
  answer.warnings = gpu.warnings();
  for (const std::string& warning : kernel_warnings(answer.kernels))
    answer.warnings.push_back(warning);
  answer.asked.gpu = gpu.id();
  answer.asked.clocks = asked.options.clocks;
  answer.asked.software = asked.options.software;
  std::vector<std::string> warnings = answer.warnings;
  return {.answer = std::move(answer), .warnings = std::move(warnings)};
}

}  // namespace

Question kernel_question() {
  return question_of<OneKernel, kernel_groups, answer_kernel>(
      "kernel", "One operator's kernel, explained", {{"", "KernelAnswer"}});
}

}  // namespace tilecast
