#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

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
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  Progress progress{.total = job.forests.size(), .unit = "forests", .note = ""};
  const auto work = [&] {
    while (true) {
      const size_t f = next.fetch_add(1);
      if (f >= job.forests.size()) return;
      try {
        learn_forest(job, job.forests[f]);
        const std::lock_guard lock(mutex);
        ++progress.done;
        progress.note = fmt::format("{}, held out {:.1f} %", job.forests[f].name,
                                    100 * job.forests[f].held_out_error);
        if (show) show(progress);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
        next = job.forests.size();
      }
    }
  };
  std::vector<std::jthread> threads;
  start_threads(threads, static_cast<size_t>(std::max(1, job.options.threads)), work);
  work();
  threads.clear();  // joins them
  if (failure) std::rethrow_exception(failure);
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
