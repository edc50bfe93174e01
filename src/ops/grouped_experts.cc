#include "ops/grouped_experts.h"

#include <cmath>
#include <initializer_list>

#include "base/checked.h"
#include "graph/dtype.h"
#include "ops/decompose.h"

namespace tilecast {
namespace {

/// Rows of a tile of CUTLASS's grouped products, which are of bfloat16 alone. Each expert's last
/// tile is half empty in the mean. On one H100 and one H200, products of 16 bits are forecast so
/// within 11 % in the mean (research/training/grouped_products.md).
constexpr int64_t kTileRows = 128;

/// Kernels that sort the experts' numbers, each over all pairs: 11 to 28 of them took 53 to 94 us
/// on an H100 (data/measurements, kernels.csv, sort_ids).
constexpr int kSortKernels = 12;
constexpr int64_t kIdBytes = 8;

/// Limit for one kernel that stands for many. A rank has fewer experts in all configs.
constexpr int64_t kMostLaunches = 1 << 16;

int64_t at_least_one(double size) { return std::max<int64_t>(1, std::llround(size)); }

/// What a kernel reads and writes for each element.
struct Bytes {
  int64_t read, written;
};

class Layer {
 public:
  Layer(const GroupedExperts& layer, std::vector<Kernel>& kernels)
      : layer_(layer),
        kernels_(kernels),
        rows_(at_least_one(layer.assignments)),
        experts_(at_least_one(layer.active_experts)),
        padded_(checked_add(rows_, checked_multiply(experts_, kTileRows / 2))),
        reduced_(layer.dtype == DType::kBf16 && !layer.fused ? padded_ / experts_
                                                             : ceil_divide(rows_, experts_)),
        size_(ceil_divide(dtype_bits(layer.dtype), 8)),
        multiplied_bits_(
            dtype_bits(is_narrow() ? scheme_info(layer.scheme).weight_dtype : layer.dtype)) {}

  int64_t up_columns() const { return checked_multiply(layer_.gated ? 2 : 1, layer_.ffn_dim); }

  /// [rows, k] x [k, n] of each row's expert. In few bits, the rows are cast first, in two layouts:
  /// another product reads them transposed.
  void product(int64_t n, int64_t k) {
    cast(k);
    Gemm gemm{.m = padded_, .n = n, .k = k, .trans_b = 1};
    // Else a product for each expert; they run as in one batch: Transformer Engine's on four
    // streams.
    if (!is_grouped()) {
      gemm.batch = experts_;
      gemm.m = ceil_divide(rows_, experts_);
      gemm.batched = true;
    }
    Kernel kernel{.shape = gemm, .dtype = layer_.dtype};
    const double weights = layer_.active_experts * static_cast<double>(checked_multiply(n, k));
    kernel.flops = flops(n, k);
    kernel.read_bytes = checked_add(bytes_of(weights), multiplied_bytes(k));
    kernel.write_bytes = row_bytes(n);
    add_product(kernel);
  }

  /// [n, rows] x [rows, k] of each expert: its rows are the reduction.
  void weight_gradient(int64_t experts, int64_t n, int64_t k) {
    Kernel kernel{
        .shape =
            Gemm{.batch = experts_, .m = n, .n = k, .k = reduced_, .batched = true, .trans_a = 1},
        .dtype = layer_.dtype};
    kernel.flops = flops(n, k);
    kernel.read_bytes = checked_add(multiplied_bytes(n), multiplied_bytes(k));
    kernel.write_bytes = checked_multiply(checked_multiply(experts, size_), checked_multiply(n, k));
    add_product(kernel);
  }

  /// A kernel over all rows: how many tensors of so many columns it reads and writes.
  void stream(int64_t columns, int64_t reads, int64_t writes) {
    kernels_.push_back({.shape = Stream{.elements = checked_multiply(rows_, columns)},
                        .dtype = layer_.dtype,
                        .flops = checked_multiply(rows_, columns),
                        .read_bytes = checked_multiply(reads, row_bytes(columns)),
                        .write_bytes = checked_multiply(writes, row_bytes(columns))});
  }

  /// The same with bytes for each element, of which masks have one.
  void masked(int64_t columns, std::initializer_list<Bytes> passes) {
    const int64_t elements = checked_multiply(rows_, columns);
    for (const Bytes& bytes : passes)
      kernels_.push_back({.shape = Stream{.elements = elements},
                          .dtype = layer_.dtype,
                          .flops = elements,
                          .read_bytes = checked_multiply(elements, bytes.read),
                          .write_bytes = checked_multiply(elements, bytes.written)});
  }

  /// Gate and up limited, and put together again. The fused activation's offset comes from the
  /// host's memory (torch.tensor): the host waits for its copy.
  void clamp() {
    stream(layer_.ffn_dim, 1, 1);
    if (!layer_.gated) return;
    stream(layer_.ffn_dim, 1, 1);
    stream(up_columns(), 1, 1);
  }
  /// Through the clamps: gate is limited above alone, up on both sides.
  void clamp_gradient() {
    const int64_t size = size_, columns = layer_.ffn_dim;
    masked(columns, {{size, 1}, {size + 1, size}});
    if (layer_.gated) masked(columns, {{size, 1}, {size, 1}, {2, 1}, {size + 1, size}});
  }

  /// transformers, GptOssExperts._apply_gate: two clamps, gate times alpha, its sigmoid, the
  /// product of gate and that, up + 1, and the product of both.
  void gate_with_clamps() {
    for (const int64_t reads : {1, 1, 1, 1, 2, 1, 2}) stream(layer_.ffn_dim, reads, 1);
  }
  /// Through the products, the sigmoid and its scale, whose sum is gate's gradient; through the
  /// clamps; then the even and the odd columns, each copied to zeros, and their sum.
  void gate_with_clamps_gradient() {
    for (const int64_t reads : {2, 2, 2, 2, 2, 1, 2}) stream(layer_.ffn_dim, reads, 1);
    clamp_gradient();
    for (int part = 0; part < 2; ++part) {
      stream(up_columns(), 0, 1);
      stream(layer_.ffn_dim, 1, 1);
    }
    stream(up_columns(), 2, 1);
  }

  /// PyTorch's kernels between the products: the activation, and its product with up.
  void apply_gate() {
    if (layer_.clamped) return gate_with_clamps();
    stream(layer_.ffn_dim, 1, 1);
    if (layer_.gated) stream(layer_.ffn_dim, 2, 1);
  }
  void apply_gate_gradient() {
    if (layer_.clamped) return gate_with_clamps_gradient();
    if (layer_.gated) {
      stream(layer_.ffn_dim, 2, 1);  // of the activation
      stream(layer_.ffn_dim, 2, 1);  // of up
    }
    stream(layer_.ffn_dim, 2, 1);                  // through the activation
    if (layer_.gated) stream(up_columns(), 1, 1);  // gate and up beside each other
  }
  /// Weighted by the router.
  void activate() {
    if (layer_.clamped) clamp();
    stream(layer_.ffn_dim, layer_.gated ? 2 : 1, 1);
    kernels_.back().host.waits = layer_.clamped;
  }

  /// Sums over the experts of each token.
  void sum() { sum_to(layer_.tokens, rows_); }
  /// The same of the rank's own tokens alone.
  void sum_own() { sum_to(layer_.own_tokens, rows_ / layer_.tensor_ranks); }
  /// Rows of experts that other ranks have are set to zero (masked_fill): a copy, and zeros in it.
  /// All rows are read, whether there are such or not.
  void mask(int64_t columns) {
    stream(columns, 1, 1);
    stream(columns, 1, 1);
  }

  /// The gradient of a gather, index_put with accumulate: zeros, the numbers sorted, and rows added
  /// to those that are there.
  void scatter() {
    stream(layer_.hidden_dim, 0, 1);
    sort();
    stream(layer_.hidden_dim, 2, 1);
  }

  /// Each row's bias from those of the experts, which caches hold; and added in place.
  void add_bias(int64_t columns) {
    if (!layer_.biased) return;
    stream(columns, 0, 1);
    stream(columns, 2, 1);
  }
  /// The gradient of that gather, index_put with accumulate into those of the experts.
  void bias_gradient(int64_t columns) {
    if (!layer_.biased || layer_.frozen) return;
    sort();
    stream(columns, 1, 0);
  }

  /// Rows, one for each expert of a token, from the rank's own tokens.
  void spread() {
    const int64_t elements = checked_multiply(rows_ / layer_.tensor_ranks, layer_.hidden_dim);
    kernels_.push_back(
        {.shape = Stream{.elements = elements},
         .dtype = layer_.dtype,
         .read_bytes = checked_product({layer_.own_tokens, layer_.hidden_dim, size_}),
         .write_bytes = checked_multiply(elements, size_)});
  }

  /// Kernels over the rows of each expert in turn, with bytes for each element.
  void each_expert(int64_t columns, std::initializer_list<Bytes> passes) {
    const int64_t elements = checked_multiply(ceil_divide(rows_, experts_), columns);
    for (int64_t i = 0; i < experts_; ++i) {
      for (const Bytes& bytes : passes) add_fp32(elements, bytes);
    }
  }
  /// The same over all rows.
  void all_rows(int64_t columns, Bytes bytes) { add_fp32(checked_multiply(rows_, columns), bytes); }

  void sort() {
    for (int i = 0; i < kSortKernels; ++i)
      kernels_.push_back({.shape = Stream{.elements = rows_},
                          .dtype = DType::kInt64,
                          .read_bytes = checked_multiply(rows_, kIdBytes),
                          .write_bytes = checked_multiply(rows_, kIdBytes)});
  }

  bool is_narrow() const { return layer_.scheme != QuantScheme::kNone; }

 private:
  /// One kernel has the products of all experts.
  bool is_grouped() const { return layer_.dtype == DType::kBf16 && !layer_.fused; }

  void cast(int64_t columns) {
    if (!is_narrow()) return;
    const int64_t layouts = layer_.frozen ? 1 : 2;
    // Each expert's rows have a scale of their own, found first: Transformer Engine's
    // split_quantize joins the casts only where scales are known before.
    const int64_t tensors = layer_.scaled_first ? experts_ : 1;
    const int64_t elements = checked_multiply(ceil_divide(rows_, tensors), columns);
    Kernel maximum{.shape = Stream{.elements = elements},
                   .dtype = layer_.dtype,
                   .flops = elements,
                   .read_bytes = checked_multiply(elements, size_)};
    Kernel cast = maximum;
    // NVFP4's transposed copies are transformed first, by a kernel of their own (fp4_cast).
    const bool apart = layer_.scheme == QuantScheme::kFp4;
    const int64_t written = apart ? scheme_bytes(layer_.scheme, elements, layer_.dtype) : elements;
    cast.write_bytes = checked_multiply(apart ? 1 : layouts, written);
    for (int64_t i = 0; i < tensors; ++i) {
      if (layer_.scaled_first) kernels_.push_back(maximum);
      for (int64_t k = 0; k < (apart ? layouts : 1); ++k) kernels_.push_back(cast);
    }
  }

  void sum_to(int64_t tokens, int64_t rows) {
    const int64_t columns = checked_multiply(tokens, layer_.hidden_dim);
    kernels_.push_back({.shape = Stream{.elements = columns},
                        .dtype = layer_.dtype,
                        .flops = checked_multiply(rows, layer_.hidden_dim),
                        .read_bytes = checked_product({rows, layer_.hidden_dim, size_}),
                        .write_bytes = checked_multiply(columns, size_)});
  }

  void add_fp32(int64_t elements, Bytes bytes) {
    kernels_.push_back({.shape = Stream{.elements = elements},
                        .dtype = DType::kFp32,
                        .flops = elements,
                        .read_bytes = checked_multiply(elements, bytes.read),
                        .write_bytes = checked_multiply(elements, bytes.written)});
  }

  void add_product(Kernel& kernel) {
    kernel.scheme = layer_.scheme;
    kernel.quantized_input = is_narrow();
    if (const Gemm& gemm = std::get<Gemm>(kernel.shape); gemm.batched && !is_grouped())
      kernel.host.launches = static_cast<int32_t>(std::min<int64_t>(gemm.batch, kMostLaunches));
    // Products in 8 bits multiply rows of both operands: copies are transposed.
    if (auto& gemm = std::get<Gemm>(kernel.shape); is_narrow()) {
      gemm.trans_a = 0;
      gemm.trans_b = 1;
    }
    kernels_.push_back(kernel);
  }

  int64_t row_bytes(int64_t columns) const {
    return checked_multiply(checked_multiply(rows_, columns), size_);
  }
  int64_t multiplied_bytes(int64_t columns) const {
    return checked_product({rows_, columns, multiplied_bits_}) / kBitsPerByte;
  }
  int64_t bytes_of(double elements) const {
    return at_least_one(elements * static_cast<double>(multiplied_bits_) / kBitsPerByte);
  }
  int64_t flops(int64_t n, int64_t k) const {
    return at_least_one(2 * layer_.assignments * static_cast<double>(checked_multiply(n, k)));
  }

  const GroupedExperts& layer_;
  std::vector<Kernel>& kernels_;
  int64_t rows_, experts_, padded_, reduced_, size_;
  int64_t multiplied_bits_;  ///< of an element that is multiplied
};

/// Rows padded for products in 8 bits (Fp8Padding), and sorted again after an all-to-all. The same
/// kernels the other way.
void order(const GroupedExperts& layer, Layer& l) {
  if (layer.sorted_again) l.stream(layer.hidden_dim, 1, 1);
  if (l.is_narrow()) l.stream(layer.hidden_dim, 1, 1);
}

// Megatron-LM 0.16 with moe_permute_fusion: token_dispatcher.py, experts.py (TEGroupedMLP),
// fusions/fused_bias_swiglu.py and fused_bias_geglu.py (weighted_bias_quick_geglu_impl, whose
// clamps are kernels of their own).

void add_fused_forward(const GroupedExperts& layer, std::vector<Kernel>& kernels) {
  Layer l(layer, kernels);
  l.sort();
  l.spread();
  order(layer, l);
  const size_t first = kernels.size();
  l.product(l.up_columns(), layer.hidden_dim);
  kernels[first].host.waits = layer.counts_awaited;
  l.activate();
  l.product(layer.hidden_dim, layer.ffn_dim);
  // The bias of the second product, times the router's weights, in fp32 (_apply_bias): for each
  // expert the bias of its rows, and the sum; then all rows in one tensor, and the cast. The first
  // product adds its own bias.
  if (layer.biased) {
    l.each_expert(layer.hidden_dim, {{0, 4}, {6, 4}});
    l.all_rows(layer.hidden_dim, {4, 4});
    l.all_rows(layer.hidden_dim, {4, 2});
  }
  order(layer, l);
  l.sum_own();
}

void add_fused_input_gradient(const GroupedExperts& layer, std::vector<Kernel>& kernels) {
  Layer l(layer, kernels);
  l.spread();
  order(layer, l);
  // Through the cast; for each expert the gradients of its rows, of its bias, and of the router's
  // weights; then the rows in one tensor.
  if (layer.biased) {
    l.all_rows(layer.hidden_dim, {2, 4});
    l.each_expert(layer.hidden_dim, {{4, 2}, {4, 4}, {4, 0}, {4, 4}, {4, 0}});
    l.all_rows(layer.hidden_dim, {2, 2});
  }
  l.product(layer.ffn_dim, layer.hidden_dim);
  if (layer.activation_again) l.activate();
  l.stream(layer.ffn_dim, layer.gated ? 3 : 2, layer.gated ? 2 : 1);
  l.stream(layer.ffn_dim, layer.gated ? 3 : 2, 0);  // the gradient of the router's weights
  if (layer.clamped) {
    l.clamp_gradient();
    if (layer.gated) l.stream(l.up_columns(), 1, 1);
  }
  l.product(layer.hidden_dim, l.up_columns());
  order(layer, l);
  l.sum_own();
}

}  // namespace

// transformers 5.17, integrations/moe.py, grouped_mm_experts_forward.

void add_grouped_forward(const GroupedExperts& layer, std::vector<Kernel>& kernels) {
  if (layer.fused) return add_fused_forward(layer, kernels);
  Layer l(layer, kernels);
  l.sort();
  l.stream(layer.hidden_dim, 1, 1);  // rows in the order of experts
  l.stream(layer.hidden_dim, 1, 1);  // masked in place
  l.product(l.up_columns(), layer.hidden_dim);
  l.add_bias(l.up_columns());
  l.mask(l.up_columns());
  l.apply_gate();
  l.product(layer.hidden_dim, layer.ffn_dim);
  l.add_bias(layer.hidden_dim);
  l.mask(layer.hidden_dim);
  l.stream(layer.hidden_dim, 1, 1);  // times the router's weights
  l.stream(layer.hidden_dim, 1, 1);  // in the order of tokens
  l.sum();
}

void add_grouped_input_gradient(const GroupedExperts& layer, std::vector<Kernel>& kernels) {
  if (layer.fused) return add_fused_input_gradient(layer, kernels);
  Layer l(layer, kernels);
  l.scatter();                       // to the order of experts
  l.stream(layer.hidden_dim, 1, 1);  // times the router's weights
  l.stream(layer.hidden_dim, 2, 0);  // the gradient of the router's weights
  l.mask(layer.hidden_dim);
  l.bias_gradient(layer.hidden_dim);
  l.product(layer.ffn_dim, layer.hidden_dim);
  l.apply_gate_gradient();
  l.mask(l.up_columns());
  l.bias_gradient(l.up_columns());
  if (layer.activation_again) l.stream(layer.ffn_dim, layer.gated ? 2 : 1, 1);
  l.product(layer.hidden_dim, l.up_columns());
  l.mask(layer.hidden_dim);
  l.sort();
  l.sum();
}

void add_grouped_weight_gradient(const GroupedExperts& layer, int64_t experts,
                                 std::vector<Kernel>& kernels) {
  Layer l(layer, kernels);
  l.weight_gradient(experts, l.up_columns(), layer.hidden_dim);
  l.weight_gradient(experts, layer.hidden_dim, layer.ffn_dim);
}

}  // namespace tilecast
