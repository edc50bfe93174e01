#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "cuda_error.h"
#include "kernels.cuh"
#include "operations.h"

namespace tilecast::measure {
namespace {

constexpr int kPointwiseThreads = 128;
constexpr int kSharedBytes = 48 << 10;  // what a block may have without asking for more

using Inputs = std::vector<std::vector<double>>;

int blocks_of(int64_t count, int64_t each) {
  const int64_t blocks = (count + each - 1) / each;
  if (blocks > 0x7fffffff) throw Unsupported("more blocks than a grid takes");
  return static_cast<int>(blocks);
}

int as_int(int64_t size, const char* what) {
  if (size > 0x7fffffff) throw Unsupported(std::string(what) + ": larger than the kernel takes");
  return static_cast<int>(size);
}

/// Rounding of the result's type, with a margin for sums of a few thousand.
double tolerance_of(const std::string& dtype) { return dtype == "fp32" ? 1e-4 : 1e-2; }

template <typename T>
T* as(void* address) {
  return static_cast<T*>(address);
}

// ---- pointwise ----

template <typename T, int kInputs, typename Function>
Operation pointwise_operation(const Request& request,
                              double (*definition)(double, double, double)) {
  const int64_t count = request.size("m") * request.size("n");
  const std::string dtype = request.text("dtype");
  Operation operation;
  operation.regions.assign(kInputs, {dtype, count});
  operation.regions.push_back({dtype, count, true});
  operation.launch = [count](const Operands& x, cudaStream_t stream) {
    pointwise<T, kInputs, Function>
        <<<blocks_of(count, int64_t{kPointwiseThreads} * Pack<T>::kCount), kPointwiseThreads, 0,
           stream>>>(as<T>(x[0]), as<T>(x[kInputs > 1 ? 1 : 0]), as<T>(x[kInputs > 2 ? 2 : 0]),
                     as<T>(x[kInputs]), count, Function{});
    TILECAST_CUDA(cudaGetLastError());
  };
  operation.reference = [definition](const Inputs& in) {
    std::vector<double> out(in[0].size());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = definition(in[0][i], kInputs > 1 ? in[1][i] : 0, kInputs > 2 ? in[2][i] : 0);
    return out;
  };
  // div by numbers near 0: the largest quotient sets the scale.
  operation.tolerance = tolerance_of(dtype);
  return operation;
}

template <typename T>
Operation pointwise_of_type(const std::string& op, const Request& request) {
  if (op == "copy")
    return pointwise_operation<T, 1, Copy>(request, [](double a, double, double) { return a; });
  if (op == "add_scalar")
    return pointwise_operation<T, 1, AddScalar>(request,
                                                [](double a, double, double) { return a + 0.5; });
  if (op == "mul_scalar")
    return pointwise_operation<T, 1, MulScalar>(request,
                                                [](double a, double, double) { return a * 0.5; });
  if (op == "relu")
    return pointwise_operation<T, 1, Relu>(request,
                                           [](double a, double, double) { return a > 0 ? a : 0; });
  if (op == "gelu")
    return pointwise_operation<T, 1, Gelu>(request, [](double a, double, double) {
      return 0.5 * a * (1 + std::erf(a * std::sqrt(0.5)));
    });
  if (op == "silu")
    return pointwise_operation<T, 1, Silu>(
        request, [](double a, double, double) { return a / (1 + std::exp(-a)); });
  if (op == "tanh")
    return pointwise_operation<T, 1, Tanh>(request,
                                           [](double a, double, double) { return std::tanh(a); });
  if (op == "add")
    return pointwise_operation<T, 2, Add>(request,
                                          [](double a, double b, double) { return a + b; });
  if (op == "mul")
    return pointwise_operation<T, 2, Mul>(request,
                                          [](double a, double b, double) { return a * b; });
  if (op == "div")
    return pointwise_operation<T, 2, Div>(request,
                                          [](double a, double b, double) { return a / b; });
  if (op == "addcmul")
    return pointwise_operation<T, 3, Addcmul>(
        request, [](double a, double b, double c) { return a + 0.5 * b * c; });
  throw Unsupported("op: '" + op + "' is not measured by the kit");
}

template <typename From, typename To>
Operation cast_operation(const Request& request, const std::string& to) {
  const int64_t count = request.size("m") * request.size("n");
  Operation operation;
  operation.regions = {{request.text("dtype"), count}, {to, count, true}};
  operation.launch = [count](const Operands& x, cudaStream_t stream) {
    cast<<<blocks_of(count, kPointwiseThreads * 4), kPointwiseThreads, 0, stream>>>(
        as<From>(x[0]), as<To>(x[1]), count);
    TILECAST_CUDA(cudaGetLastError());
  };
  operation.reference = [](const Inputs& in) { return in[0]; };
  operation.tolerance = 1e-2;
  return operation;
}

// ---- rows ----

template <typename T>
void launch_softmax(const T* in, T* out, int rows, int columns, cudaStream_t stream) {
  const int blocks = blocks_of(rows, kWarpsPerBlock), threads = kWarpsPerBlock * kWarp;
  if (columns <= 32) {
    softmax_warp<T, 1><<<blocks, threads, 0, stream>>>(in, out, rows, columns);
  } else if (columns <= 128) {
    softmax_warp<T, 4><<<blocks, threads, 0, stream>>>(in, out, rows, columns);
  } else if (columns <= 512) {
    softmax_warp<T, 16><<<blocks, threads, 0, stream>>>(in, out, rows, columns);
  } else if (columns <= kLongestWarpRow) {
    softmax_warp<T, 32><<<blocks, threads, 0, stream>>>(in, out, rows, columns);
  } else if (columns * static_cast<int>(sizeof(float)) <= kSharedBytes - 1024) {
    softmax_block<T, true>
        <<<rows, kRowBlock, static_cast<size_t>(columns) * sizeof(float), stream>>>(in, out,
                                                                                    columns);
  } else {
    softmax_block<T, false><<<rows, kRowBlock, 0, stream>>>(in, out, columns);
  }
  TILECAST_CUDA(cudaGetLastError());
}

/// One result a row of the first input.
template <typename RowFunction>
auto by_row(int columns, RowFunction function) {
  return [columns, function](const Inputs& in) {
    std::vector<double> out;
    for (size_t at = 0; at < in[0].size(); at += static_cast<size_t>(columns))
      function(in,
               std::vector<double>(in[0].begin() + static_cast<std::ptrdiff_t>(at),
                                   in[0].begin() + static_cast<std::ptrdiff_t>(at) + columns),
               out);
    return out;
  };
}

template <typename T>
Operation row_operation(const std::string& op, const Request& request) {
  const int rows = as_int(request.size("m"), "m"), columns = as_int(request.size("n"), "n");
  const int64_t count = int64_t{rows} * columns;
  const std::string dtype = request.text("dtype");
  Operation operation;
  operation.tolerance = tolerance_of(dtype);
  if (op == "softmax") {
    operation.regions = {{dtype, count}, {dtype, count, true}};
    operation.launch = [=](const Operands& x, cudaStream_t stream) {
      launch_softmax(as<T>(x[0]), as<T>(x[1]), rows, columns, stream);
    };
    operation.reference =
        by_row(columns, [](const Inputs&, std::vector<double> row, std::vector<double>& out) {
          double sum = 0;
          for (double& value : row) sum += value = std::exp(value);
          for (const double value : row) out.push_back(value / sum);
        });
    return operation;
  }
  if (op == "layer_norm" || op == "rms_norm") {
    const bool centered = op == "layer_norm";
    operation.regions = {{dtype, count},       {dtype, columns},     {dtype, columns},
                         {"fp32", rows, true}, {"fp32", rows, true}, {dtype, count, true}};
    operation.launch = [=](const Operands& x, cudaStream_t stream) {
      const auto kernel = centered ? norm<T, true> : norm<T, false>;
      kernel<<<rows, kRowBlock, 0, stream>>>(as<T>(x[0]), as<T>(x[1]), as<T>(x[2]), as<T>(x[5]),
                                             as<float>(x[3]), as<float>(x[4]), columns);
      TILECAST_CUDA(cudaGetLastError());
    };
    operation.reference = by_row(
        columns,
        [centered](const Inputs& in, const std::vector<double>& row, std::vector<double>& out) {
          const auto n = static_cast<double>(row.size());
          const double mean = centered ? std::accumulate(row.begin(), row.end(), 0.0) / n : 0;
          double squares = 0;
          for (const double value : row) squares += value * value;
          const double scale = 1 / std::sqrt(squares / n - mean * mean + 1e-5);
          for (size_t i = 0; i < row.size(); ++i)
            out.push_back((row[i] - mean) * scale * in[1][i] + (centered ? in[2][i] : 0));
        });
    return operation;
  }
  if (op == "reduce_sum") {
    operation.regions = {{dtype, count}, {dtype, rows, true}};
    operation.launch = [=](const Operands& x, cudaStream_t stream) {
      reduce_sum_rows<<<rows, kRowBlock, 0, stream>>>(as<T>(x[0]), as<T>(x[1]), columns);
      TILECAST_CUDA(cudaGetLastError());
    };
    operation.reference = by_row(
        columns, [](const Inputs&, const std::vector<double>& row, std::vector<double>& out) {
          out.push_back(std::accumulate(row.begin(), row.end(), 0.0));
        });
    return operation;
  }
  if (op == "top_k") {
    const int k = as_int(request.size("k"), "k");
    if (k > columns) throw Unsupported("k: more than the row has");
    operation.regions = {
        {dtype, count}, {dtype, int64_t{rows} * k, true}, {"int32", int64_t{rows} * k, true}};
    operation.launch = [=](const Operands& x, cudaStream_t stream) {
      top_k<<<rows, kRowBlock, 0, stream>>>(as<T>(x[0]), as<T>(x[1]), as<int>(x[2]), columns, k);
      TILECAST_CUDA(cudaGetLastError());
    };
    // The order of the result is free: tests/kernels_test.cc checks it.
    return operation;
  }
  throw Unsupported("op: '" + op + "' is not measured by the kit");
}

// ---- movement ----

/// Row ids with a given number of distinct rows that occur 2^i times (the "reuse histogram"; what
/// it leaves open is filled with rows that occur once), in random order.
std::vector<int64_t> ids_with_reuse(int64_t count, int64_t table_rows,
                                    const std::vector<int64_t>& reuse) {
  std::mt19937_64 engine(1);
  std::vector<int64_t> ids;
  int64_t distinct = 0;
  const auto repeat = [&](int64_t times) {
    // Multiplying by an odd constant spreads the rows over the table.
    const auto row =
        static_cast<int64_t>(static_cast<uint64_t>(distinct++) * 0x9e3779b97f4a7c15ull %
                             static_cast<uint64_t>(table_rows));
    for (int64_t i = 0; i < times && static_cast<int64_t>(ids.size()) < count; ++i)
      ids.push_back(row);
  };
  for (size_t i = 0; i < reuse.size(); ++i) {
    for (int64_t j = 0; j < reuse[i] && static_cast<int64_t>(ids.size()) < count; ++j)
      repeat(int64_t{1} << std::min<size_t>(i, 40));
  }
  while (static_cast<int64_t>(ids.size()) < count) repeat(1);
  std::shuffle(ids.begin(), ids.end(), engine);
  return ids;
}

template <typename T>
Operation movement_operation(const std::string& op, const Request& request) {
  const int rows = as_int(request.size("m"), "m"), columns = as_int(request.size("n"), "n");
  const std::string dtype = request.text("dtype");
  Operation operation;
  operation.tolerance = tolerance_of(dtype);
  if (op == "transpose") {
    const int64_t count = int64_t{rows} * columns;
    operation.regions = {{dtype, count}, {dtype, count, true}};
    operation.launch = [=](const Operands& x, cudaStream_t stream) {
      const dim3 grid(static_cast<unsigned>(blocks_of(columns, kTransposeTile)),
                      static_cast<unsigned>(blocks_of(rows, kTransposeTile)));
      transpose<<<grid, dim3(kTransposeTile, kTransposeRows), 0, stream>>>(as<T>(x[0]), as<T>(x[1]),
                                                                           rows, columns);
      TILECAST_CUDA(cudaGetLastError());
    };
    operation.reference = [=](const Inputs& in) {
      std::vector<double> out(in[0].size());
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < columns; ++c)
          out[static_cast<size_t>(c) * rows + r] = in[0][static_cast<size_t>(r) * columns + c];
      }
      return out;
    };
    return operation;
  }
  // embedding: m rows of n from a table of k; embedding_bag: each the sum of `pooling` rows.
  const int64_t table_rows = request.size("k");
  const int pooling = op == "embedding_bag" ? as_int(request.size("pooling"), "pooling") : 1;
  const int64_t ids = int64_t{rows} * pooling;
  operation.regions = {
      {dtype, table_rows * columns},
      {"int64", ids, false, ids_with_reuse(ids, table_rows, request.integers("reuse"))},
      {dtype, int64_t{rows} * columns, true}};
  const int threads = std::clamp((columns + kWarp - 1) / kWarp * kWarp, kWarp, 256);
  operation.launch = [=](const Operands& x, cudaStream_t stream) {
    if (op == "embedding")
      gather_rows<<<rows, threads, 0, stream>>>(as<T>(x[0]), as<int64_t>(x[1]), as<T>(x[2]),
                                                columns);
    else
      embedding_bag<<<rows, threads, 0, stream>>>(as<T>(x[0]), as<int64_t>(x[1]), as<T>(x[2]),
                                                  pooling, columns);
    TILECAST_CUDA(cudaGetLastError());
  };
  operation.reference = [=](const Inputs& in) {
    std::vector<double> out(static_cast<size_t>(rows) * static_cast<size_t>(columns));
    for (int64_t i = 0; i < ids; ++i) {
      for (int c = 0; c < columns; ++c)
        out[static_cast<size_t>(i / pooling * columns + c)] +=
            in[0][static_cast<size_t>(in[1][static_cast<size_t>(i)]) * columns + c];
    }
    return out;
  };
  return operation;
}

template <typename T>
Operation operation_of_type(const std::string& op, const Request& request) {
  if (op == "softmax" || op == "layer_norm" || op == "rms_norm" || op == "reduce_sum" ||
      op == "top_k")
    return row_operation<T>(op, request);
  if (op == "transpose" || op == "embedding" || op == "embedding_bag")
    return movement_operation<T>(op, request);
  return pointwise_of_type<T>(op, request);
}

}  // namespace

Operation make_own_kernel(Session&, const Request& request) {
  const std::string op = request.text("op"), dtype = request.text("dtype");
  if (op == "cast" && dtype == "fp32") return cast_operation<float, __nv_bfloat16>(request, "bf16");
  if (op == "cast" && dtype == "bf16") return cast_operation<__nv_bfloat16, float>(request, "fp32");
  if (dtype == "fp32") return operation_of_type<float>(op, request);
  if (dtype == "fp16") return operation_of_type<__half>(op, request);
  if (dtype == "bf16") return operation_of_type<__nv_bfloat16>(op, request);
  throw Unsupported("dtype: the kit's own kernels take fp32, fp16 and bf16, not '" + dtype + "'");
}

}  // namespace tilecast::measure
