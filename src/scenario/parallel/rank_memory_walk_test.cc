// Memory of ranks against a walk over their step that shares no code with the forecast: it runs the
// passes of all micro-batches in the schedule's order, layer by layer, takes a block for each
// tensor that a node makes, and frees it after its last reader.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/op_def.h"
#include "passes/stage.h"
#include "scenario/internal.h"
#include "scenario/parallel/model_part.h"
#include "scenario/parallel/rank_memory.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "training_steps.h"

namespace tilecast {
namespace {

constexpr int64_t kBlock = 512;  // PyTorch's allocator
constexpr double kExact = 1e-4;  // small tensors are rounded to blocks, or counted as they are

/// Variables of Python code are no part of this walk.
Graph without_variables(Graph graph) {
  for (Tensor& tensor : graph.tensors) tensor.held = Held::kNo;
  return graph;
}

class StepWalk {
 public:
  StepWalk(const Graph& graph, bool sends) : graph_(graph), sends_(sends) {}

  void forward(int64_t micro_batch) {
    Run& run = runs_[micro_batch];
    run.env.assign(graph_.tensors.size(), kNone);
    for (size_t id = 0; id < graph_.tensors.size(); ++id) {
      if (is_received(graph_.tensors[id])) run.env[id] = take(graph_.tensors[id]);
    }
    run_phase(run, Phase::kForward);
  }
  void backward(int64_t micro_batch) {
    Run& run = runs_[micro_batch];
    run_phase(run, Phase::kBackward);
    for (const auto* ids : {&graph_.outputs, &graph_.losses}) {
      for (const TensorId id : *ids) {
        if (!sends_) use(run.env[static_cast<size_t>(id)]);
      }
    }
    last_ = micro_batch;
  }
  void optimizer() {
    ++step_;
    optimizer_from_ = step_;
    run_phase(runs_[last_], Phase::kOptimizer);
  }

  /// The largest sum of blocks before the optimizer step and in it.
  struct Peaks {
    int64_t passes = 0, optimizer = 0;
  };
  Peaks peaks() const {
    std::vector<int64_t> change(static_cast<size_t>(step_) + 2, 0);
    for (const Block& block : blocks_) {
      change[static_cast<size_t>(block.born)] += block.bytes;
      change[static_cast<size_t>(block.last) + 1] -= block.bytes;
    }
    Peaks peaks;
    int64_t bytes = 0;
    for (int64_t step = 0; step <= step_; ++step) {
      bytes += change[static_cast<size_t>(step)];
      int64_t& peak = step < optimizer_from_ ? peaks.passes : peaks.optimizer;
      peak = std::max(peak, bytes);
    }
    return peaks;
  }

 private:
  using Env = std::vector<int64_t>;  ///< by tensor: its block; kNone: no memory of the walk's
  static constexpr int64_t kNone = -1;

  struct Block {
    int64_t bytes = 0, born = 0, last = 0;
  };
  struct Run {
    Env env;
    std::map<int32_t, std::vector<Env>> repetitions;  ///< of forward segments
  };

  int64_t take(const Tensor& tensor) {
    const int64_t blocks = (memory_bytes(tensor) + kBlock - 1) / kBlock;
    blocks_.push_back({blocks * kBlock, step_, step_});
    return static_cast<int64_t>(blocks_.size()) - 1;
  }
  void use(int64_t block) {
    if (block != kNone) blocks_[static_cast<size_t>(block)].last = step_;
  }

  void run_phase(Run& run, Phase phase) {
    for (size_t s = 0; s < graph_.segments.size(); ++s) {
      const Segment& segment = graph_.segments[s];
      if (segment.node_count == 0 ||
          graph_.nodes[static_cast<size_t>(segment.first_node)].phase != phase)
        continue;
      for (int64_t r = 0; r < segment.repeat; ++r)
        run_body(run, static_cast<int32_t>(s), r, phase == Phase::kForward);
    }
  }

  void run_body(Run& run, int32_t index, int64_t repetition, bool forward) {
    const Segment& segment = graph_.segments[static_cast<size_t>(index)];
    Env& env = run.env;
    const Env before = env;
    for (const Carry& carry : segment.carries) {
      if (repetition > 0)
        env[static_cast<size_t>(carry.initial)] = before[static_cast<size_t>(carry.next)];
    }
    // A layer of the backward pass sees the tensors of its layer of the forward pass.
    if (segment.reverses) show(run, *segment.reverses, segment.repeat - 1 - repetition);
    for (int32_t i = 0; i < segment.node_count; ++i)
      run_node(env, graph_.nodes[static_cast<size_t>(segment.first_node + i)]);
    if (forward) run.repetitions[index].push_back(env);
    for (const Carry& carry : segment.carries) {
      if (forward && repetition + 1 == segment.repeat)
        env[static_cast<size_t>(carry.initial)] =
            run.repetitions[index][0][static_cast<size_t>(carry.initial)];
    }
  }

  void show(Run& run, int32_t forward, int64_t repetition) {
    const Env& then = run.repetitions[forward][static_cast<size_t>(repetition)];
    for (size_t id = 0; id < graph_.tensors.size(); ++id) {
      if (graph_.tensors[id].segment == forward) run.env[id] = then[id];
    }
    for (const Carry& carry : graph_.segments[static_cast<size_t>(forward)].carries)
      run.env[static_cast<size_t>(carry.initial)] = then[static_cast<size_t>(carry.initial)];
  }

  void run_node(Env& env, const Node& node) {
    if (node.counts == Counts::kTimeOnly) {  // the last input of the same size takes its place
      for (const TensorId out : node.outputs) {
        for (const TensorId in : node.inputs) {
          if (graph_.tensor(in).dtype == graph_.tensor(out).dtype &&
              element_count(graph_.tensor(in).shape) == element_count(graph_.tensor(out).shape))
            env[static_cast<size_t>(out)] = env[static_cast<size_t>(in)];
        }
      }
      return;
    }
    ++step_;
    for (const TensorId id : node.inputs) use(env[static_cast<size_t>(id)]);
    // Into the buffer of gradients, in place.
    if (!node.inputs.empty() && graph_.tensor(node.inputs[0]).kind == TensorKind::kGradient) return;
    for (const TensorId id : node.outputs) {
      const Tensor& tensor = graph_.tensor(id);
      const bool view = tensor.storage != id;
      if (!view && tensor.kind != TensorKind::kActivation) continue;
      int64_t& block = env[static_cast<size_t>(id)];
      block = view ? env[static_cast<size_t>(tensor.storage)] : take(tensor);
      use(block);
    }
  }

  const Graph& graph_;
  const bool sends_;
  std::map<int64_t, Run> runs_;
  std::vector<Block> blocks_;
  int64_t step_ = 0, last_ = 0, optimizer_from_ = INT64_MAX;
};

/// Megatron-LM's 1F1B: as many forward passes as stages follow, then one of each in turn.
void run_1f1b(StepWalk& walk, int64_t micro_batches, int64_t stages_after) {
  const int64_t ahead = std::min(micro_batches, stages_after);
  int64_t next = 0;
  for (; next < ahead; ++next) walk.forward(next);
  for (int64_t done = 0; done < micro_batches; ++done) {
    if (next < micro_batches) walk.forward(next++);
    walk.backward(done);
  }
  walk.optimizer();
}

struct Layout {
  std::string model;
  int64_t dp = 1, tp = 1, pp = 1, ep = 1;
  Zero zero = Zero::kNone;
  Checkpointing checkpointing = Checkpointing::kNone;
};

/// Bytes of tensors that are there all the time, each repetition its own; experts of three
/// dimensions apart.
struct States {
  int64_t weights = 0, gradients = 0, optimizer = 0;
  int64_t inputs = 0;  ///< of the model, not what another stage sends
  int64_t expert_weights = 0, expert_gradients = 0;
};

States states_of(const Graph& graph) {
  States s;
  for (const Tensor& tensor : graph.tensors) {
    const int64_t bytes = memory_bytes(tensor) * graph.repeat_of(tensor.segment);
    const bool experts = tensor.shape.size() == 3;
    if (tensor.kind == TensorKind::kWeight || tensor.kind == TensorKind::kBuffer)
      (experts ? s.expert_weights : s.weights) += bytes;
    if (tensor.kind == TensorKind::kGradient) (experts ? s.expert_gradients : s.gradients) += bytes;
    if (tensor.kind == TensorKind::kOptimizer) s.optimizer += bytes;
    if (tensor.kind == TensorKind::kInput && !is_received(tensor)) s.inputs += bytes;
  }
  return s;
}

/// FSDP holds the unit that computes and the next one: layers, beside what is outside of them.
int64_t gathered(const Graph& graph) {
  std::map<int32_t, int64_t> layers;
  int64_t outside = 0, largest = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kWeight || tensor.segment < 0) continue;
    const bool layer = !graph.segments[static_cast<size_t>(tensor.segment)].carries.empty();
    (layer ? layers[tensor.segment] : outside) += memory_bytes(tensor);
  }
  for (const auto& [segment, bytes] : layers) largest = std::max(largest, bytes);
  return outside + 2 * largest;
}

void compare(const Layout& l) {
  constexpr int64_t kMicroBatches = 4;
  Request request = training(l.dp * kMicroBatches);
  request.seq = 128;
  request.optimizer = Optimizer::kAdam;
  request.execution.dtype = "bf16";
  request.execution.software = software_of("megatron");
  request.execution.attention = AttentionKind::kFlash;
  request.execution.dp = l.dp;
  request.execution.tp = l.tp;
  request.execution.pp = l.pp;
  request.parallel.ep = l.ep;
  request.parallel.zero = l.zero;
  request.checkpointing = l.checkpointing;
  request.parallel.micro_batch_size = 1;
  request.parallel.main_params = MainParams::kFp32;
  request.parallel.cluster = "dgx-a100";
  request.parallel.sequence_parallel = l.tp > 1;
  const ModelRef model_ref = load_model_ref(l.model);
  const GpuRef gpu_ref = load_gpu_ref("nvidia-a100-sxm4-80gb");
  const Model& model = model_ref.content->model;
  const Device& device = gpu_ref.content->device;
  const CheckedPass pass = checked_pass(model, device, request);
  const PassSetup setup{model, device, pass.request, pass.precision};
  const ModelModules modules = rank_modules(setup, rank_share(model, pass.request));
  const RankLayout layout =
      lay_out_ranks(model, cluster_of(device, pass.request), modules.layers, pass.request);
  for (int64_t stage = 0; stage < l.pp; ++stage) {
    const std::string where =
        l.model + " dp " + std::to_string(l.dp) + " tp " + std::to_string(l.tp) + " pp " +
        std::to_string(l.pp) + " ep " + std::to_string(l.ep) + " zero " +
        std::to_string(static_cast<int>(l.zero)) + " stage " + std::to_string(stage);
    const LayerRange& layers = layout.parts[static_cast<size_t>(stage)];
    const Graph graph = without_variables(part_graph({setup, layout, modules.graph}, layers));
    const LifetimeOptions options{.zero_grad = pass.request.zero_grad,
                                  .outputs_sent = !layers.has_end};
    ModelPart part;
    part.pass.work = std::make_shared<const PassWork>(graph, options);
    part.memory = part_memory(*part.pass.work, options);
    const PassMemory memory = rank_memory({&part}, stage, setup, layout);

    StepWalk walk(graph, !layers.has_end);
    run_1f1b(walk, kMicroBatches, l.pp - 1 - stage);
    const StepWalk::Peaks peaks = walk.peaks();
    const States states = states_of(graph);
    // An expert has dp / ep replicas where other weights have dp.
    const auto held = [&](int64_t bytes, int64_t experts, bool divided) {
      if (!divided) return static_cast<double>(bytes + experts);
      return (static_cast<double>(bytes) +
              static_cast<double>(experts) * static_cast<double>(l.ep)) /
             static_cast<double>(l.dp);
    };
    const bool divides_weights = l.zero == Zero::kParameters;
    const double permanent =
        held(states.weights, states.expert_weights, divides_weights) +
        held(states.gradients, states.expert_gradients, l.zero >= Zero::kGradients) +
        static_cast<double>(states.optimizer);
    const double passing =
        static_cast<double>(peaks.passes + (divides_weights ? gathered(graph) : 0));
    const double expected = permanent + static_cast<double>(states.inputs) +
                            std::max(passing, static_cast<double>(peaks.optimizer));
    const auto found =
        static_cast<double>(memory.peak_bytes - memory.framework_bytes - memory.workspace_bytes);
    const auto passes = static_cast<double>(memory.activations_bytes);
    EXPECT_NEAR(passes / static_cast<double>(peaks.passes + states.inputs), 1, kExact) << where;
    EXPECT_EQ(memory.optimizer_temporaries_bytes, peaks.optimizer) << where;
    // What a stage receives is counted in the optimizer step too.
    EXPECT_NEAR(found / expected, 1, 1e-3) << where << ": " << found << " " << expected;
  }
}

TEST(RankMemory, IsThatOfAWalkOverTheStep) {
  for (const int64_t pp : {1, 2, 4}) compare({.model = "gpt2", .dp = 2, .pp = pp});
  compare({.model = "gpt2", .tp = 4});
  compare({.model = "llama-3.2-1b", .dp = 2, .tp = 2, .pp = 2});
  compare({.model = "llama-3.2-1b", .pp = 4, .checkpointing = Checkpointing::kFull});
}

TEST(RankMemory, IsThatOfAWalkOverTheStepWithDividedStates) {
  for (const Zero zero : {Zero::kNone, Zero::kOptimizer, Zero::kGradients, Zero::kParameters})
    compare({.model = "gpt2", .dp = 4, .zero = zero});
}

TEST(RankMemory, IsThatOfAWalkOverTheStepWithExperts) {
  for (const Zero zero : {Zero::kNone, Zero::kOptimizer, Zero::kParameters})
    compare({.model = "qwen3-30b-a3b", .dp = 8, .ep = 4, .zero = zero});
  compare({.model = "deepseek-v2-lite", .dp = 4, .tp = 2, .pp = 2, .ep = 2});
}

}  // namespace
}  // namespace tilecast
