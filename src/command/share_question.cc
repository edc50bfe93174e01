// Jobs that share a GPU: how fast each is beside the others.

#include <fmt/format.h>

#include "command/job_source.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"
#include "tilecast/share.h"

namespace tilecast {
namespace {

struct ShareQuestion {
  GpuSource gpu;
  std::vector<std::string> jobs, files;
  ShareHow how = ShareHow::kTimeSlice;
  ForecasterSource forecaster;
};

std::vector<OptionGroup> share_groups() {
  constexpr auto kHow = choice_words(ShareHow{});
  std::vector<OptionGroup> groups = {
      {"Options",
       {gpu_option(into<&ShareQuestion::gpu>()),
        {.names = "--job",
         .value = "JOB",
         .help = "'MODEL option=value ...': options of a forecast, and of the job: name, loader_s "
                 "(seconds of input and host of a step beside its kernels; 0: the input never "
                 "binds), prefetch (batches that the loader is ahead), steps_per_s (measured alone "
                 "on this GPU), processes, slice (of MIG), mps_percent; may be given several times",
         .repeated = true,
         .set = into<&ShareQuestion::jobs>()},
        {.names = "--jobs",
         .value = "FILE",
         .help = "jobs of a file: {\"jobs\": [{\"model\": \"gpt2\", \"batch\": 4}]}; may be given "
                 "several times",
         .kind = ValueKind::kFile,
         .repeated = true,
         .set = into<&ShareQuestion::files>()},
        {.names = "--how",
         .default_value = std::string(kHow.front()),
         .help = "processes take turns in slices of time; kernels of processes under MPS, or of "
                 "streams of one process, are in one queue; slices of MIG are chosen for the "
                 "largest sum of relative speeds",
         .choices = {kHow.begin(), kHow.end()},
         .set = into<&ShareQuestion::how>()}}}};
  const std::vector<CommandOption> last = forecaster_options<ShareQuestion>();
  groups.front().options.insert(groups.front().options.end(), last.begin(), last.end());
  return groups;
}

Reply answer_share(ShareQuestion&& asked, const Given&, const Asking&) {
  if (asked.jobs.empty() && asked.files.empty()) throw MissingOption("`job`");
  JobReader reader;
  for (const std::string& file : asked.files) reader.add_file(file);
  for (const std::string& text : asked.jobs) reader.add_text(text);
  ShareQuery query{.how = asked.how};
  for (AskedJob& job : reader.take()) query.jobs.push_back(std::move(job.job));
  return {.answer = share_gpu(*asked.forecaster.load(), asked.gpu.load(), query)};
}

}  // namespace

Question share_question() {
  return question_of<ShareQuestion, share_groups, answer_share>(
      "share", "Jobs that share a GPU: the speed of each, and whether it is worth it",
      {{"", "ShareForecast"}});
}

}  // namespace tilecast
