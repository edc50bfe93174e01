#pragma once

#include <functional>
#include <string_view>

#include "graph/graph.h"
#include "graph/scheme.h"
#include "graph/storage.h"
#include "ops/decompose.h"
#include "tilecast/choices.h"

namespace tilecast {

/// Finds modules that a file spells out as operators (norms, activations, linear layers with a
/// bias), and replaces them; attention too, if it is fused. Otherwise what the file spells out is
/// eager attention. Nodes that no output depends on are left out.
Graph recognize(const Graph& graph, const EagerForm& form = {.fused_attention = true});

/// Copies where eager PyTorch makes them, for a graph of operators whose importer knows views but
/// no copies (ONNX): a reshape that is no view, operands of batched products, what kernels over
/// rows read. Follows the distances of elements in memory (ops/strides.h), so it runs after
/// `decompose`.
Graph place_copies(const Graph& graph, const EagerForm& form);

/// Replaces modules by the operators that eager PyTorch launches.
Graph decompose(Graph modules, const EagerForm& form);

/// Tensor parallelism: the graph of modules of one of `ranks` ranks, which divide the attention
/// heads, ffn_dim and the vocabulary. Inserts all-reduces where an operator needs a replicated
/// input; for training also what the backward pass sums (ops/sharding.h).
struct ShardForm {
  int64_t ranks = 1;
  bool training = false;
  bool sequence_parallel = false;  ///< training only
};
Graph shard(const Graph& modules, const ShardForm& form);
inline Graph shard(const Graph& modules, int64_t ranks) {
  return shard(modules, ShardForm{.ranks = ranks});
}

/// Appends the loss of training: the cross entropy of each output that a linear layer computes
/// (logits), averaged over its rows. The model's code casts logits to fp32 first if `upcast`
/// (transformers, loss/loss_utils.py, ForCausalLMLoss). Other outputs get no loss; without logits,
/// nothing is added. `counts` says whether its kernels take time.
struct LossForm {
  bool upcast = false;
  bool autocast = false;  ///< the logits were computed under autocast
  Counts counts = Counts::kAll;
  int64_t ranks = 1;  ///< that divide the vocabulary
  CrossEntropy cross_entropy = CrossEntropy::kLogSoftmax;
};
void add_loss(Graph& graph, const LossForm& form);

/// What selective checkpointing computes again beside attention's core.
struct RecomputedModules {
  bool attention = true;   ///< scores, softmax and their products
  bool norms = false;      ///< before the products that read them
  bool latent_up = false;  ///< products from latent vectors to heads (MLA), and rotary positions
  bool mlp = false;        ///< dense ones with their norm, the whole (Megatron-LM runs all of it)
  bool experts = false;    ///< layers of experts with router, exchanges and shared experts
};

/// Appends the backward pass: the operators that autograd launches for the gradient of every
/// weight, including accumulation into stored gradients. It starts at the losses; if there are
/// none, the gradients of the model's outputs are given. With checkpointing, the backward pass of a
/// layer (a segment with carried tensors) first computes the layer, or attention's core, again
/// (torch.utils.checkpoint, which stops after the last tensor that backward needs). Tensors that
/// come from another pipeline stage get a gradient too. Throws Error{kUnsupported} if the graph has
/// no weights.
void add_backward(Graph& graph, Checkpointing checkpointing = Checkpointing::kNone,
                  const RecomputedModules& modules = {});

/// Products of training in few bits.
struct LowPrecisionForm {
  DType dtype = DType::kFp8;  ///< or kFp4: NVFP4, whose recipe is one
  Fp8Recipe recipe = Fp8Recipe::kDelayed;
  /// Products multiply rows of both operands, so the gradients need transposed copies.
  bool transposes = false;
  /// Those of weights stay in memory; else each backward pass makes them.
  bool keeps_transposed = true;
};
/// Linear layers and experts of a forward graph multiply in few bits, and so do their gradients.
/// Weights and activations keep their 16 bits beside the copies. The output layer, routers,
/// adapters and layers of `keep_in_16_bits` stay as they are.
void train_in_low_precision(Graph& graph, const LowPrecisionForm& form);
/// Marks the first and the last layers of a graph of modules for `train_in_low_precision`: their
/// products stay in 16 bits. Throws Error{kInput} if the model has fewer layers.
struct WideLayers {
  int64_t at_start = 0, at_end = 0;
};
Graph keep_in_16_bits(const Graph& modules, const WideLayers& layers);

/// Each row of tokens holds sequences of `length` tokens one after the other; fused attention is
/// within each. Throws Error{kUnsupported} if the graph has none.
void pack_sequences(Graph& graph, int64_t length);

/// Sums of gradients that Megatron-LM's products compute: weights' gradients are added up in the
/// product (gradient accumulation fusion), and layers that read one tensor (q, k and v; gate and
/// up) are one product there, so that no sum of their gradients is needed. Such sums keep their
/// memory and take no time.
void sum_in_products(Graph& graph);
/// Moves each pointwise operator that one other reads right before that one, so that both become
/// one kernel: an activation and its product with a gate.
void join_pointwise(Graph& graph);

/// Appends the casts of all weights of `train_in_low_precision`, once in a step.
void cast_weights(Graph& graph, const LowPrecisionForm& form);

/// Freezes all weights of a graph of modules, and adds low-rank adapters to the linear layers whose
/// last name is one of `targets`; {"all-linear"}: to all but the output layer. Throws Error{kInput}
/// if no layer has a name.
struct LoraForm {
  int64_t rank = 0;
  std::vector<std::string> targets;
  LoraDType dtype = LoraDType::kAsModel;
};
void add_lora(Graph& graph, const LoraForm& form);

/// Mixed precision as in torch.autocast, for an fp32 graph without backward pass. Matrix products,
/// convolutions and attention run in `low_precision`: their operands are cast, the stored weights
/// stay in fp32. Powers, roots, softmax and norms run in fp32, all other operators in the dtype of
/// their inputs. A weight is cast once; the copy is kept until the forward pass ends (autocast's
/// cache).
void autocast(Graph& graph, DType low_precision);

/// The quantization scheme of a linear layer or a layer of experts, by the name of its node (in the
/// words of the checkpoint's config) and the role of its weight.
using SchemeOf = std::function<QuantScheme(std::string_view node, Role weight)>;
/// By the name alone; null if `of` is.
SchemeOf scheme_by_name(std::function<QuantScheme(std::string_view node)> of);

/// Quantizes the weights of linear layers and experts, for inference. The output layer, embedding
/// tables and vision towers are not quantized, as in common checkpoints.
void quantize_linears(Graph& graph, const SchemeOf& scheme_of);

/// Quantizes the frozen weights of linear layers, for the training of adapters beside them (QLoRA,
/// Dettmers et al. 2023). As bitsandbytes runs it (autograd/_functions.py, MatMul4Bit), a kernel
/// writes the weight in the dtype of the activations before each product, in forward and in
/// backward. Experts, the output layer, embedding tables and vision towers are not quantized.
void quantize_frozen(Graph& graph, const SchemeOf& scheme_of);

/// Sets `Tensor::stored_bytes` of the weights of quantized layers, and of their scales, to what a
/// checkpoint stores. The work of kernels stays that of the scheme.
void store_weights(Graph& graph, const StorageTable& table);

/// Sets `Tensor::stored_bytes` so that all weights together have `total` bytes, each by its share.
void set_weights_bytes(Graph& graph, int64_t total);

/// Bytes of all weights and buffers.
int64_t weights_bytes(const Graph& graph);

struct OptimizerStep {
  Optimizer optimizer = Optimizer::kNone;
  OptimizerImpl impl = OptimizerImpl::kForeach;
  /// The loss is scaled (fp16 autocast with a GradScaler): one more pass unscales the gradients.
  bool scaled_gradients = false;
  MainParams main_params = MainParams::kAsModel;
  int64_t shards = 1;  ///< ranks that divide the states and the step (ZeRO)
  /// Expert-parallel ranks: an expert's weights have so many times fewer replicas, which divide
  /// them.
  double expert_ranks = 1;
  bool on_host = false;  ///< Adam's states and fp32 parameters are there, and its step runs there
};

/// Whether a weight is one of experts: those have three dimensions.
inline bool is_expert_weight(const Tensor& tensor) { return tensor.shape.size() == 3; }

/// Marks the weights that Muon updates, of a graph whose layers of experts and linear layers are
/// nodes: those they multiply with, but the output layer's.
void mark_hidden_matrices(Graph& graph);

/// Appends the optimizer step as PyTorch's kernels run it, by default its multi-tensor ones. States
/// have the dtype of the parameters, unless there are fp32 copies of them; bitsandbytes' have
/// dtypes of their own. Muon and Adafactor need whole matrices: `shards` must be 1.
void add_optimizer(Graph& graph, const OptimizerStep& step);

/// Stores the images that convolutions and batch norms and their gradients read and write in this
/// format. Returns the number of such nodes.
int set_memory_format(Graph& graph, MemoryFormat format);

/// Replaces each chain of pointwise operators by one kernel with the sum of their FLOPs. Its memory
/// traffic is that of the chain's inputs and outputs.
void fuse_pointwise(Graph& graph);

/// The kernels of torch.compile: operators without memory of their own for what they write in
/// place, images by pixel where that is faster, and one kernel for each group of operators that
/// compute element by element, with at most one softmax or norm. `chooses_layout`: whether
/// Inductor's rule says how images are stored.
void compile_with_inductor(Graph& graph, bool chooses_layout = true);

}  // namespace tilecast
