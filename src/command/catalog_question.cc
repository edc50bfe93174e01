// Catalogues: the GPUs, models and so on that Tilecast knows.

#include "command/question.h"

namespace tilecast {
namespace {

struct Nothing {};

std::vector<OptionGroup> no_options() { return {{"Options", {}}}; }

template <auto Catalog>
Reply answer_catalog(Nothing&&, const Given&, const Asking&) {
  return {.answer = Catalog()};
}

template <auto Catalog>
Question catalog(std::string_view name, std::string_view help, std::string_view type) {
  return question_of<Nothing, no_options, answer_catalog<Catalog>>(name, help, {{"", type}});
}

}  // namespace

std::vector<Question> catalog_questions() {
  return {
      catalog<gpu_catalog>("gpus", "GPUs that Tilecast knows", "list[GpuEntry]"),
      catalog<cluster_catalog>("clusters", "Clusters that Tilecast knows", "list[ClusterEntry]"),
      catalog<model_catalog>("models", "Bundled models", "list[ModelEntry]"),
      catalog<op_catalog>("ops", "Operators that Tilecast knows", "list[OpEntry]")};
}

}  // namespace tilecast
