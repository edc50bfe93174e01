// Catalogues: the GPUs, models and so on that Tilecast knows, all or those whose names hold a text;
// and the file of one of them.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Listed {
  std::string name;
};

std::vector<std::string> names_of(const GpuEntry& e) {
  std::vector<std::string> names = {e.id, e.name, e.architecture};
  names.insert(names.end(), e.aliases.begin(), e.aliases.end());
  return names;
}
std::vector<std::string> names_of(const ClusterEntry& e) {
  std::vector<std::string> names = {e.id, e.name, e.gpu};
  names.insert(names.end(), e.aliases.begin(), e.aliases.end());
  return names;
}
std::vector<std::string> names_of(const ModelEntry& e) { return {e.name, e.family}; }
std::vector<std::string> names_of(const OpEntry& e) { return {e.name, e.pytorch, e.onnx}; }

std::vector<OptionGroup> listed_groups() {
  return {{"Arguments",
           {{.names = "NAME",
             .help = "only those whose id, name or alias holds this text; what it names exactly is "
                     "shown with all its fields",
             .set = into<&Listed::name>()}}},
          {"Options", {}}};
}

template <auto Catalog>
Reply answer_catalog(Listed&& asked, const Given&, const Asking&) {
  auto entries = Catalog();
  if (asked.name.empty()) return {.answer = std::move(entries)};
  const std::string wanted = normalized_name(asked.name);
  std::vector<std::string> known;
  for (const auto& entry : entries) known.push_back(names_of(entry).front());
  // Names that are the text, else those that hold it.
  const auto fits = [&](const auto& entry, bool whole) {
    const std::vector<std::string> names = names_of(entry);
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      const std::string own = normalized_name(name);
      return whole ? own == wanted : own.find(wanted) != std::string::npos;
    });
  };
  const bool whole = std::any_of(entries.begin(), entries.end(),
                                 [&](const auto& entry) { return fits(entry, true); });
  std::erase_if(entries, [&](const auto& entry) { return !fits(entry, whole); });
  if (entries.empty())
    throw Error(ErrorKind::kNotFound,
                fmt::format("nothing here is named '{}'{}", shown_name(asked.name),
                            did_you_mean(asked.name, known)));
  return {.answer = std::move(entries)};
}

template <auto Catalog>
Question catalog(std::string_view name, std::string_view help, std::string_view type) {
  return question_of<Listed, listed_groups, answer_catalog<Catalog>>(name, help, {{"", type}});
}

struct WantedFile {
  std::string kind, name;
};

std::vector<OptionGroup> file_groups() {
  return {{"Arguments",
           {{.names = "KIND",
             .help = "what it describes",
             .choices = {"gpus", "clusters", "models"},
             .required = true,
             .set = into<&WantedFile::kind>()},
            {.names = "NAME",
             .help = "id, name or alias",
             .required = true,
             .set = into<&WantedFile::name>()}}}};
}

Reply answer_file(WantedFile&& asked, const Given&, const Asking&) {
  std::optional<DataFile> file = find_data_file(asked.kind, asked.name);
  if (!file)
    throw Error(ErrorKind::kNotFound,
                fmt::format("'tilecast {}' lists no '{}'", asked.kind, shown_name(asked.name)));
  return {.answer = *std::move(file)};
}

}  // namespace

std::vector<Question> catalog_questions() {
  return {
      catalog<gpu_catalog>("gpus", "GPUs that Tilecast knows", "list[GpuEntry]"),
      catalog<cluster_catalog>("clusters", "Clusters that Tilecast knows", "list[ClusterEntry]"),
      catalog<model_catalog>("models", "Bundled models", "list[ModelEntry]"),
      catalog<op_catalog>("ops", "Operators that Tilecast knows", "list[OpEntry]"),
      question_of<WantedFile, file_groups, answer_file>(
          "data_file", "The file of a GPU, a cluster or a bundled model, as text", {{"", "str"}})};
}

}  // namespace tilecast
