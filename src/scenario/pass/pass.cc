#include "scenario/pass/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/text.h"
#include "ops/op_def.h"
#include "passes/distillation.h"
#include "passes/forget_variables.h"
#include "passes/main_gradients.h"
#include "passes/passes.h"
#include "passes/rematerialize.h"
#include "passes/stage.h"
#include "request/access.h"
#include "request/pass_layout.h"
#include "scenario/pass/pass_images.h"
#include "scenario/pass/recomputation.h"
#include "scenario/pass/teacher.h"
#include "scenario/power.h"
#include "scenario/software_support.h"
#include "scenario/timing.h"
#include "tilecast/error.h"

namespace tilecast {

namespace {

/// Of a graph that contains its backward pass.
void check_backward(const Model& model, const Request& request) {
  if (model.has_backward && request.mode != Mode::kTraining)
    throw Error(ErrorKind::kInput,
                model.name +
                    ": the graph contains a backward pass; use `mode` training, or a graph of the "
                    "forward pass for inference");
  if (model.has_backward && request.checkpointing != Checkpointing::kNone)
    throw Error(ErrorKind::kInput,
                model.name +
                    ": the graph contains its backward pass, so `checkpointing` has no effect; "
                    "omit it, and trace the model with checkpointing instead");
}

void check_decoder_length(const Model& model, const Request& request) {
  if (request.decoder_seq && !model.has_two_lengths)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: `decoder-seq` is for models whose encoder and decoder read texts "
                            "of their own (T5, BART); omit it",
                            model.name));
  if (request.decoder_seq && request.parallel.cp > 1)
    throw Error(ErrorKind::kUnsupported,
                "`decoder-seq` with `cp`: which part of either sequence a rank has is not "
                "modelled; leave one of them out");
}

}  // namespace

void check_model(const Model& model, const Request& request, int64_t seq) {
  const Execution& e = request.execution;
  if (model.fixed_dtype && (request.seq || request.batch != 1))
    throw Error(ErrorKind::kInput, fmt::format("{}: a graph file fixes its shapes; omit `batch` "
                                               "and `seq`, or change the shapes in the file (of a "
                                               "PyTorch module: give other example inputs)",
                                               model.name));
  const std::pair<const char*, bool> training_only[] = {
      {"dp", e.dp != 1},
      {"cluster", !request.parallel.cluster.empty()},
      {"nodes", request.parallel.nodes.has_value()}};
  for (const auto& [name, given] : training_only) {
    if (given && request.mode != Mode::kTraining && !model.recommendation)
      throw Error(ErrorKind::kInput, fmt::format("`{}` needs `mode` training", name));
  }
  if (!model.spelled_out && !request.dims.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("`dim`: {} has no symbolic dimensions; an ONNX file may have some",
                            model.name));
  check_backward(model, request);
  if (e.attention == AttentionKind::kFlash && !model.has_fused_attention)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("`attention` flash: '{}' is forecast with eager attention only",
                            model.family.empty() ? model.format : model.family));
  check_decoder_length(model, request);
  if (model.fixed_seq && request.seq && seq != model.default_seq)
    throw Error(ErrorKind::kInput,
                model.default_seq > 1
                    ? fmt::format("{}: the config fixes the length at {} tokens; omit `seq`",
                                  model.name, model.default_seq)
                    : fmt::format("{}: `seq` is a number of tokens, but the inputs of this model "
                                  "are no sequences; omit it",
                                  model.name));
  if (!model.pipeline && request.diffusion != DiffusionTerms{})
    throw Error(ErrorKind::kInput,
                fmt::format("{}: steps, sizes and degrees of diffusion (`steps`, `height`, "
                            "`ulysses-degree`, …) apply to pipelines of diffusers with all their "
                            "components; this is one model",
                            model.name));
  const int64_t of_images = image_tokens(model, request);
  const int64_t encoder = checked_add(seq, of_images), decoder = request.decoder_seq.value_or(0);
  const int64_t all = std::max(encoder, decoder);
  if (model.max_positions && all > *model.max_positions)
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: a sequence of {} tokens{} is longer than the model's {} positions; "
                    "use `{}` {} or less{}",
                    model.name, all, of_images > 0 ? fmt::format(", {} of images,", of_images) : "",
                    *model.max_positions, decoder > encoder ? "decoder-seq" : "seq",
                    std::max<int64_t>(1, *model.max_positions - of_images),
                    of_images > 0 ? ", or fewer or smaller images" : ""));
  if (request.images > 0 && (e.pp > 1 || request.parallel.cp > 1))
    throw Error(ErrorKind::kUnsupported,
                fmt::format("`images` with `{}`: how ranks divide a vision tower and its tokens is "
                            "not modelled; use `dp`, `tp` or `ep`, or leave `images` out",
                            e.pp > 1 ? "pp" : "cp"));
}

bool has_scores(const Graph& modules, const EagerForm& form) {
  const Graph operators = decompose(modules, form);
  return std::any_of(operators.nodes.begin(), operators.nodes.end(),
                     [](const Node& node) { return node.attention_core; });
}

namespace {

/// Of a request whose software is known.
const SoftwareTraits& traits_of(const Request& request) {
  return traits_of(request.execution.software.value_or(Software{}));
}

EagerForm eager_form(const Request& request, const Precision& precision) {
  return {.fused_attention = request.execution.attention == AttentionKind::kFlash,
          .training = request.mode == Mode::kTraining,
          .autocast = precision.autocast,
          .fused_modules = traits_of(request).fuses_modules,
          .recomputes_expert_activations = recomputes(request, kExpertActivations)};
}

LowPrecisionForm low_precision_form(const Request& request, const Precision& precision) {
  const Fp8Recipe recipe = request.fp8_recipe.value_or(Fp8Recipe::kDelayed);
  // Blocks of rows and blocks of columns have scales of their own.
  const bool blocks = recipe == Fp8Recipe::kBlockwise || recipe == Fp8Recipe::kMxfp8;
  return {.dtype = *precision.trains_in,
          .recipe = recipe,
          .transposes = precision.rows_only || blocks,
          .keeps_transposed = request.transpose_cache};
}

void check_transpose_cache(const Request& request, const Precision& precision,
                           const Device& device) {
  if (request.transpose_cache) return;
  if (precision.trains_in && low_precision_form(request, precision).transposes) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: `parameter-transpose-cache` off has no effect with `fp8-recipe` {}: "
                          "its products read weights in either layout; leave it out",
                          device.name, choice_name(request.fp8_recipe.value_or(Fp8Recipe{}))));
}

CrossEntropy cross_entropy_of(const Request& request) {
  const std::vector<std::string>& words = choice_names<CrossEntropy>();
  const auto own = std::find(words.begin(), words.end(), traits_of(request).cross_entropy);
  TILECAST_CHECK(own != words.end());
  return request.cross_entropy.value_or(static_cast<CrossEntropy>(own - words.begin()));
}

/// Throws Error where PyTorch has no fused kernel for attention that was asked for as fused.
void check_attention(const Graph& modules, const EagerForm& form) {
  if (!form.fused_attention || !form.training) return;
  for (const Node& node : modules.nodes) {
    const AttributeValue* const learned = node.find_attribute("learned_bias");
    if (learned == nullptr || *learned == AttributeValue(int64_t{0})) continue;
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: `attention` flash in training: the position bias is trained, for "
                            "which PyTorch's scaled_dot_product_attention has no fused kernel and "
                            "takes its step-by-step path in fp32, which is not forecast; use "
                            "`attention` eager",
                            modules.name));
  }
}

}  // namespace

PrecisionRequest precision_request(const Request& request) {
  return {.asked = request.execution.dtype,
          .fallback = DType::kFp32,  // PyTorch's default
          .training = request.mode == Mode::kTraining,
          .mixed = request.mode == Mode::kTraining,
          .frozen_weights = request.lora_rank > 0};
}

void check_is_pass(const Request& request) {
  if (request.kind != RequestKind::kPass)
    throw Error(ErrorKind::kInput,
                "expected a request for one pass; use forecast_generation for prompts");
}

void check_pass(const Request& request) {
  check_is_pass(request);
  check_request(request);
}

CheckedPass checked_pass(const Model& model, const Device& device, const Request& request) {
  check_pass(request);
  return completed_pass(model, device, request);
}

namespace {

/// What Transformers takes.
AttentionKind default_attention(const Model& model, const Request& request) {
  const bool fused = model.has_fused_attention && model.takes_fused_attention &&
                     !(model.trains_position_bias && request.mode == Mode::kTraining) &&
                     !recomputes(request, kCoreAttention);
  return fused ? AttentionKind::kFlash : AttentionKind::kEager;
}

/// AdamW is the default of Trainer (transformers, training_args.py) and torchtitan, SGD of
/// facebookresearch/dlrm.
Optimizer default_optimizer(const Model& model, const Request& request) {
  if (request.mode != Mode::kTraining) return Optimizer::kNone;
  return model.recommendation ? Optimizer::kSgd : Optimizer::kAdamW;
}

/// Mixed precision, where the software decides: not for the dtypes that a file fixes, nor for
/// adapters.
MainParams default_main_params(const Model& model, const Request& request,
                               const Precision& precision) {
  const bool mixed = request.mode == Mode::kTraining && !model.fixed_dtype &&
                     !model.recommendation && request.lora_rank == 0 && !precision.autocast &&
                     dtype_bits(precision.dtype) == 16;
  return mixed ? MainParams::kFp32 : MainParams::kAsModel;
}

}  // namespace

CheckedPass completed_pass(const Model& model, const Device& device, const Request& request) {
  Request used = request;
  complete(used.execution, Software{});
  check_runs_on(*used.execution.software, device);
  if (!used.execution.skew_percent) used.execution.skew_percent = 0;
  complete_clocks(used, device, bundled_laws(),
                  request.mode == Mode::kTraining ? "sustained" : "boost");
  used.seq = request.seq.value_or(std::max<int64_t>(1, model.default_seq));
  if (!used.execution.attention) used.execution.attention = default_attention(model, request);
  check_model(model, request, *used.seq);
  Precision precision = resolve_precision(model, device, precision_request(request));
  if (used.mode == Mode::kTraining && traits_of(used).fuses_modules) {
    if (used.execution.fusion == Fusion::kInductor)
      throw Error(ErrorKind::kInput,
                  fmt::format("`fusion` inductor: {} has fused kernels of its own; leave it out",
                              software_def(*used.execution.software).title));
    used.execution.fusion = Fusion::kPointwise;
  }
  if (!used.teacher.empty() && !model.has_modules)
    throw Error(ErrorKind::kUnsupported,
                model.name + ": a graph file learns from no `teacher`; use a config");
  check_teacher(used, precision);
  if (!used.optimizer) used.optimizer = default_optimizer(model, request);
  check_step(used);
  check_transpose_cache(used, precision, device);
  if (!used.parallel.main_params)
    used.parallel.main_params = default_main_params(model, request, precision);
  // Megatron's gradients are views of a buffer that stays (core/distributed/param_and_grad_buffer).
  if (used.parallel.has_fp32_copies()) used.zero_grad = ZeroGrad::kZeros;
  return {std::move(used), std::move(precision)};
}

GraphRequest graph_request(const Request& request, const Precision& precision) {
  return {.batch = request.batch,
          .seq = *request.seq,
          .decoder_seq = request.decoder_seq.value_or(0),
          .dtype = precision.autocast ? DType::kFp32 : precision.dtype,
          .dims = parse_dims(request.dims),
          .skip_unsupported = request.skip_unsupported};
}

ModelModules build_modules(const Model& model, const Request& request, const Precision& precision,
                           LayerForm layer_form) {
  const EagerForm form = eager_form(request, precision);
  GraphRequest wanted = graph_request(request, precision);
  wanted.seq = checked_add(wanted.seq, image_tokens(model, request));
  const WideLayers wide{.at_start = request.bf16_start_layers, .at_end = request.bf16_end_layers};
  const bool keeps_some = wide.at_start + wide.at_end > 0;
  wanted.single_layers = layer_form == LayerForm::kSingle || keeps_some;
  Graph graph = model.build(wanted);
  const int64_t layers = layer_count(graph);
  graph = with_tower(std::move(graph), model, request, wanted.dtype);
  if (model.spelled_out) graph = recognize(graph, form);
  graph.name = model.name;
  check_attention(graph, form);
  check_checkpointing(graph, request, form);
  if (keeps_some) graph = keep_in_16_bits(graph, wide);
  if (const auto given = request.execution.memory_format;
      given && set_memory_format(graph, *given) == 0)
    throw Error(
        ErrorKind::kInput,
        fmt::format("`memory-format`: {} has no convolution of images, so it has no effect; "
                    "leave it out",
                    model.name));
  if (request.lora_rank > 0)
    add_lora(graph, {.rank = request.lora_rank,
                     .targets = split(request.lora_targets, ','),
                     .dtype = request.lora_dtype});
  const int64_t parameters = graph.parameter_count();
  return {.graph = std::move(graph),
          .vocabulary = std::nullopt,
          .parameters = parameters,
          .layers = layers};
}

namespace {

/// Throws Error{kInput} for options of the loss and of the step that the model has nothing for. A
/// pipeline's models have layers.
void check_effects(const Graph& graph, const Request& request, const RankForm& form) {
  const auto refuse = [&](const char* what, const char* option, const std::string& value) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the model has no {}, so `{}` {} has no effect; omit it",
                            graph.name, what, option, value));
  };
  const bool has_loss = form.has_head && request.loss != Loss::kNone;
  if (request.cross_entropy && has_loss && graph.losses.empty())
    refuse("logits", "cross-entropy", choice_name(*request.cross_entropy));
  const auto is_updated = [](const Tensor& tensor) {
    return tensor.kind == TensorKind::kWeight && tensor.hidden_matrix && !tensor.frozen;
  };
  if (request.optimizer == Optimizer::kMuon && request.execution.pp == 1 &&
      std::none_of(graph.tensors.begin(), graph.tensors.end(), is_updated))
    refuse("matrices of layers", "optimizer", choice_name(Optimizer::kMuon));
}

}  // namespace

Graph complete_graph(Graph graph, const Model& model, const Request& request,
                     const Precision& precision, const RankForm& form) {
  const bool training = request.mode == Mode::kTraining;
  if (training) mark_hidden_matrices(graph);
  if (model.has_modules) graph = decompose(std::move(graph), eager_form(request, precision));
  if (request.packed_length) pack_sequences(graph, *request.packed_length);
  const bool taught = !request.teacher.empty();
  if (taught) graph = with_teacher(graph, request, precision);
  if (request.execution.fusion != Fusion::kNone) forget_variables(graph);
  if (training && traits_of(request).fuses_modules) join_pointwise(graph);
  if (model.spelled_out) graph = place_copies(graph, eager_form(request, precision));
  graph.name = model.name;
  if (training) mark_hidden_matrices(graph);  // of layers that were parts of modules
  if (precision.autocast) autocast(graph, precision.dtype);
  if (precision.scheme_of) {
    if (training) {
      quantize_frozen(graph, precision.scheme_of);
    } else {
      quantize_linears(graph, precision.scheme_of);
    }
  }
  if (precision.trains_in) train_in_low_precision(graph, low_precision_form(request, precision));
  if (precision.as_stored) store_as_in_checkpoint(graph, model.checkpoint, std::nullopt);
  const Counts loss_counts = request.loss == Loss::kFull ? Counts::kAll : Counts::kMemoryOnly;
  const bool upcasts_loss = model.decoder.has_value() || model.upcasts_loss;
  if (taught)
    add_distillation_loss(graph,
                          {.wide = upcasts_loss || precision.autocast, .counts = loss_counts});
  else if (training && model.has_modules && form.has_head && request.loss != Loss::kNone)
    add_loss(graph, {.upcast = upcasts_loss,
                     .autocast = precision.autocast,
                     .counts = loss_counts,
                     .ranks = form.vocabulary_ranks,
                     .cross_entropy = cross_entropy_of(request)});
  if (training) check_effects(graph, request, form);
  if (training && !model.has_backward)
    add_backward(graph, request.checkpointing, recomputed_modules(request));
  if (training && request.parallel.has_fp32_copies()) accumulate_in_fp32(graph);
  if (training && traits_of(request).fuses_modules) sum_in_products(graph);
  if (request.execution.fusion != Fusion::kNone) {
    const Graph unfused = graph;
    if (request.execution.fusion == Fusion::kInductor) {
      compile_with_inductor(graph, !request.execution.memory_format);
    } else {
      fuse_pointwise(graph);
    }
    if (training) rematerialize_pointwise(graph, unfused);
  }
  // fp16 needs a GradScaler against underflow of gradients; bf16 does not.
  add_optimizer(graph, {.optimizer = request.optimizer.value_or(Optimizer::kNone),
                        .impl = request.optimizer_impl,
                        .scaled_gradients = precision.autocast && precision.dtype == DType::kFp16,
                        .main_params = request.parallel.main_params.value_or(MainParams::kAsModel),
                        .shards = form.optimizer_shards,
                        .expert_ranks = form.expert_ranks,
                        .on_host = request.optimizer_offload});
  if (precision.trains_in) cast_weights(graph, low_precision_form(request, precision));
  return graph;
}

Graph build_graph(const Model& model, const Request& request, const Precision& precision) {
  return complete_graph(build_modules(model, request, precision).graph, model, request, precision);
}

}  // namespace tilecast
