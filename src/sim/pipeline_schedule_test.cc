#include "sim/pipeline_schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/file.h"
#include "sim/training_step.h"

namespace tilecast {
namespace {

/// As the table writes a pass: F forward, I gradients of inputs, W gradients of weights.
std::string text_of(const PipelinePass& pass) {
  const char kind = "FBIW"[static_cast<size_t>(pass.kind)];
  return fmt::format("{}{}.{}", kind, pass.chunk, pass.microbatch);
}

/// tests/pytorch/pipeline_orders.py writes the table.
TEST(PipelineSchedules, ZeroBubbleOrdersAreThoseOfPyTorch) {
  const CsvTable table = parse_csv(read_file(TILECAST_PIPELINE_ORDERS), TILECAST_PIPELINE_ORDERS);
  ASSERT_GT(table.rows.size(), 50U);
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const bool v = table.rows[row][0] == "zb-v";
    const PipelineShape shape{v ? PipelineSchedule::kZbV : PipelineSchedule::kZeroBubble,
                              table.integer(row, 1), v ? 2 : 1, table.integer(row, 2)};
    std::string order;
    for (const PipelinePass& pass : pipeline_order(shape, table.integer(row, 3)))
      order += (order.empty() ? "" : " ") + text_of(pass);
    EXPECT_EQ(order, table.rows[row][4]) << table.place(row);
  }
}

std::vector<PipelineShape> shapes() {
  std::vector<PipelineShape> all;
  for (const int64_t stages : {1, 2, 3, 4, 8}) {
    for (const int64_t microbatches : {1, 2, 3, 7, 8, 24}) {
      for (const PipelineSchedule schedule :
           {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B, PipelineSchedule::kZeroBubble})
        all.push_back({schedule, stages, 1, microbatches});
      all.push_back({PipelineSchedule::kZbV, stages, 2, microbatches});
      if (stages > 1)
        all.push_back({PipelineSchedule::kInterleaved, stages, 3, stages * microbatches});
    }
  }
  return all;
}

/// Each pass stands once, and after the passes of its own stage that it needs; a step that waited
/// for itself through other stages could not be simulated.
TEST(PipelineSchedules, PassesStandOnceAndAfterWhatTheyNeed) {
  for (const PipelineShape& shape : shapes()) {
    const bool splits = splits_backward(shape.schedule);
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      std::set<std::string> done;
      for (const PipelinePass& pass : pipeline_order(shape, stage)) {
        PipelinePass needed = pass;
        if (pass.returns()) needed.kind = PassKind::kForward;
        if (pass.kind == PassKind::kWeightGradients) needed.kind = PassKind::kInputGradients;
        if (needed.kind != pass.kind) {
          EXPECT_EQ(done.count(text_of(needed)), 1U) << text_of(pass);
        }
        EXPECT_TRUE(done.insert(text_of(pass)).second) << text_of(pass);
      }
      EXPECT_EQ(static_cast<int64_t>(done.size()),
                (splits ? 3 : 2) * shape.chunks * shape.microbatches);
    }
  }
}

TEST(PipelineSchedules, PartsAndStagesNameEachOther) {
  for (const PipelineShape& shape : shapes()) {
    std::set<int64_t> parts;
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
        const int64_t part = part_number(shape, stage, chunk);
        EXPECT_EQ(stage_of_part(shape, part), stage);
        EXPECT_TRUE(parts.insert(part).second);
      }
    }
    EXPECT_EQ(*parts.rbegin() + 1, shape.parts());
  }
  // Forth and back: the last part is on the first stage.
  EXPECT_EQ(stage_of_part({PipelineSchedule::kZbV, 4, 2, 8}, 7), 0);
  EXPECT_EQ(stage_of_part({PipelineSchedule::kZbV, 4, 2, 8}, 4), 3);
}

struct PassTimes {
  double forward, inputs, weights;
  double all() const { return forward + inputs + weights; }
};

/// Stages whose passes take these times, on ideal links; parts of a stage share them.
TrainingStep step_of(const PipelineShape& shape, const PassTimes& times) {
  TrainingStep step;
  step.pipeline = shape;
  const auto chunks = static_cast<double>(shape.chunks);
  const double backward = (times.inputs + times.weights) / chunks;
  const PartLoad part{.forward_s = times.forward / chunks,
                      .backward_s = backward,
                      .last_backward_s = backward,
                      .weight_gradients_s = times.weights / chunks};
  step.stages.assign(static_cast<size_t>(shape.stages),
                     {.parts = std::vector<PartLoad>(static_cast<size_t>(shape.chunks), part)});
  return step;
}

/// The step beyond the passes of a stage.
double bubble_s(const PipelineShape& shape, const PassTimes& times) {
  return simulate_step(step_of(shape, times), Folding::kSymmetric).seconds -
         static_cast<double>(shape.microbatches) * times.all();
}

// Qi et al. 2023, table 1: bubbles of (p - 1)(F + B + W) and (p - 1)(F + B - W), where F, B and W
// are about alike (W no longer than the others).
TEST(PipelineSchedules, BubblesAreThoseOfTheZeroBubblePaper) {
  constexpr PassTimes kTimes[] = {{1, 1, 1}, {1, 1.2, 0.8}, {1, 1.5, 0.5}, {1, 1, 0.7}};
  for (const PassTimes& t : kTimes) {
    for (const int64_t p : {2, 3, 4, 8}) {
      for (const int64_t m : {p, 2 * p, 3 * p + 1}) {
        const auto others = static_cast<double>(p - 1);
        EXPECT_NEAR(bubble_s({PipelineSchedule::k1F1B, p, 1, m}, t), others * t.all(), 1e-9);
        EXPECT_NEAR(bubble_s({PipelineSchedule::kZeroBubble, p, 1, m}, t),
                    others * (t.forward + t.inputs - t.weights), 1e-9);
      }
    }
  }
}

// Section 6: with F = B = W, no stage waits between its first and its last pass. They start one
// after the other, half a stage's forward pass apart.
TEST(PipelineSchedules, ZbVHasNoBubbleIfAllPassesTakeAsLong) {
  constexpr PassTimes kEven{1, 1, 1};
  for (const int64_t p : {2, 3, 4, 8}) {
    for (const int64_t m : {2 * p - 1, 2 * p, 5 * p}) {
      const PipelineShape shape{PipelineSchedule::kZbV, p, 2, m};
      EXPECT_NEAR(bubble_s(shape, kEven), 0.5 * static_cast<double>(p - 1), 1e-9);
      const StepTimes times =
          simulate_step(step_of(shape, kEven), Folding::kSymmetric, Events::kAll);
      for (int64_t stage = 0; stage < p; ++stage) {
        double first_s = times.seconds, last_s = 0, busy_s = 0;
        for (const StepEvent& event : times.events) {
          if (event.stage != stage || event.stream != StepStream::kCompute) continue;
          first_s = std::min(first_s, event.start_s);
          last_s = std::max(last_s, event.start_s + event.duration_s);
          busy_s += event.duration_s;
        }
        EXPECT_NEAR(last_s - first_s, busy_s, 1e-9) << "stage " << stage;
        EXPECT_NEAR(busy_s, 3 * static_cast<double>(m), 1e-9);
      }
    }
  }
}

TEST(PipelineSchedules, AllComputeTheSameWork) {
  constexpr PassTimes kTimes{1, 1.3, 0.6};
  for (const PipelineShape& shape : shapes()) {
    const StepTimes times = simulate_step(step_of(shape, kTimes), Folding::kSymmetric);
    for (const StageTimes& stage : times.stages) {
      EXPECT_NEAR(stage.compute_s, static_cast<double>(shape.microbatches) * kTimes.all(), 1e-9);
      EXPECT_NEAR(stage.compute_s + stage.bubble_s, times.seconds, 1e-9);
    }
  }
}

/// The most bytes by a walk over the order.
int64_t walked_bytes(const PipelineShape& shape, int64_t stage, const PassBytes& bytes) {
  std::map<std::pair<int64_t, int64_t>, int64_t> held;
  int64_t most = 0;
  for (const PipelinePass& pass : pipeline_order(shape, stage)) {
    int64_t& own = held[{pass.chunk, pass.microbatch}];
    if (pass.kind == PassKind::kForward) own = bytes.saved;
    if (pass.kind == PassKind::kInputGradients) own = std::max(bytes.saved, bytes.kept);
    int64_t sum = 0;
    for (const auto& [key, held_bytes] : held) sum += held_bytes;
    most = std::max(most, sum);
    if (pass.kind == PassKind::kInputGradients) own = bytes.kept;
    if (pass.completes()) own = 0;
  }
  return most;
}

TEST(PipelineSchedules, BytesInFlightAreThoseOfAWalk) {
  for (const PipelineShape& shape : shapes()) {
    for (const PassBytes& bytes : {PassBytes{34, 32}, PassBytes{10, 40}, PassBytes{7, 0}}) {
      const std::vector<PassBytes> parts(static_cast<size_t>(shape.chunks), bytes);
      for (int64_t stage = 0; stage < shape.stages; ++stage)
        EXPECT_EQ(most_bytes_in_flight(shape, stage, parts), walked_bytes(shape, stage, bytes))
            << static_cast<int>(shape.schedule) << " " << shape.stages << " " << shape.microbatches
            << " stage " << stage;
    }
  }
}

// Qi et al. 2023, table 1 and section 6: ZB-H1 and ZB-V hold no more activations than 1F1B, p
// micro-batches of a stage, if what waits for gradients of weights is smaller.
TEST(PipelineSchedules, ZeroBubbleHoldsTheMicroBatchesOf1F1B) {
  for (const int64_t p : {2, 4, 8}) {
    const int64_t m = 3 * p;
    const std::vector<PassBytes> whole = {{2, 2}}, halves = {{1, 1}, {1, 1}};
    for (int64_t stage = 0; stage < p; ++stage) {
      EXPECT_LE(most_bytes_in_flight({PipelineSchedule::kZeroBubble, p, 1, m}, stage, whole),
                2 * p);
      EXPECT_EQ(most_bytes_in_flight({PipelineSchedule::kZbV, p, 2, m}, stage, halves), 2 * p);
    }
    EXPECT_EQ(most_bytes_in_flight({PipelineSchedule::k1F1B, p, 1, m}, 0, whole), 2 * p);
    EXPECT_EQ(most_bytes_in_flight({PipelineSchedule::k1F1B, p, 1, m}, p - 1, whole), 2);
    EXPECT_EQ(most_bytes_in_flight({PipelineSchedule::kGPipe, p, 1, m}, 0, whole), 2 * m);
  }
}

}  // namespace
}  // namespace tilecast
