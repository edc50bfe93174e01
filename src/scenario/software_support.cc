#include "scenario/software_support.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "request/access.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

bool runs_on(const SoftwareDef& software, std::string_view architecture) {
  const std::vector<std::string> known = split(software.support.architectures, ' ');
  return known.front() == "any" ||
         std::find(known.begin(), known.end(), architecture) != known.end();
}

}  // namespace

void check_runs_on(Software software, const Device& device) {
  const SoftwareDef& def = software_def(software);
  const Gpu* const gpu = device.as_gpu();
  if (gpu == nullptr) return;
  const std::string& architecture = choice_name(gpu->architecture);
  if (runs_on(def, architecture)) return;
  std::vector<std::string> others;
  for (const std::string& name : model_software_names()) {
    if (runs_on(software_def(software_of(name)), architecture)) others.push_back(name);
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("`software` {}: {} does not run on {} ({}), but on {}; use `software` {}",
                          def.name, def.title, device.name, architecture,
                          join(split(def.support.architectures, ' '), ", "), join(others, " or ")));
}

}  // namespace tilecast
