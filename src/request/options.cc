// The table of options.

#include <fmt/format.h>

#include "base/text.h"
#include "graph/scheme.h"
#include "request/access.h"
#include "request/option_tables.h"

namespace tilecast {

namespace {

std::vector<OptionDef> pass_options() {  // NOLINT(readability-function-size): a table
  return {
      {.name = "mode",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.mode; }>(),
       .default_value = "inference",
       .help = "inference: one forward pass; training: forward and backward",
       .choices = choice_names<Mode>()},
      {.name = "batch",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.batch; }>(),
       .value = "N",
       .unit = "sequences",
       .default_value = "1",
       .help = "sequences over all ranks"},
      {.name = "seq",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.seq; }>(),
       .value = "N",
       .unit = "tokens",
       .help = "tokens per sequence; default: the longest that the model takes, at most 2048 "
               "(encoders and T5: 512)"},
      {.name = "decoder-seq",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.decoder_seq; }>(),
       .value = "N",
       .unit = "tokens",
       .help = "tokens of the decoder's sequences, of models with an encoder for texts (Megatron's "
               "--decoder-seq-length); default: as the encoder's"},
      {.name = "dtype",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.execution.dtype; }>(),
       .value = "DTYPE",
       .help = "dtype of weights and activations; default: the checkpoint's, else fp32, but amp in "
               "training; amp, "
               "amp-fp16: torch.autocast with fp32 weights, and bf16 or fp16 in matrix products, "
               "convolutions and attention; " +
               join(scheme_names(), ", ") + ": quantized linear layers, for inference",
       .choices = precision_names(true)},
      {.name = "attention",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.execution.attention; }>(),
       .help = "flash: PyTorch's scaled_dot_product_attention, one fused kernel; eager: one kernel "
               "for each step; default: what Transformers takes: flash where the model's class "
               "supports it",
       .choices = choice_names<AttentionKind>()},
      {.name = "fusion",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.execution.fusion; }>(),
       .default_value = "none",
       .help =
           "pointwise: each chain of pointwise operators is one kernel; inductor: the kernels of "
           "torch.compile, which also joins norms, casts and copies and stores images by pixel",
       .choices = choice_names<Fusion>()},
      {.name = "memory-format",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.execution.memory_format; }>(),
       .help = "how images are stored that convolutions read and write: channels-last as "
               "model.to(memory_format=torch.channels_last) does; default: as the graph says, "
               "channels-first for configs and ONNX files",
       .choices = choice_names<MemoryFormat>()},
      {.name = "optimizer",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.optimizer; }>(),
       .help = "of the optimizer step; muon: of matrices of layers, with AdamW for all else; "
               "adam8bit, lion: bitsandbytes'; default in training: adamw, for recommendation "
               "models sgd",
       .choices = choice_names<Optimizer>(),
       .needs = "mode=training",
       .off_value = "none"},
      {.name = "optimizer-impl",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.optimizer_impl; }>(),
       .default_value = "fused",
       .help = "of sgd, adam and adamw (also beside muon): foreach: a launch for each step; fused: "
               "one kernel; for-loop: each parameter alone",
       .choices = choice_names<OptimizerImpl>(),
       .needs = "mode=training"},
      {.name = "optimizer-offload",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.optimizer_offload; }>(),
       .default_value = "off",
       .help =
           "on: the host keeps the states and fp32 parameters of adam or adamw and computes the "
           "step (ZeRO-Offload; Megatron-LM's --optimizer-cpu-offload)",
       .choices = {"on", "off"},
       .needs = "mode=training"},
      {.name = "host-memory-gb-s",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.host_bytes_per_s; }>(),
       .value = "GB/S",
       .unit = "GB/s",
       .help =
           "what the host's memory reaches in that step, shared by all GPUs of a node; default: a "
           "guess (data/laws/host.json)",
       .min = 1,
       .max = 1e5,
       .per_unit = 1e-9,
       .needs = "optimizer-offload=on"},
      {.name = "zero-grad",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.zero_grad; }>(),
       .default_value = "set-to-none",
       .help = "set-to-none: gradients live from backward to the optimizer step; zeros: always",
       .choices = choice_names<ZeroGrad>(),
       .needs = "mode=training"},
      {.name = "loss",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.loss; }>(),
       .default_value = "full",
       .help = "cross entropy over the logits: full counts its time and memory, memory its memory "
               "only",
       .choices = choice_names<Loss>(),
       .needs = "mode=training"},
      {.name = "cross-entropy",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.cross_entropy; }>(),
       .help = "log-softmax: PyTorch's; in-place: on one fp32 copy of the logits, as Megatron-LM; "
               "compiled: its --cross-entropy-loss-fusion; chunked: with the output layer, some "
               "rows at a time, as Liger's; default: the software's",
       .choices = choice_names<CrossEntropy>(),
       .needs = "mode=training"},
      {.name = "teacher",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.teacher; }>(),
       .value = "MODEL",
       .help = "distillation: a model whose forward pass runs on the same batch; the loss is the "
               "divergence between both logits in place of the cross entropy",
       .needs = "mode=training"},
      {.name = "fp8-recipe",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.fp8_recipe; }>(),
       .help = "scales of training with dtype fp8: delayed: of earlier steps; tensorwise: of the "
               "tensor; blockwise: of 128 elements; mxfp8: of 32; default: delayed",
       .choices = choice_names<Fp8Recipe>(),
       .needs = "mode=training"},
      {.name = "num-layers-at-start-in-bf16",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.bf16_start_layers; }>(),
       .value = "N",
       .unit = "layers",
       .default_value = "0",
       .help = "of training with dtype fp8 or fp4: the first N layers multiply in 16 bits, as "
               "Megatron-LM's --first-last-layers-bf16",
       .min = 0,
       .needs = "mode=training"},
      {.name = "num-layers-at-end-in-bf16",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.bf16_end_layers; }>(),
       .value = "N",
       .unit = "layers",
       .default_value = "0",
       .help = "the same of the last N layers",
       .min = 0,
       .needs = "mode=training"},
      {.name = "parameter-transpose-cache",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.transpose_cache; }>(),
       .default_value = "on",
       .help = "of training with dtype fp8: off: each backward pass transposes the weights, of "
               "which one copy is kept (Megatron-LM's disable_parameter_transpose_cache)",
       .choices = {"on", "off"},
       .needs = "mode=training",
       .off_value = "on"},
      {.name = "packed-sequence-length",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.packed_length; }>(),
       .value = "N",
       .unit = "tokens",
       .help = "rows of seq tokens hold sequences of N tokens, each with attention of its own "
               "(packing), a divisor of seq; of different lengths: about the sum of their squares "
               "over their sum; needs fused attention",
       .needs = "mode=training"},
      {.name = "checkpointing",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.checkpointing; }>(),
       .default_value = "none",
       .help = "activation checkpointing in training: full keeps the input of each layer and "
               "computes the layer again in backward; selective computes attention's weights again",
       .choices = choice_names<Checkpointing>(),
       .needs = "mode=training"},
      {.name = "recompute-modules",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.recompute_modules; }>(),
       .value = "NAMES",
       .help = "what checkpointing selective computes again, as Megatron-LM: core_attn (the "
               "default), layernorm (needs fused norms), moe_act: activations of experts, "
               "mla_up_proj: queries, keys and values from latent vectors, mlp: dense MLPs, moe: "
               "layers of experts",
       .needs = "checkpointing=selective"},
      {.name = "lora-rank",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.lora_rank; }>(),
       .value = "N",
       .default_value = "0",
       .help = "trains low-rank adapters (LoRA) of this rank; all other weights are frozen",
       .min = 0,
       .needs = "mode=training"},
      {.name = "lora-targets",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.lora_targets; }>(),
       .value = "NAMES",
       .default_value = "all-linear",
       .help = "the linear layers with an adapter, by the last part of their names: q_proj,v_proj",
       .needs = "mode=training"},
      {.name = "tokens",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.tokens; }>(),
       .value = "N",
       .unit = "tokens",
       .help = "of a whole training run, e.g. 15T: adds its days and GPU hours",
       .max = 9e15,
       .needs = "mode=training"},
      {.name = "lora-dtype",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.lora_dtype; }>(),
       .default_value = "as-model",
       .help = "of the adapters: as-model: that of the layers beside them, as in torchtune; fp32: "
               "their inputs are converted, as peft does without autocast",
       .choices = choice_names<LoraDType>(),
       .needs = "mode=training"},
      {.name = "dim",
       .kinds = kPasses,
       .access = named_sizes<[](auto& r) -> auto& { return r.dims; }>(),
       .value = "NAME=N",
       .help = "size of a symbolic dimension of an ONNX file; may be given several times",
       .repeated = true},
      {.name = "skip-unsupported",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.skip_unsupported; }>(),
       .default_value = "off",
       .help = "forecasts an ONNX file without the operators that are not supported, with a "
               "warning"},
      {.name = "predictor",
       .access = field<[](auto& r) -> auto& { return r.execution.predictor; }>(),
       .default_value = "learned",
       .help = "learned from measurements, or roofline: the baseline from the data sheet alone",
       .choices = choice_names<PredictorKind>()},
      {.name = "clocks",
       .access = clocks(),
       .value = "CLOCK",
       .help =
           "clock of the GPU: boost or base, as in its data sheet, a number of MHz, e.g. what "
           "nvidia-smi shows under load, or sustained: what the board's power allows while the "
           "work repeats for seconds. Default: sustained in training (but for the roofline) and "
           "with power-cap-w, else boost. Cool consumer cards run above their boost clock",
       .min = 10,
       .max = 10000},
      {.name = "host",
       .access = field<[](auto& r) -> auto& { return r.execution.host; }>(),
       .default_value = "typical",
       .help = "the host's speed: fast and slow ones take 0.7 and 1.5 times as long for launches, "
               "between steps and for requests, where no option states the time",
       .choices = choice_names<HostClass>()},
      {.name = "software",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.execution.software; }>(),
       .default_value = "pytorch",
       .help = "whose kernels run the operators",
       .choices = model_software_names()},
      {.name = "software-version",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.execution.software_version; }>(),
       .value = "VERSION",
       .help = "its version, as in 2.4; default: the newest that is described. PyTorch before 2.10 "
               "runs FlashAttention 2 on GPUs with "
               "wgmma, before 2.2 FlashAttention 1; versions of others change nothing"},
      {.name = "host-launch-us",
       .kinds = kPasses,
       .access = field<[](auto& r) -> auto& { return r.execution.host_launch_s; }>(),
       .value = "US",
       .unit = "us",
       .default_value = "20",
       .help = "time that the host needs for each kernel that it launches (50 with TensorRT-LLM); "
               "0: none, as with CUDA graphs",
       .min = 0,
       .max = 1e6,
       .per_unit = 1e6},
  };
}

}  // namespace

const std::vector<OptionDef>& request_options() {
  static const std::vector<OptionDef> options = [] {
    std::vector<OptionDef> all = pass_options();
    for (OptionDef& option : diffusion_options()) all.push_back(std::move(option));
    for (OptionDef& option : parallel_options()) all.push_back(std::move(option));
    for (OptionDef& option : token_options()) all.push_back(std::move(option));
    for (OptionDef& option : energy_options()) all.push_back(std::move(option));
    return all;
  }();
  return options;
}

std::vector<std::string> precision_names(bool autocast) {
  std::vector<std::string> names = {"fp32"};
  if (autocast) names.emplace_back("tf32");
  names.insert(names.end(), {"bf16", "fp16"});
  if (autocast) names.insert(names.end(), {"amp", "amp-fp16"});
  for (const std::string& scheme : scheme_names()) names.push_back(scheme);
  for (const std::string& alias : scheme_aliases()) names.push_back(alias);
  return names;
}

}  // namespace tilecast
