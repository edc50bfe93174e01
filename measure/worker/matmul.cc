#include <cublasLt.h>

#include <cstring>
#include <memory>

#include "cuda_error.h"
#include "operations.h"

namespace tilecast::measure {
namespace {

// The workspace that PyTorch gives cuBLASLt on Hopper (CUBLASLT_WORKSPACE_SIZE's default there).
constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
      status == CUBLAS_STATUS_INVALID_VALUE)
    throw Unsupported(std::string(call) + ": " + cublasLtGetStatusString(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw CudaError(cudaErrorMemoryAllocation, call);
  throw std::runtime_error(std::string(call) + ": " + cublasLtGetStatusString(status));
}
#define TILECAST_CUBLAS(call) check((call), #call)

struct Types {
  cudaDataType_t in, out, scale;
  cublasComputeType_t compute;
  std::string out_dtype;
};

Types types_of(const std::string& dtype) {
  if (dtype == "fp32") return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, "fp32"};
  if (dtype == "tf32")
    return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, "fp32"};
  if (dtype == "fp16") return {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, "fp16"};
  if (dtype == "bf16") return {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, "bf16"};
  if (dtype == "fp8") return {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, "bf16"};
  if (dtype == "int8") return {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, "int32"};
  throw Unsupported("dtype: cuBLASLt is measured in fp32, tf32, fp16, bf16, fp8, int8, not '" +
                    dtype + "'");
}

/// Everything a launch needs, freed with the operation.
struct Plan {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulHeuristicResult_t choice{};
  ~Plan() {
    if (c != nullptr) cublasLtMatrixLayoutDestroy(c);
    if (b != nullptr) cublasLtMatrixLayoutDestroy(b);
    if (a != nullptr) cublasLtMatrixLayoutDestroy(a);
    if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
  }
};

cublasLtHandle_t library() {
  static cublasLtHandle_t handle = [] {
    cublasLtHandle_t created = nullptr;
    TILECAST_CUBLAS(cublasLtCreate(&created));
    return created;
  }();
  return handle;
}

/// Column-major matrix of `rows` × `columns`, `batch` of them one after the other.
cublasLtMatrixLayout_t layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t batch) {
  cublasLtMatrixLayout_t created = nullptr;
  TILECAST_CUBLAS(cublasLtMatrixLayoutCreate(&created, type, static_cast<uint64_t>(rows),
                                             static_cast<uint64_t>(columns), rows));
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    const int64_t stride = rows * columns;
    TILECAST_CUBLAS(cublasLtMatrixLayoutSetAttribute(created, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                     &count, sizeof count));
    TILECAST_CUBLAS(cublasLtMatrixLayoutSetAttribute(
        created, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  }
  return created;
}

/// The header's spelling of a tile ("128x64"), generated from it when the kit is built.
const char* tile_name(int id) {
  switch (id) {
#define TILECAST_TILE(name, value) \
  case value:                      \
    return name;
#include "cublaslt_tiles.inc"
#undef TILECAST_TILE
    default:
      return "";
  }
}

Fields choice_facts(const cublasLtMatmulHeuristicResult_t& choice) {
  Fields facts;
  const auto attribute = [&](cublasLtMatmulAlgoConfigAttributes_t which) -> int {
    int32_t value = -1;
    size_t written = 0;
    if (cublasLtMatmulAlgoConfigGetAttribute(&choice.algo, which, &value, sizeof value, &written) !=
        CUBLAS_STATUS_SUCCESS)
      return -1;
    if (written == 2) value &= 0xffff;
    return value;
  };
  facts["algorithm_id"] = std::to_string(attribute(CUBLASLT_ALGO_CONFIG_ID));
  facts["tile_id"] = std::to_string(attribute(CUBLASLT_ALGO_CONFIG_TILE_ID));
  facts["tile"] = tile_name(attribute(CUBLASLT_ALGO_CONFIG_TILE_ID));
  facts["stages_id"] = std::to_string(attribute(CUBLASLT_ALGO_CONFIG_STAGES_ID));
  facts["split_k"] = std::to_string(attribute(CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
  facts["workspace_bytes"] = std::to_string(choice.workspaceSize);
  return facts;
}

}  // namespace

std::string cublaslt_version() { return std::to_string(cublasLtGetVersion()); }

Operation make_matmul(Session& session, const Request& request) {
  const std::string op = request.text("op"), dtype = request.text("dtype");
  const int64_t batch = request.integer("batch", 1), m = request.size("m"), n = request.size("n"),
                k = request.size("k");
  const bool linear = op == "linear";
  const bool trans_a = request.flag("trans_a"), trans_b = linear || request.flag("trans_b");
  if ((dtype == "fp8" || dtype == "int8") && (trans_a || !trans_b))
    throw Unsupported(dtype + ": cuBLASLt takes a [m,k] and b [n,k] only (trans_b = 1)");
  const Types types = types_of(dtype);

  // The library is column-major: it computes out^T [n,m] = b^T [n,k] · a^T [k,m], so b is its first
  // operand.
  auto plan = std::make_shared<Plan>();
  plan->handle = library();
  TILECAST_CUBLAS(cublasLtMatmulDescCreate(&plan->operation, types.compute, types.scale));
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const auto& value) {
    TILECAST_CUBLAS(cublasLtMatmulDescSetAttribute(plan->operation, which, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  const bool bias = linear && dtype != "int8";
  if (bias) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  plan->a = trans_b ? layout(types.in, k, n, batch) : layout(types.in, n, k, batch);
  plan->b = trans_a ? layout(types.in, m, k, batch) : layout(types.in, k, m, batch);
  plan->c = layout(types.out, n, m, batch);

  cublasLtMatmulPreference_t preference = nullptr;
  TILECAST_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
  const std::shared_ptr<cublasLtMatmulPreferenceOpaque_t> keep(preference,
                                                               cublasLtMatmulPreferenceDestroy);
  const auto workspace_bytes = static_cast<size_t>(kWorkspaceBytes);
  TILECAST_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference,
                                                       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                       &workspace_bytes, sizeof workspace_bytes));
  int found = 0;
  TILECAST_CUBLAS(cublasLtMatmulAlgoGetHeuristic(plan->handle, plan->operation, plan->a, plan->b,
                                                 plan->c, plan->c, preference, 1, &plan->choice,
                                                 &found));
  if (found == 0) throw Unsupported("cuBLASLt has no algorithm for this product");

  Operation operation;
  const std::string in = dtype == "tf32" ? "fp32" : dtype;
  operation.regions = {{in, batch * m * k}, {in, batch * k * n}};
  if (linear) operation.regions.push_back({types.out_dtype, n});
  operation.regions.push_back({types.out_dtype, batch * m * n, true});
  void* const workspace = session.workspace(kWorkspaceBytes);
  const bool integer = dtype == "int8";
  operation.launch = [plan, workspace, bias, linear, integer](const Operands& x,
                                                              cudaStream_t stream) {
    const float one = 1, zero = 0;
    const int32_t int_one = 1, int_zero = 0;
    if (bias) {
      const void* address = x[2];
      TILECAST_CUBLAS(cublasLtMatmulDescSetAttribute(
          plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address, sizeof address));
    }
    void* const out = x[linear ? 3 : 2];
    TILECAST_CUBLAS(cublasLtMatmul(
        plan->handle, plan->operation, integer ? static_cast<const void*>(&int_one) : &one, x[1],
        plan->a, x[0], plan->b, integer ? static_cast<const void*>(&int_zero) : &zero, out, plan->c,
        out, plan->c, &plan->choice.algo, workspace, static_cast<size_t>(kWorkspaceBytes), stream));
  };
  operation.reference = [=](const std::vector<std::vector<double>>& inputs) {
    std::vector<double> out(static_cast<size_t>(batch * m * n));
    for (int64_t at = 0; at < batch * m * n; ++at) {
      const int64_t b = at / (m * n), row = at / n % m, column = at % n;
      double sum = bias ? inputs[2][static_cast<size_t>(column)] : 0;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t left = b * m * k + (trans_a ? i * m + row : row * k + i);
        const int64_t right = b * k * n + (trans_b ? column * k + i : i * n + column);
        sum += inputs[0][static_cast<size_t>(left)] * inputs[1][static_cast<size_t>(right)];
      }
      out[static_cast<size_t>(at)] = sum;
    }
    return out;
  };
  // tf32 and bf16 keep 11 and 8 bits of mantissa.
  operation.tolerance = dtype == "fp32" ? 1e-4 : 2e-2;
  operation.facts = choice_facts(plan->choice);
  return operation;
}

}  // namespace tilecast::measure
