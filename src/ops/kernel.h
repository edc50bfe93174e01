#pragma once

// The work of one kernel launch: type, sizes, FLOPs and bytes. It contains no time and no device:
// cost models forecast the same work for any device and any conditions (predict/conditions.h).

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "embedding/cache_curve.h"
#include "graph/dtype.h"
#include "graph/graph.h"
#include "graph/scheme.h"

namespace tilecast {

/// One size of a kernel type: its name in JSON, CSV and tables, and the member that holds it.
template <class T>
struct SizeOf {
  std::string_view name;
  int64_t T::* member;
};

/// Matrix products [m,k] x [k,n], `batch` of them.
struct Gemm {
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  /// Runs in the library's batched routine. torch.bmm uses it even for a batch of 1.
  bool batched = false;
  /// Largest power of two, at most 8, that divides the lengths in elements of the rows in which
  /// both operands and the result are stored.
  int64_t row_alignment = 8;
  int64_t trans_a = 0;  ///< 1: the first operand is stored as [k, m]
  int64_t trans_b = 0;  ///< 1: the second operand is stored as [n, k]
  /// Whether the library's routine adds a bias (aten::addmm): it may choose other kernels for it.
  bool adds_bias = false;

  static constexpr std::string_view kName = "gemm";
  static constexpr std::string_view kText = "{batch} x [{m}x{n}x{k}]";
  static constexpr auto sizes() {
    return std::array{SizeOf<Gemm>{"batch", &Gemm::batch},
                      SizeOf<Gemm>{"m", &Gemm::m},
                      SizeOf<Gemm>{"n", &Gemm::n},
                      SizeOf<Gemm>{"k", &Gemm::k},
                      SizeOf<Gemm>{"row_alignment", &Gemm::row_alignment},
                      SizeOf<Gemm>{"trans_a", &Gemm::trans_a},
                      SizeOf<Gemm>{"trans_b", &Gemm::trans_b}};
  }
  bool operator==(const Gemm&) const = default;
};

/// A convolution of `batch` images, or one of its gradients. Audio is an image of height 1.
struct Convolution {
  enum class Pass : uint8_t { kForward, kInputGradient, kWeightGradient };

  int64_t batch = 1;
  int64_t in_channels = 1;
  int64_t out_channels = 1;
  int64_t out_height = 1;  ///< output size of the forward pass
  int64_t out_width = 1;
  int64_t window_height = 1;
  int64_t window_width = 1;
  int64_t groups = 1;
  int64_t stride = 1;         ///< the largest of all directions
  int64_t dilation = 1;       ///< the largest of all directions
  int64_t channels_last = 0;  ///< 1: stored as [b, h, w, c]; 0: as [b, c, h, w]
  Pass pass = Pass::kForward;

  static constexpr std::string_view kName = "convolution";
  static constexpr std::string_view kText =
      "{batch} x [{in_channels}x{out_channels}x{out_height}x{out_width}]";
  static constexpr auto sizes() {
    using C = Convolution;
    return std::array{SizeOf<C>{"batch", &C::batch},
                      SizeOf<C>{"in_channels", &C::in_channels},
                      SizeOf<C>{"out_channels", &C::out_channels},
                      SizeOf<C>{"out_height", &C::out_height},
                      SizeOf<C>{"out_width", &C::out_width},
                      SizeOf<C>{"window_height", &C::window_height},
                      SizeOf<C>{"window_width", &C::window_width},
                      SizeOf<C>{"groups", &C::groups},
                      SizeOf<C>{"stride", &C::stride},
                      SizeOf<C>{"dilation", &C::dilation},
                      SizeOf<C>{"channels_last", &C::channels_last}};
  }
  bool operator==(const Convolution&) const = default;
};

/// Fused attention of `batch` sequences: `queries` against `keys` each.
struct Attention {
  int64_t batch = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t head_dim = 1;    ///< of queries and keys
  int64_t v_head_dim = 1;  ///< of values and outputs
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t window = 0;  ///< maximum number of keys per query; 0: all
  bool causal = false;
  bool backward = false;
  bool latent = false;  ///< a value is a part of its key: one vector per token is cached (MLA)
  DType kv_dtype = DType::kBf16;

  /// Decode: one query per sequence against a cache. Libraries have separate kernels for it.
  bool is_decode() const { return queries == 1 && keys > 1 && !backward; }

  static constexpr std::string_view kName = "attention";
  static constexpr std::string_view kText =
      "{batch} x [{queries}x{keys}] {heads} heads of {head_dim}";
  static constexpr auto sizes() {
    using A = Attention;
    return std::array{SizeOf<A>{"batch", &A::batch},
                      SizeOf<A>{"queries", &A::queries},
                      SizeOf<A>{"keys", &A::keys},
                      SizeOf<A>{"head_dim", &A::head_dim},
                      SizeOf<A>{"v_head_dim", &A::v_head_dim},
                      SizeOf<A>{"heads", &A::heads},
                      SizeOf<A>{"kv_heads", &A::kv_heads},
                      SizeOf<A>{"window", &A::window}};
  }
  bool operator==(const Attention&) const = default;
};

/// A linear recurrence over tokens: each head's state of [head_dim, state_dim] is updated and read
/// at every token.
struct Scan {
  int64_t batch = 1;  ///< sequences
  int64_t tokens = 1;
  int64_t heads = 1;
  int64_t head_dim = 1;
  int64_t state_dim = 1;
  bool backward = false;

  static constexpr std::string_view kName = "scan";
  static constexpr std::string_view kText = "{batch} x [{tokens}x{heads}x{head_dim}x{state_dim}]";
  static constexpr auto sizes() {
    return std::array{SizeOf<Scan>{"batch", &Scan::batch}, SizeOf<Scan>{"tokens", &Scan::tokens},
                      SizeOf<Scan>{"heads", &Scan::heads},
                      SizeOf<Scan>{"head_dim", &Scan::head_dim},
                      SizeOf<Scan>{"state_dim", &Scan::state_dim}};
  }
  bool operator==(const Scan&) const = default;
};

/// One rank's share of a fused layer of experts.
struct Experts {
  int64_t tokens = 1;
  int64_t ffn_dim = 1;  ///< the rank's share of each expert's ffn_dim
  int64_t hidden_dim = 1;
  int64_t num_experts = 1;    ///< of the layer, on all ranks
  int64_t top_k = 1;          ///< experts that a token goes to
  int64_t ranks = 1;          ///< ranks that share the experts
  int64_t skew_percent = 0;   ///< see expert_load.h
  double active_experts = 0;  ///< experts of the rank that get a token
  double assignments = 0;     ///< (token, expert) pairs that the rank computes

  static constexpr std::string_view kName = "experts";
  static constexpr std::string_view kText = "[{tokens}x{ffn_dim}x{hidden_dim}]";
  static constexpr auto sizes() {
    using E = Experts;
    return std::array{SizeOf<E>{"tokens", &E::tokens},
                      SizeOf<E>{"ffn_dim", &E::ffn_dim},
                      SizeOf<E>{"hidden_dim", &E::hidden_dim},
                      SizeOf<E>{"num_experts", &E::num_experts},
                      SizeOf<E>{"top_k", &E::top_k},
                      SizeOf<E>{"ranks", &E::ranks},
                      SizeOf<E>{"skew_percent", &E::skew_percent}};
  }
  bool operator==(const Experts&) const = default;
};

/// Sums of table rows: `bags` sums of `pooling` rows each; or what training does with the rows.
struct EmbeddingBag {
  enum class Pass : uint8_t {
    kForward,
    kSort,    ///< the ids in the order of rows
    kUpdate,  ///< sums the gradients of each row and updates it (sparse optimizer)
  };

  int64_t bags = 1;
  int64_t pooling = 1;  ///< of several tables: the mean, rounded, also the next
  int64_t dim = 1;      ///< elements of a row
  int64_t table_rows = 1;
  int64_t tables = 1;  ///< that one launch reads
  Pass pass = Pass::kForward;
  /// The part of the kernel's bytes in rows that are read again and again, and how much of it L2
  /// answers.
  int64_t gathered_bytes = 0;
  CacheCurve hits;

  static constexpr std::string_view kName = "embedding_bag";
  static constexpr std::string_view kText = "{tables} x [{bags}x{pooling}x{dim}]";
  static constexpr auto sizes() {
    using E = EmbeddingBag;
    return std::array{SizeOf<E>{"bags", &E::bags}, SizeOf<E>{"pooling", &E::pooling},
                      SizeOf<E>{"dim", &E::dim}, SizeOf<E>{"table_rows", &E::table_rows},
                      SizeOf<E>{"tables", &E::tables}};
  }
  bool operator==(const EmbeddingBag&) const = default;
};

/// Reads, reduces and writes whole rows: softmax and norms.
struct Rows {
  enum class Function : uint8_t { kSoftmax, kNorm };

  int64_t rows = 1;
  int64_t columns = 1;
  Function function = Function::kSoftmax;

  static constexpr std::string_view kName = "rows";
  static constexpr std::string_view kText = "[{rows}x{columns}]";
  static constexpr auto sizes() {
    return std::array{SizeOf<Rows>{"rows", &Rows::rows}, SizeOf<Rows>{"columns", &Rows::columns}};
  }
  bool operator==(const Rows&) const = default;
};

/// Streams through memory once: pointwise operators, copies, gathers, reductions.
struct Stream {
  int64_t rows = 1;      ///< of a reduction, or with a block for each; else 1
  int64_t elements = 1;  ///< per row: elements read by a reduction, else elements written

  static constexpr std::string_view kName = "stream";
  static constexpr std::string_view kText = "{rows} x [{elements}]";
  static constexpr auto sizes() {
    return std::array{SizeOf<Stream>{"rows", &Stream::rows},
                      SizeOf<Stream>{"elements", &Stream::elements}};
  }
  bool operator==(const Stream&) const = default;
};

/// A collective operation between the ranks of a node: all-reduce.
struct Collective {
  int64_t elements = 1;
  int64_t ranks = 1;

  static constexpr std::string_view kName = "collective";
  static constexpr std::string_view kText = "[{elements}] on {ranks}";
  static constexpr auto sizes() {
    return std::array{SizeOf<Collective>{"elements", &Collective::elements},
                      SizeOf<Collective>{"ranks", &Collective::ranks}};
  }
  bool operator==(const Collective&) const = default;
};

/// All types of kernels.
using KernelVariant = std::variant<Gemm, Convolution, Attention, Scan, Experts, EmbeddingBag, Rows,
                                   Stream, Collective>;

/// What the host does to start a kernel.
struct HostCalls {
  int32_t launches = 1;  ///< that the kernel stands for, one after the other
  bool waits = false;    ///< before the first, until the GPU has done all that was launched

  bool operator==(const HostCalls&) const = default;
};

/// The exact work of one kernel launch.
struct Kernel {
  KernelVariant shape = Stream{};
  OpId op = 0;
  DType dtype = DType::kFp32;
  /// Quantization of the weights, for products and experts.
  QuantScheme scheme = QuantScheme::kNone;
  bool quantized_input = false;  ///< the kernel before has quantized the activations of a product
  int64_t flops = 0;             ///< multiply and add count as two
  int64_t read_bytes = 0;        ///< every input once
  int64_t write_bytes = 0;       ///< every output once
  HostCalls host = {};

  int64_t bytes() const { return read_bytes + write_bytes; }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(shape);
  }
  /// nullptr if the kernel is of another type.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&shape);
  }
  /// Whether it is a matrix product or a convolution, see gemm_of.
  bool is_product() const { return is<Gemm>() || is<Convolution>(); }
  /// The dtype that the matrix units multiply.
  DType compute_dtype() const { return tilecast::compute_dtype(scheme, dtype); }
  bool uses_matrix_units() const { return is_product() || is<Attention>() || is<Experts>(); }
  bool operator==(const Kernel&) const = default;
};

/// The matrix product of a Gemm, or the equivalent product of a Convolution (implicit GEMM: the
/// first matrix is gathered from the images and never written to memory). The kernel must be one of
/// these two.
Gemm gemm_of(const Kernel& kernel);

/// The largest number of sizes of a type.
inline constexpr size_t kMaxSizes = 11;

/// The names of a kernel type and of its sizes.
struct KernelTypeInfo {
  std::string_view name;
  std::string_view text;  ///< the sizes as tables show them, "[{rows}x{columns}]"
  std::span<const std::string_view> sizes;
};
const KernelTypeInfo& type_info(const Kernel& kernel);
/// All types, in the order of KernelVariant.
std::span<const KernelTypeInfo> kernel_types();

/// The sizes of a kernel in the order of its type's names, padded with 0.
std::array<int64_t, kMaxSizes> sizes_of(const Kernel& kernel);

/// A hash over type, sizes, dtype, operator and bytes, for tables of distinct kernels.
struct KernelHash {
  size_t operator()(const Kernel& kernel) const;
};

/// The precision as shown to users: the dtype ("bf16") or the quantization scheme ("fp8_block");
/// for attention, the dtypes of queries and cache ("bf16/fp8").
std::string_view precision_name(const Kernel& kernel);

}  // namespace tilecast
