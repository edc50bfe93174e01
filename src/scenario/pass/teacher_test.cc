// Distillation: the teacher's forward pass beside the training of a model.

#include <gtest/gtest.h>

#include <string>

#include "test_support.h"
#include "training_steps.h"

namespace tilecast {
namespace {

Request taught(const std::string& teacher) {
  Request request = training(4);
  request.execution.dtype = "bf16";
  request.execution.attention = AttentionKind::kFlash;
  request.optimizer = Optimizer::kAdamW;
  request.loss = Loss::kFull;
  request.teacher = teacher;
  return request;
}

constexpr const char* kStudent = "llama-3.2-1b";
constexpr const char* kTeacher = "llama-3-8b";  // with the same vocabulary
constexpr double kVocabulary = 128256, kTokens = 4 * 1024;

double gemm_flops(const Forecast& f) {
  double flops = 0;
  for (const KernelForecast& k : f.kernels) {
    if (k.shape.type == "gemm") flops += static_cast<double>(k.flops * k.count);
  }
  return flops;
}

/// The products are those of the student's training and of the teacher's inference.
TEST(Teacher, AddsItsForwardPass) {
  const Forecast both = forecast(taught(kTeacher), kStudent),
                 student = forecast(taught(""), kStudent);
  Request inference{.batch = 4, .seq = 1024};
  inference.execution.dtype = "bf16";
  inference.execution.attention = AttentionKind::kFlash;
  const Forecast teacher = forecast(inference, kTeacher);
  EXPECT_NEAR(gemm_flops(both), gemm_flops(student) + gemm_flops(teacher), 1);
  EXPECT_NEAR(both.latency_s - student.latency_s, teacher.latency_s, 0.15 * teacher.latency_s);
  EXPECT_EQ(both.parameters, student.parameters);
  // Weights without gradients and states.
  EXPECT_EQ(both.memory.weights_bytes, student.memory.weights_bytes + teacher.memory.weights_bytes);
  EXPECT_EQ(both.memory.gradients_bytes, student.memory.gradients_bytes);
  EXPECT_EQ(both.memory.optimizer_bytes, student.memory.optimizer_bytes);
  for (const KernelForecast& k : both.kernels) {
    if (std::string(k.name).starts_with("teacher.")) {
      EXPECT_EQ(k.phase, "forward") << k.name;
    }
  }
}

/// In fp32: both logits are cast and divided, two softmaxes; then three kernels and a sum. The
/// backward pass has the product with the teacher's probabilities and its sign, the softmax and the
/// division.
TEST(Teacher, LossReadsBothLogits) {
  const Forecast f = forecast(taught(kTeacher), kStudent);
  double bytes = 0;
  bool cross_entropy = false;
  for (const KernelForecast& k : f.kernels) {
    const std::string name(k.name);
    if (name.starts_with("loss.")) bytes += static_cast<double>(k.bytes * k.count);
    cross_entropy = cross_entropy || name.find("nll_loss") != std::string::npos ||
                    name.find("cross_entropy") != std::string::npos;
  }
  EXPECT_FALSE(cross_entropy);
  const double logits = kTokens * kVocabulary;
  // Forward: 2 × (2 + 4, 4 + 4, 4 + 4), 8, 12, 12, 4. Backward, at least: three passes of 8 to 12
  // and the cast, 4 + 2.
  const double forward = 2 * (6 + 8 + 8) + 8 + 12 + 12 + 4;
  EXPECT_GT(bytes, (forward + 3 * 8 + 6) * logits);
  EXPECT_LT(bytes, (forward + 5 * 12 + 6) * logits);
}

/// The teacher's logits and probabilities are there while the loss is computed.
TEST(Teacher, PeakHasBothLogits) {
  Request request = taught(kTeacher);
  request.checkpointing = Checkpointing::kFull;
  const Forecast f = forecast(request, kStudent);
  const auto passing = static_cast<double>(f.memory.activations_bytes);
  // Probabilities of the teacher and of the model, and two tensors between them, in fp32.
  EXPECT_GT(passing, 4 * 4 * kTokens * kVocabulary);
}

TEST(Teacher, RanksRunItOnTheirShare) {
  Request request = taught(kTeacher);
  request.batch = 32;
  request.execution.dp = 8;
  const Forecast eight = forecast(request, kStudent);
  const Forecast one = forecast(taught(kTeacher), kStudent);
  EXPECT_NEAR(gemm_flops(eight), gemm_flops(one), 1);
  EXPECT_EQ(eight.parameters, one.parameters);
  EXPECT_EQ(eight.memory.gradients_bytes, one.memory.gradients_bytes);
  request.execution.dp = 1;
  request.execution.microbatches = 8;
  EXPECT_NEAR(gemm_flops(forecast(request, kStudent)), 8 * gemm_flops(one), 8);
}

TEST(Teacher, AttendsWithinPackedSequences) {
  const auto products = [](const Forecast& f) {
    double flops = 0;
    for (const KernelForecast& k : f.kernels) {
      if (k.op == "attention" && std::string(k.name).starts_with("teacher."))
        flops += static_cast<double>(k.flops * k.count);
    }
    return flops;
  };
  Request request = taught(kTeacher);
  const double whole = products(forecast(request, kStudent));
  request.packed_length = 128;
  // Causal: n (n + 1) / 2 pairs of n tokens.
  EXPECT_NEAR(products(forecast(request, kStudent)) / whole, 8.0 * 128 * 129 / (1024.0 * 1025),
              1e-9);
  // Capped scores have no fused kernel.
  request.teacher = "gemma-2-9b";
  EXPECT_ERROR(forecast(request, "gemma-3-1b"), kUnsupported, "the teacher's attention is eager");
}

TEST(Teacher, WhatIsNotModelledIsRefused) {
  const auto with = [](auto set, const char* student = kStudent) {
    Request request = taught(kTeacher);
    set(request);
    return forecast(request, student);
  };
  EXPECT_ERROR(with([](auto& r) { r.execution.tp = 2; }), kUnsupported, "`teacher` with `tp` 2");
  EXPECT_ERROR(with([](auto& r) { r.execution.pp = 2; }), kUnsupported, "`teacher` with `pp` 2");
  EXPECT_ERROR(with([](auto& r) {
                 r.execution.dp = 2;
                 r.parallel.zero = Zero::kParameters;
               }),
               kUnsupported, "`teacher` with `zero` 3");
  EXPECT_ERROR(with([](auto& r) { r.loss = Loss::kNone; }), kInput, "`teacher` needs `loss`");
  EXPECT_ERROR(with([](auto& r) { r.cross_entropy = CrossEntropy::kInPlace; }), kInput,
               "`cross-entropy` has no effect with `teacher`");
  EXPECT_ERROR(with([](auto&) {}, "gpt2"), kInput, "a teacher has the same vocabulary");
  EXPECT_ERROR(with([](auto& r) {
                 r = Request{};
                 r.teacher = kTeacher;
               }),
               kInput, "`teacher` needs `mode` training");
}

}  // namespace
}  // namespace tilecast
