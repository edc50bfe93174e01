#pragma once

// Options with a fixed set of values, with the words that the command line, JSON and files use for
// them, in the order of the values.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tilecast {

/// The word of a value, whose enum has choice_words.
template <typename Choice>
constexpr std::string_view choice_word(Choice choice) {
  return choice_words(choice)[static_cast<size_t>(choice)];
}

enum class Mode : uint8_t { kInference, kTraining };
constexpr auto choice_words(Mode) {
  return std::array<std::string_view, 2>{"inference", "training"};
}

/// `torch.optim`'s, but Lion and the Adam with states of 8 bits, which are bitsandbytes'. Muon
/// updates the matrices of layers, AdamW what is left.
enum class Optimizer : uint8_t { kNone, kSgd, kAdam, kAdamW, kMuon, kAdafactor, kAdam8Bit, kLion };
constexpr auto choice_words(Optimizer) {
  return std::array<std::string_view, 8>{"none", "sgd",       "adam",     "adamw",
                                         "muon", "adafactor", "adam8bit", "lion"};
}

/// PyTorch's implementations of an optimizer's step: one launch a step over all parameters, one
/// kernel for all steps, or all steps of one parameter after the other.
enum class OptimizerImpl : uint8_t { kForeach, kFused, kForLoop };
constexpr auto choice_words(OptimizerImpl) {
  return std::array<std::string_view, 3>{"foreach", "fused", "for-loop"};
}

/// How zero_grad works: it frees the gradients (set_to_none, the default), or fills them with
/// zeros.
enum class ZeroGrad : uint8_t { kSetToNone, kZeros };
constexpr auto choice_words(ZeroGrad) {
  return std::array<std::string_view, 2>{"set-to-none", "zeros"};
}

/// Whether training ends in a loss over the logits (cross entropy): not at all, in the memory
/// alone, or in memory and time. Published times have no loss.
enum class Loss : uint8_t { kNone, kMemory, kFull };
constexpr auto choice_words(Loss) {
  return std::array<std::string_view, 3>{"none", "memory", "full"};
}

/// The host's speed: how long its part of the work takes, over that of the hosts on which the costs
/// of software were measured.
enum class HostClass : uint8_t { kFast, kTypical, kSlow };
constexpr auto choice_words(HostClass) {
  return std::array<std::string_view, 3>{"fast", "typical", "slow"};
}

/// Values that the backward pass computes again instead of keeping them: nothing, the scores and
/// weights of attention, or whole layers, keeping only their inputs.
enum class Checkpointing : uint8_t { kNone, kSelective, kFull };
constexpr auto choice_words(Checkpointing) {
  return std::array<std::string_view, 3>{"none", "selective", "full"};
}

/// How the cross entropy of training is computed: PyTorch's log_softmax and nll_loss; in place, on
/// one fp32 copy of the logits (Megatron-LM's vocab_parallel_cross_entropy); that compiled, with
/// fewer kernels and a copy for the gradient (its --cross-entropy-loss-fusion); or together with
/// the output layer, some rows at a time, so that all logits are never in memory (Liger's
/// LigerFusedLinearCrossEntropyLoss).
enum class CrossEntropy : uint8_t { kLogSoftmax, kInPlace, kCompiled, kChunked };
constexpr auto choice_words(CrossEntropy) {
  return std::array<std::string_view, 4>{"log-softmax", "in-place", "compiled", "chunked"};
}

/// How training in FP8 scales what it multiplies: by the largest value of earlier steps, by that of
/// the tensor, in blocks of 128, or in groups of 32 (MXFP8). The names are Megatron-LM's.
enum class Fp8Recipe : uint8_t { kDelayed, kTensorwise, kBlockwise, kMxfp8 };
constexpr auto choice_words(Fp8Recipe) {
  return std::array<std::string_view, 4>{"delayed", "tensorwise", "blockwise", "mxfp8"};
}

/// The order in which a stage of a pipeline runs its micro-batches: all forward passes first
/// (GPipe), one forward and one backward in turn (PipeDream-Flush), that with several parts of the
/// model on each stage (Megatron), or with gradients of weights as passes of their own, which fill
/// bubbles: as 1F1B (ZB-H1), or with two parts on each stage that the model passes forth and back
/// (ZB-V).
enum class PipelineSchedule : uint8_t { kGPipe, k1F1B, kInterleaved, kZeroBubble, kZbV };
constexpr auto choice_words(PipelineSchedule) {
  return std::array<std::string_view, 5>{"gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"};
}
/// Whether gradients of weights are passes of their own.
constexpr bool splits_backward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::kZeroBubble || schedule == PipelineSchedule::kZbV;
}

/// How context-parallel ranks attend to the tokens of each other: each gathers all keys and values
/// first (Llama 3); keys and values go around a ring beside the attention to those before; or the
/// ranks exchange tokens for heads (DeepSpeed-Ulysses). The names are Megatron-LM's.
enum class CpCommType : uint8_t { kAllGather, kP2p, kAllToAll };
constexpr auto choice_words(CpCommType) {
  return std::array<std::string_view, 3>{"allgather", "p2p", "a2a"};
}

/// State that data-parallel ranks divide between them instead of storing it each: nothing, the
/// optimizer states, also the gradients, also the parameters (FSDP).
enum class Zero : uint8_t { kNone, kOptimizer, kGradients, kParameters };
constexpr auto choice_words(Zero) { return std::array<std::string_view, 4>{"0", "1", "2", "3"}; }

/// The dtype of the parameters that the optimizer updates: that of the model, or an fp32 copy.
enum class MainParams : uint8_t { kAsModel, kFp32 };
constexpr auto choice_words(MainParams) {
  return std::array<std::string_view, 2>{"as-model", "fp32"};
}

/// The dtype of low-rank adapters: that of the layers beside them (torchtune's recipes; TRL beside
/// quantized weights), or fp32, to which their inputs are converted (peft without autocast).
enum class LoraDType : uint8_t { kAsModel, kFp32 };
constexpr auto choice_words(LoraDType) {
  return std::array<std::string_view, 2>{"as-model", "fp32"};
}

/// Eager: one kernel for each step of attention. Flash: one fused kernel.
enum class AttentionKind : uint8_t { kEager, kFlash };
constexpr auto choice_words(AttentionKind) {
  return std::array<std::string_view, 2>{"eager", "flash"};
}

/// What one kernel computes: an operator, a chain of pointwise ones, or what torch.compile's
/// Inductor makes one kernel of.
enum class Fusion : uint8_t { kNone, kPointwise, kInductor };
constexpr auto choice_words(Fusion) {
  return std::array<std::string_view, 3>{"none", "pointwise", "inductor"};
}

/// How images are stored: [b, c, h, w], or [b, h, w, c] (torch.channels_last).
enum class MemoryFormat : uint8_t { kChannelsFirst, kChannelsLast };
constexpr auto choice_words(MemoryFormat) {
  return std::array<std::string_view, 2>{"channels-first", "channels-last"};
}

/// The software whose kernels run the operators: a row of the table that the files of data/software
/// make. `Software{}` is its first row, PyTorch.
enum class Software : uint8_t {};
/// The software of that name, "vllm". Throws Error{kInput} with the known names.
Software software_of(std::string_view name);

/// How a router in front of equal servers chooses one for each request: in turn, the one with the
/// fewest requests that are not answered, or the one that had the turn before of the same
/// conversation (for first turns as the second).
enum class Router : uint8_t { kRoundRobin, kLeastLoaded, kSession };
constexpr auto choice_words(Router) {
  return std::array<std::string_view, 3>{"round-robin", "least-loaded", "session"};
}

/// What makes the drafts of speculative decoding: a smaller model, the model's own layers for
/// multi-token prediction, a search in the sequence itself, or a trained layer on the model's
/// hidden states (EAGLE) or on those of three of its layers (EAGLE-3). The names are vLLM's.
enum class DraftMethod : uint8_t { kDraftModel, kMtp, kNgram, kEagle, kEagle3 };
constexpr auto choice_words(DraftMethod) {
  return std::array<std::string_view, 5>{"draft_model", "mtp", "ngram", "eagle", "eagle3"};
}

/// How tokens of data-parallel attention ranks reach the ranks with their experts, and come back:
/// every rank gathers all tokens, and results are reduced and scattered; or DeepEP's kernels, which
/// send a token to the ranks that have its experts only. The names are vLLM's.
enum class All2All : uint8_t { kAllGather, kDeepEp };
constexpr auto choice_words(All2All) {
  return std::array<std::string_view, 2>{"allgather_reducescatter", "deepep"};
}

/// How tokens reach the ranks with their experts in training: an all-to-all with a copy for each
/// expert, or DeepEP's kernels and their kind (HybridEP), which send a token to a rank once, and to
/// another node once. The names are Megatron-LM's.
enum class TokenDispatcher : uint8_t { kAllToAll, kFlex };
constexpr auto choice_words(TokenDispatcher) {
  return std::array<std::string_view, 2>{"alltoall", "flex"};
}

/// Which kernels compute layers of experts: those that the software chooses, or Marlin's, which
/// convert weights of few bits and multiply in 16 bits. The names are vLLM's.
enum class MoeBackend : uint8_t { kAuto, kMarlin };
constexpr auto choice_words(MoeBackend) {
  return std::array<std::string_view, 2>{"auto", "marlin"};
}

/// Which steps of a server are CUDA graphs: decode steps, or also the parts between attention of
/// steps with prompts, up to a number of tokens. The names are vLLM's.
enum class CudaGraphMode : uint8_t { kFullDecodeOnly, kFullAndPiecewise };
constexpr auto choice_words(CudaGraphMode) {
  return std::array<std::string_view, 2>{"full_decode_only", "full_and_piecewise"};
}

/// When the KV cache moves from a prefill worker to a decode worker: after the prefill, or each
/// layer while the next ones are computed.
enum class KvTransfer : uint8_t { kAfterPrefill, kByLayer };
constexpr auto choice_words(KvTransfer) {
  return std::array<std::string_view, 2>{"after-prefill", "by-layer"};
}

/// Predictors learned from measurements, or a roofline from the data sheet alone.
enum class PredictorKind : uint8_t { kLearned, kRoofline };
constexpr auto choice_words(PredictorKind) {
  return std::array<std::string_view, 2>{"learned", "roofline"};
}

}  // namespace tilecast
