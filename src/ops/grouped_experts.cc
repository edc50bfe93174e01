#include "ops/grouped_experts.h"

#include <cmath>

#include "base/checked.h"
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

int64_t at_least_one(double size) { return std::max<int64_t>(1, std::llround(size)); }

class Layer {
 public:
  Layer(const GroupedExperts& layer, std::vector<Kernel>& kernels)
      : layer_(layer),
        kernels_(kernels),
        rows_(at_least_one(layer.assignments)),
        experts_(at_least_one(layer.active_experts)),
        padded_(checked_add(rows_, checked_multiply(experts_, kTileRows / 2))),
        reduced_(layer.dtype == DType::kBf16 ? padded_ / experts_ : ceil_divide(rows_, experts_)),
        size_(ceil_divide(dtype_bits(layer.dtype), 8)),
        multiplied_size_(in_8_bits() ? 1 : size_) {}

  int64_t up_columns() const { return checked_multiply(layer_.gated ? 2 : 1, layer_.ffn_dim); }

  /// [rows, k] x [k, n] of each row's expert. In 8 bits, the rows are cast first, in two layouts:
  /// another product reads them transposed.
  void product(int64_t n, int64_t k) {
    cast(k);
    Gemm gemm{.m = padded_, .n = n, .k = k, .trans_b = 1};
    // Else a product for each expert; they run as in one batch.
    if (layer_.dtype != DType::kBf16) {
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

  /// Sums over the experts of each token, or the other way: rows from tokens.
  void sum() {
    const int64_t columns = checked_multiply(layer_.tokens, layer_.hidden_dim);
    kernels_.push_back({.shape = Stream{.elements = columns},
                        .dtype = layer_.dtype,
                        .flops = checked_multiply(rows_, layer_.hidden_dim),
                        .read_bytes = row_bytes(layer_.hidden_dim),
                        .write_bytes = checked_multiply(columns, size_)});
  }

  void sort() {
    for (int i = 0; i < kSortKernels; ++i)
      kernels_.push_back({.shape = Stream{.elements = rows_},
                          .dtype = DType::kInt64,
                          .read_bytes = checked_multiply(rows_, kIdBytes),
                          .write_bytes = checked_multiply(rows_, kIdBytes)});
  }

 private:
  bool in_8_bits() const { return layer_.scheme != QuantScheme::kNone; }

  void cast(int64_t columns) {
    if (!in_8_bits()) return;
    kernels_.push_back({.shape = Stream{.elements = checked_multiply(rows_, columns)},
                        .dtype = layer_.dtype,
                        .flops = checked_multiply(rows_, columns),
                        .read_bytes = row_bytes(columns),
                        .write_bytes = checked_multiply(2, multiplied_bytes(columns))});
  }

  void add_product(Kernel& kernel) {
    kernel.scheme = layer_.scheme;
    kernel.quantized_input = in_8_bits();
    // Products in 8 bits multiply rows of both operands: copies are transposed.
    if (auto& gemm = std::get<Gemm>(kernel.shape); in_8_bits()) {
      gemm.trans_a = 0;
      gemm.trans_b = 1;
    }
    kernels_.push_back(kernel);
  }

  int64_t row_bytes(int64_t columns) const {
    return checked_multiply(checked_multiply(rows_, columns), size_);
  }
  int64_t multiplied_bytes(int64_t columns) const {
    return checked_multiply(checked_multiply(rows_, columns), multiplied_size_);
  }
  int64_t bytes_of(double elements) const {
    return at_least_one(elements * static_cast<double>(multiplied_size_));
  }
  int64_t flops(int64_t n, int64_t k) const {
    return at_least_one(2 * layer_.assignments * static_cast<double>(checked_multiply(n, k)));
  }

  const GroupedExperts& layer_;
  std::vector<Kernel>& kernels_;
  int64_t rows_, experts_, padded_, reduced_, size_;
  int64_t multiplied_size_;  ///< bytes of an element that is multiplied
};

}  // namespace

void add_grouped_forward(const GroupedExperts& layer, std::vector<Kernel>& kernels) {
  Layer l(layer, kernels);
  l.sort();
  l.stream(layer.hidden_dim, 1, 1);  // rows in the order of experts
  l.product(l.up_columns(), layer.hidden_dim);
  l.stream(layer.ffn_dim, 1, 1);                   // the activation
  if (layer.gated) l.stream(layer.ffn_dim, 2, 1);  // times up
  l.product(layer.hidden_dim, layer.ffn_dim);
  l.stream(layer.hidden_dim, 1, 1);  // times the router's weights
  l.stream(layer.hidden_dim, 1, 1);  // in the order of tokens
  l.sum();
}

void add_grouped_input_gradient(const GroupedExperts& layer, std::vector<Kernel>& kernels) {
  Layer l(layer, kernels);
  l.stream(layer.hidden_dim, 1, 1);  // rows in the order of experts
  l.stream(layer.hidden_dim, 1, 1);  // times the router's weights
  l.stream(layer.hidden_dim, 2, 0);  // the gradient of the router's weights
  l.product(layer.ffn_dim, layer.hidden_dim);
  if (layer.gated) {
    l.stream(layer.ffn_dim, 2, 1);  // of the activation
    l.stream(layer.ffn_dim, 2, 1);  // of up
  }
  l.stream(layer.ffn_dim, 2, 1);                    // through the activation
  if (layer.gated) l.stream(l.up_columns(), 1, 1);  // gate and up beside each other
  if (layer.activation_again) l.stream(layer.ffn_dim, layer.gated ? 2 : 1, 1);
  l.product(layer.hidden_dim, l.up_columns());
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
