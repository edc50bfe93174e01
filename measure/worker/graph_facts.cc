#include "graph_facts.h"

#include <cuda.h>
#include <dlfcn.h>

#include <vector>

#include "cuda_error.h"

namespace tilecast::measure {
namespace {

/// The driver's entry points by name: linking libcuda would keep the program from starting, and
/// saying why, where there is no driver.
template <typename Function>
Function driver_function(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

Fields graph_facts(cudaGraph_t graph) {
  using GetParams = CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*);
  using GetName = CUresult (*)(const char**, CUfunction);
  using GetFunction = CUresult (*)(CUfunction*, CUkernel);
  using GetAttribute = CUresult (*)(int*, CUfunction_attribute, CUfunction);
  using Occupancy = CUresult (*)(int*, CUfunction, int, size_t);
  const auto get_params = driver_function<GetParams>("cuGraphKernelNodeGetParams_v2");
  const auto get_name = driver_function<GetName>("cuFuncGetName");
  const auto get_function = driver_function<GetFunction>("cuKernelGetFunction");
  const auto get_attribute = driver_function<GetAttribute>("cuFuncGetAttribute");
  const auto occupancy = driver_function<Occupancy>("cuOccupancyMaxActiveBlocksPerMultiprocessor");

  size_t count = 0;
  TILECAST_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  TILECAST_CUDA(cudaGraphGetNodes(graph, nodes.data(), &count));
  int kernels = 0;
  uint64_t most_blocks = 0;
  CUDA_KERNEL_NODE_PARAMS main{};
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    TILECAST_CUDA(cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeKernel) continue;
    ++kernels;
    CUDA_KERNEL_NODE_PARAMS params{};
    if (get_params == nullptr || get_params(node, &params) != CUDA_SUCCESS) continue;
    const uint64_t blocks = uint64_t{params.gridDimX} * params.gridDimY * params.gridDimZ;
    if (blocks <= most_blocks) continue;
    most_blocks = blocks;
    main = params;
  }
  Fields facts{{"kernel_count", std::to_string(kernels)}};
  if (most_blocks == 0) return facts;
  const auto triple = [](unsigned x, unsigned y, unsigned z) {
    return std::to_string(x) + "x" + std::to_string(y) + "x" + std::to_string(z);
  };
  facts["grid"] = triple(main.gridDimX, main.gridDimY, main.gridDimZ);
  facts["block"] = triple(main.blockDimX, main.blockDimY, main.blockDimZ);
  facts["shared_bytes"] = std::to_string(main.sharedMemBytes);
  CUfunction function = main.func;
  if (function == nullptr && get_function != nullptr && main.kern != nullptr)
    get_function(&function, main.kern);
  if (function == nullptr) return facts;
  const char* name = nullptr;
  if (get_name != nullptr && get_name(&name, function) == CUDA_SUCCESS && name != nullptr)
    facts["kernel_name"] = name;
  int value = 0;
  if (get_attribute != nullptr &&
      get_attribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function) == CUDA_SUCCESS)
    facts["registers"] = std::to_string(value);
  const auto threads = static_cast<int>(main.blockDimX * main.blockDimY * main.blockDimZ);
  if (occupancy != nullptr &&
      occupancy(&value, function, threads, main.sharedMemBytes) == CUDA_SUCCESS)
    facts["blocks_per_sm"] = std::to_string(value);
  return facts;
}

}  // namespace tilecast::measure
