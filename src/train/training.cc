#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/threads.h"
#include "tilecast/learn.h"
#include "train/forest_trainer.h"
#include "train/judge.h"
#include "train/output_folder.h"
#include "train/weights_job.h"
#include "train/write.h"

namespace tilecast {
namespace {

/// Learns the forests on several threads. Throws what learning throws; the rest is then not begun.
void learn_forests(WeightsJob& job, const ShowProgress& show) {
  std::mutex mutex;
  Progress progress{.total = job.forests.size(), .unit = "forests", .note = ""};
  run_all(job.forests.size(), std::max(1, job.options.threads), [&](size_t f) {
    learn_forest(job, job.forests[f]);
    const std::lock_guard lock(mutex);
    ++progress.done;
    progress.note = fmt::format("{}, held out {:.1f} %", job.forests[f].name,
                                100 * job.forests[f].held_out_error);
    if (show) show(progress);
  });
}

}  // namespace

TrainResult train_weights(const TrainOptions& options, const ShowProgress& progress) {
  require_xgboost();  // before minutes of reading
  const OutputFolder folder(options.output);
  WeightsJob job = weights_job(options, folder.checkpoints());
  learn_forests(job, progress);
  TrainResult result = judge(job);
  write_training(options.output, job, result);
  folder.remove_checkpoints();
  return result;
}

}  // namespace tilecast
