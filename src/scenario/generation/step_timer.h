#pragma once

// Times of single steps of a served model on one rank.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenario/generation/step_graph.h"
#include "scenario/timing.h"

namespace tilecast {

struct TimedStep {
  Graph graph;  ///< the launches point into it
  Program program;
  std::vector<KernelTime> times;  ///< times of the program's kernels
  Timeline timeline;
  Totals totals;      ///< with `send_s`
  double send_s = 0;  ///< of the result to the next stage
};

/// How the kernels of a step are launched.
enum class StepLaunch : uint8_t { kCudaGraph, kHost };

/// Launches of a step: all of its kernels; those that are left where the parts between attention
/// are graphs, which count as one each; calls of attention.
struct StepLaunches {
  double all = 0, pieces = 0, attention = 0;
};
StepLaunches count_launches(const Program& program);
/// Time in which the host launches a step with prompts. vLLM's graphs hold what lies between
/// attention, up to so many tokens; all other kernels are launched one by one. `mixed`: prompts
/// beside sequences that decode. All products see the tokens of both; attention has a call for
/// each.
double launching_s(const ServedModel& served, const StepLaunches& launches, double tokens,
                   bool mixed);

/// The step on one rank of a stage, with the time between two steps. `adapters` as in step_graph.
TimedStep time_step(const ServedModel& served, std::vector<StepGroup> groups, StepLaunch launch,
                    size_t stage = 0, std::optional<int64_t> adapters = {});
/// One pass, in a CUDA graph, through layers that are no stage of the model.
TimedStep time_layers(const ServedModel& served, const ServedStage& layers,
                      std::vector<StepGroup> groups);
/// One pass of a graph beside the model, whose ranks are on a node.
TimedStep time_graph(const ServedModel& served, Graph graph, StepLaunch launch);
/// One run of a vision tower, whose kernels the host launches.
TimedStep time_tower(const ServedModel& served, const TowerSteps& tower, int64_t images);

/// The kernels of a step, without their times.
struct StepKernels {
  Graph graph;  ///< the launches point into it
  Program program;
};
/// `adapters` as in step_graph.
StepKernels step_kernels(const ServedModel& served, std::vector<StepGroup> groups, size_t stage,
                         std::optional<int64_t> adapters = {});

/// Which of them; `wanted` is true for them.
struct KernelSelection {
  bool decode = false;  ///< for the kernels of exchanges: the step decodes only
  std::function<bool(const Launch&)> wanted;
};
/// Total time of the selected kernels of a step in seconds; others are not forecast.
double kernel_seconds(const ServedModel& served, const StepKernels& step,
                      const KernelSelection& selection);

/// Seconds between two steps of so many sequences in which the stage does not compute; 0 for all
/// but the last stage.
double step_overhead_s(const ServedModel& served, size_t stage, double sequences);
/// Seconds in which a graph of so many kernels starts them, beside the kernels: on AMD's GPUs.
double graph_launches_s(const ServedModel& served, double kernels);
/// Seconds to send the result of a step of so many tokens to the next stage; 0 for the last stage.
double send_seconds(const ServedModel& served, int64_t tokens, size_t stage);

}  // namespace tilecast
