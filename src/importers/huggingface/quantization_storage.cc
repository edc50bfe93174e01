// How the layouts of quantized checkpoints store weights, scales and zero points. Sizes are those
// of the tensors that serving software keeps on the GPU. Sources: vLLM 0.10,
// model_executor/layers/quantization (fp8.py, fbgemm_fp8.py, gptq.py, awq.py, modelopt.py,
// compressed_tensors/schemes, mxfp4.py); bitsandbytes 0.45, functional.py (quantize_4bit: blocks of
// 64, scales in fp32; double quantization: in 8 bits, where 256 share an fp32 scale).

#include "graph/dtype.h"
#include "importers/huggingface/quantization.h"

namespace tilecast {
namespace {

constexpr int64_t kFp32Bits = 32, kHalfBits = 16;
constexpr int64_t kLargestGroup = 1 << 20;

int64_t weight_bits(QuantScheme scheme) { return dtype_bits(scheme_info(scheme).weight_dtype); }

/// The group size that the config states; -1, as GPTQ writes it, means whole rows (0).
int64_t group_of(const JsonObject& q, int64_t fallback) {
  const int64_t said =
      q.optional_integer({"group_size", "q_group_size"}, -1, kLargestGroup).value_or(fallback);
  return said < 0 ? 0 : said;
}

}  // namespace

WeightStorage fp8_storage(const JsonObject& q) {
  WeightStorage s{.weight_bits = kBitsPerByte};
  if (q.optional_string({"activation_scheme"}).value_or("") == "static") s.matrix_bits = kFp32Bits;
  if (!q.has("weight_block_size")) {
    s.matrix_bits += kFp32Bits;
    return s;
  }
  const Json& block = q.json()["weight_block_size"];
  const auto side = [&](size_t i) {
    const std::optional<int64_t> size = block.is_array() && block.size() == 2
                                            ? whole_number(block[i], 1, kLargestGroup)
                                            : std::nullopt;
    if (!size) q.fail("weight_block_size", "expected two whole numbers, rows and columns");
    return *size;
  };
  s.block_rows = side(0);
  s.block_columns = side(1);
  s.block_bits = kFp32Bits;
  return s;
}

WeightStorage channel_storage(QuantScheme scheme) {
  return {.weight_bits = weight_bits(scheme), .row_bits = kFp32Bits};
}

WeightStorage gptq_storage(const JsonObject& q, QuantScheme scheme, PackedBy packer) {
  constexpr int64_t kUsual = 128, kIndexBits = 32;
  return {.weight_bits = weight_bits(scheme),
          .block_columns = group_of(q, kUsual),
          .block_bits = kHalfBits + weight_bits(scheme),  // zero points are packed like weights
          .column_bits = packer == PackedBy::kGptq ? kIndexBits : 0};
}

WeightStorage bitsandbytes_storage(const JsonObject& q, QuantScheme scheme) {
  if (scheme == QuantScheme::kInt8) return channel_storage(scheme);
  constexpr int64_t kBlock = 64, kOuter = 256, kCodes = 16;
  WeightStorage s{.weight_bits = weight_bits(scheme),
                  .block_columns = kBlock,
                  .block_bits = kFp32Bits,
                  .matrix_bits = kCodes * kFp32Bits};
  if (!q.boolean("bnb_4bit_use_double_quant", false)) return s;
  s.block_bits = kBitsPerByte;
  s.outer_blocks = kOuter;
  s.outer_bits = kFp32Bits;
  s.matrix_bits += (kOuter + 1) * kFp32Bits;  // the second code table and the mean of the scales
  return s;
}

WeightStorage algorithm_storage(const JsonObject& q, const std::string& algorithm,
                                QuantScheme scheme) {
  WeightStorage s{.weight_bits = weight_bits(scheme)};
  constexpr int64_t kNvfp4Group = 16, kMxGroup = 32, kInt4Group = 128, kSide = 128;
  switch (scheme) {
    case QuantScheme::kFp4:
    case QuantScheme::kNvfp4WeightOnly:
      s.block_columns = group_of(q, kNvfp4Group);
      s.block_bits = kBitsPerByte;
      // The global scale of the weights; else of the activations too.
      s.matrix_bits = scheme == QuantScheme::kFp4 ? 2 * kFp32Bits : kFp32Bits;
      return s;
    case QuantScheme::kFp8Block:
    case QuantScheme::kFp8WeightOnly:
      s.block_rows = s.block_columns = kSide;
      s.block_bits = kFp32Bits;
      return s;
    case QuantScheme::kInt4WeightOnly:
      s.block_columns = group_of(q, kInt4Group);
      s.block_bits = kHalfBits;
      return s;
    case QuantScheme::kFp8:
      if (algorithm == "MXFP8") {  // OCP Microscaling v1.0: 32 weights share a scale of 8 bits
        s.block_columns = kMxGroup;
        s.block_bits = kBitsPerByte;
        return s;
      }
      // "FP8": a scale of the weights and one of the activations.
      if (algorithm.find("CHANNEL") == std::string::npos) {
        s.matrix_bits = 2 * kFp32Bits;
        return s;
      }
      [[fallthrough]];
    default:
      return channel_storage(scheme);
  }
}

WeightStorage group_storage(const JsonObject& group, QuantScheme scheme) {
  const JsonObject weights = group.object("weights");
  WeightStorage s{.weight_bits = weight_bits(scheme)};
  const std::string strategy = weights.optional_string({"strategy"}).value_or("");
  const bool alone = !group.has("input_activations");
  const bool fp4 = scheme == QuantScheme::kFp4 || scheme == QuantScheme::kNvfp4WeightOnly;
  if (fp4) return algorithm_storage(weights, "", scheme);
  if (scheme == QuantScheme::kFp4WeightOnly || scheme == QuantScheme::kFp4Fp8) {
    constexpr int64_t kMxGroup = 32;
    s.block_columns = group_of(weights, kMxGroup);
    s.block_bits = kBitsPerByte;
    return s;
  }
  const std::string block = "block_structure";
  if (strategy == "block" && weights.has(block)) {
    const Json sides = {{"weight_block_size", weights.json()[block]}};
    return fp8_storage(JsonObject(sides, weights.where() + ": " + block));
  }
  const int64_t size = group_of(weights, 0);
  if (strategy == "tensor" || (strategy.empty() && size == 0)) {
    s.matrix_bits = alone ? kFp32Bits : 2 * kFp32Bits;
    return s;
  }
  if (!alone) return channel_storage(scheme);
  // Scales in the dtype of the activations; zero points only if they are not all the same.
  s.block_columns = strategy == "channel" ? 0 : size;
  s.block_bits = kHalfBits + (weights.boolean("symmetric", true) ? 0 : weight_bits(scheme));
  const std::string order = weights.optional_string({"actorder"}).value_or("");
  if (order == "group") s.column_bits = kFp32Bits;
  return s;
}

void add_storage(Quantization& result, QuantScheme scheme, const WeightStorage& storage) {
  const auto [entry, fresh] = result.storage.try_emplace(scheme, storage);
  if (!fresh && entry->second != storage && !result.storage_differs) {
    result.storage_differs = true;
    result.warnings.push_back("modules of the scheme " + std::string(scheme_info(scheme).name) +
                              " (" + result.source +
                              ") have scales of different sizes; all are counted like the first");
  }
  // A device that cannot multiply the scheme keeps the weights as they are stored.
  result.storage.try_emplace(weight_only(scheme), storage);
}

}  // namespace tilecast
