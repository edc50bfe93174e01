#include "tilecast/train.h"
#include "train/forest_trainer.h"
#include "train/job_runner.h"
#include "train/judge.h"
#include "train/output_folder.h"
#include "train/plan.h"
#include "train/processor.h"
#include "train/write.h"

namespace tilecast {

TrainResult train_weights(const TrainOptions& options, const ShowProgress& progress) {
  // Before minutes of reading and training.
  require_training_instructions();
  require_xgboost();
  const OutputFolder folder(options.output);
  TrainingPlan plan = plan_training(options, folder.checkpoints());
  JobRunner runner(options.threads, static_cast<int>(plan.networks) * options.epochs, progress);
  runner.run(base_model_jobs(plan));
  runner.run(residual_jobs(plan));
  TrainResult result = judge(plan);
  write_training(options.output, plan, runner.history(), result);
  folder.remove_checkpoints();
  return result;
}

}  // namespace tilecast
