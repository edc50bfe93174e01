#include "schema/results.h"

#include <fmt/format.h>

#include <array>

#include "schema/fields.h"
#include "tilecast/allocate.h"
#include "tilecast/forecast.h"
#include "tilecast/learn.h"
#include "tilecast/profile.h"
#include "tilecast/result.h"
#include "tilecast/search.h"
#include "tilecast/share.h"

namespace tilecast {

// The results below, and records that are written alone.
template const RecordDef& record_of<AcceleratorEvaluations>();
template const RecordDef& record_of<AcceleratorForecast>();
template const RecordDef& record_of<AcceleratorLayer>();
template const RecordDef& record_of<AllocatedPlace>();
template const RecordDef& record_of<AllocationForecast>();
template const RecordDef& record_of<CalibrateResult>();
template const RecordDef& record_of<ClusterSimulation>();
template const RecordDef& record_of<PolicyOutcome>();
template const RecordDef& record_of<ClusterEntry>();
template const RecordDef& record_of<CollectiveForecast>();
template const RecordDef& record_of<TraceReport>();
template const RecordDef& record_of<TracedOperator>();
template const RecordDef& record_of<CollectiveTrainResult>();
template const RecordDef& record_of<ComparedGpu>();
template const RecordDef& record_of<Comparison>();
template const RecordDef& record_of<KernelDifference>();
template const RecordDef& record_of<Interval>();
template const RecordDef& record_of<Evaluation>();
template const RecordDef& record_of<Forecast>();
template const RecordDef& record_of<ForecastTotals>();
template const RecordDef& record_of<GpuComparison>();
template const RecordDef& record_of<GpuEntry>();
template const RecordDef& record_of<Installation>();
template const RecordDef& record_of<KernelAnswer>();
template const RecordDef& record_of<KernelForecast>();
template const RecordDef& record_of<GenerationForecast>();
template const RecordDef& record_of<MemoryTimeline>();
template const RecordDef& record_of<PowerTimeline>();
template const RecordDef& record_of<ModelEntry>();
template const RecordDef& record_of<OpEntry>();
template const RecordDef& record_of<ProductAnswer>();
template const RecordDef& record_of<ServerMetrics>();
template const RecordDef& record_of<ServingCandidateRow>();
template const RecordDef& record_of<ServingPlan>();
template const RecordDef& record_of<ShardForecast>();
template const RecordDef& record_of<ShareForecast>();
template const RecordDef& record_of<SharedJob>();
template const RecordDef& record_of<PairCalibration>();
template const RecordDef& record_of<SharingEvaluation>();
template const RecordDef& record_of<SharingPoint>();
template const RecordDef& record_of<ServerEvaluation>();
template const RecordDef& record_of<ServerPoint>();
template const RecordDef& record_of<StepForecast>();
template const RecordDef& record_of<SweepResult>();
template const RecordDef& record_of<TrainResult>();
template const RecordDef& record_of<TrainingCandidateRow>();
template const RecordDef& record_of<TrainingPlan>();
template const RecordDef& record_of<TrainingPlans>();
template const RecordDef& record_of<TuneEvaluations>();
template const RecordDef& record_of<TuneAnswer>();

std::span<const ResultDef> results() {
  static const std::array kResults = {
      ResultDef{"forecast", "forecast MODEL --gpu GPU", &record_of<Forecast>()},
      ResultDef{"prompt", "forecast MODEL --gpu GPU --prompt N", &record_of<GenerationForecast>()},
      ResultDef{"accelerator", "forecast MODEL --gpu ACCELERATOR",
                &record_of<AcceleratorForecast>()},
      ResultDef{"gpu_comparison", "forecast MODEL --gpus A,B", &record_of<GpuComparison>()},
      ResultDef{"comparison", "compare A B", &record_of<Comparison>()},
      ResultDef{"memory", "forecast MODEL --gpu GPU --memory-timeline json",
                &record_of<MemoryTimeline>()},
      ResultDef{"power", "forecast MODEL --gpu GPU --power-timeline json",
                &record_of<PowerTimeline>()},
      ResultDef{"kernel", "kernel OP --gpu GPU", &record_of<KernelAnswer>()},
      ResultDef{"collective", "collective KIND --cluster C", &record_of<CollectiveForecast>()},
      ResultDef{"plan", "plan MODEL --cluster C", &record_of<TrainingPlan>()},
      ResultDef{"plan_gpus", "plan MODEL --gpus A,B", &record_of<TrainingPlans>()},
      ResultDef{"plan_serving", "plan MODEL --gpus A,B --prompt N", &record_of<ServingPlan>()},
      ResultDef{"shard", "shard TABLES --cluster C", &record_of<ShardForecast>()},
      ResultDef{"tune", "tune PROBLEM --gpu GPU", &record_of<TuneAnswer>()},
      ResultDef{"tune_product", "tune \"gemm m=M n=N k=K\" --gpu GPU", &record_of<ProductAnswer>()},
      ResultDef{"evaluate", "evaluate PATH", &record_of<Evaluation>()},
      ResultDef{"tune_evaluation", "evaluate find_ARCH.csv", &record_of<TuneEvaluations>()},
      ResultDef{"accelerator_evaluation", "evaluate CYCLES.csv",
                &record_of<AcceleratorEvaluations>()},
      ResultDef{"sharing_evaluation", "evaluate PAIRS.csv --jobs FILE",
                &record_of<SharingEvaluation>()},
      ResultDef{"server_evaluation", "evaluate SERVERS.csv --servers FILE",
                &record_of<ServerEvaluation>()},
      ResultDef{"train", "train --data PATH -o FOLDER", &record_of<TrainResult>()},
      ResultDef{"train_collectives", "train --collectives --data PATH -o FOLDER",
                &record_of<CollectiveTrainResult>()},
      ResultDef{"calibrate", "calibrate --gpu GPU --measurements FILE -o FILE",
                &record_of<CalibrateResult>()},
      ResultDef{"calibrate_pairs", "calibrate --gpu GPU --pairs FILE --jobs FILE -o FILE",
                &record_of<PairCalibration>()},
      ResultDef{"sweep", "sweep SPEC -o FILE", &record_of<SweepResult>()},
      ResultDef{"share", "share --gpu GPU --job JOB", &record_of<ShareForecast>()},
      ResultDef{"trace", "trace TRACE", &record_of<TraceReport>()},
      ResultDef{"allocate", "allocate JOBS --pool 8xH100,4xL4", &record_of<AllocationForecast>()},
      ResultDef{"allocate_arrivals", "allocate JOBS --pool 8xH100,4xL4 --arrivals FILE",
                &record_of<ClusterSimulation>()},
      ResultDef{"gpus", "gpus", &record_of<GpuEntry>(), true},
      ResultDef{"clusters", "clusters", &record_of<ClusterEntry>(), true},
      ResultDef{"models", "models", &record_of<ModelEntry>(), true},
      ResultDef{"ops", "ops", &record_of<OpEntry>(), true},
      ResultDef{"doctor", "doctor", &record_of<Installation>()},
  };
  return kResults;
}

std::string result_command(const ResultDef& result) {
  const bool names_format = result.command.ends_with("json");
  return fmt::format("tilecast {}{}", result.command, names_format ? "" : " --format json");
}

}  // namespace tilecast
