#include "scenario/precision.h"

#include <fmt/format.h>

#include "base/text.h"
#include "scenario/warnings.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr const char* kAsked = "asked";
constexpr const char* kAutocastBf16 = "amp";
constexpr const char* kAutocastFp16 = "amp-fp16";
constexpr const char* kFp8 = "fp8";

std::string text(std::string_view name) { return std::string(name); }

bool has_unit(const Device& device, DType dtype) { return device.matmul_peak(dtype) > 0; }

/// The same scheme for all linear layers and experts except routers and small gates.
SchemeOf uniform(QuantScheme scheme) {
  return [scheme](std::string_view, Role weight) {
    return weight == Role::kRouter || weight == Role::kGate ? QuantScheme::kNone : scheme;
  };
}

class Resolver {
 public:
  Resolver(const Model& model, const Device& device, const PrecisionRequest& request)
      : model_(model), checkpoint_(model.checkpoint), device_(device), request_(request) {}

  Precision run() {
    if (request_.asked.empty()) {
      from_model();
    } else {
      as_asked();
    }
    return std::move(p_);
  }

 private:
  void as_asked() {
    const std::string& asked = request_.asked;
    p_.name = asked;
    p_.source = kAsked;
    if (model_.fixed_dtype && asked != dtype_name(*model_.fixed_dtype))
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "{}: a graph file defines its dtypes (here {}); omit `dtype` {} or change the file",
              model_.name, dtype_name(*model_.fixed_dtype), asked));
    if (asked == kAutocastBf16 || asked == kAutocastFp16) {
      autocast_in(asked == kAutocastBf16 ? DType::kBf16 : DType::kFp16);
    } else if (request_.training && asked == kFp8) {
      train_in(DType::kFp8);
    } else if (const std::optional<QuantScheme> scheme = find_scheme(asked)) {
      p_.name = scheme_info(*scheme).name;  // of an alias too
      if (request_.training && *scheme == QuantScheme::kFp4) return train_in(DType::kFp4);
      scheme_for_all(*scheme);
    } else {
      p_.dtype = *find_dtype(asked);
    }
  }

  void autocast_in(DType dtype) {
    if (!has_unit(device_, dtype))
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("`dtype` {}: {} has no {} unit{}", request_.asked, device_.id,
                              dtype_name(dtype),
                              has_unit(device_, DType::kFp16) ? "; use `dtype` amp-fp16" : ""));
    p_.dtype = dtype;
    p_.autocast = true;
  }

  /// Weights and activations stay in 16 bits. Only tcgen05 multiplies columns of 8 bits, and of 4
  /// bits rows alone (cuBLAS's documentation, cublasLtMatmul: FP8 kernels need the TN format on Ada
  /// and Hopper, FP4 ones everywhere).
  void train_in(DType dtype) {
    const std::string_view wider =
        dtype == DType::kFp4 && has_unit(device_, DType::kFp8) ? "fp8" : "bf16";
    if (!has_unit(device_, dtype))
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("`dtype` {}: {} has no {} unit; use `dtype` {}", request_.asked,
                              device_.id, dtype_name(dtype), wider));
    if (dtype == DType::kFp4 && device_.vendor != "nvidia")
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("`dtype` {}: training in NVFP4 is known of NVIDIA's GPUs alone; {} "
                              "multiplies other formats in 4 bits; use `dtype` {}",
                              request_.asked, device_.id, wider));
    p_.dtype = supported(DType::kBf16);
    p_.trains_in = dtype;
    const Gpu* const gpu = device_.as_gpu();
    p_.rows_only = dtype == DType::kFp4 || gpu == nullptr ||
                   gpu->matrix_instruction != MatrixInstruction::kTcgen05;
  }

  void scheme_for_all(QuantScheme scheme) {
    if (request_.training && !request_.frozen_weights)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("`dtype` {}: quantized weights cannot be trained; use `lora-rank` to "
                              "train adapters beside them, or amp, amp-fp16, bf16, fp16, tf32 or "
                              "fp32",
                              request_.asked));
    if (request_.training && scheme != weight_only(scheme))
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("`dtype` {}: adapters are trained beside weights that are stored in "
                              "low precision; use {}",
                              request_.asked, scheme_info(weight_only(scheme)).name));
    p_.scheme = scheme;
    p_.scheme_of = uniform(scheme);
    p_.dtype = supported(activations());
  }

  /// Dtype of the activations of a quantized model: the checkpoint's dtype if it has 16 bits.
  DType activations() const {
    return checkpoint_.dtype == DType::kFp16 ? DType::kFp16 : DType::kBf16;
  }

  /// The dtype itself if the device supports it, else fp16, else fp32.
  DType supported(DType requested) {
    if (has_unit(device_, requested)) return requested;
    const DType instead =
        requested != DType::kFp16 && has_unit(device_, DType::kFp16) ? DType::kFp16 : DType::kFp32;
    p_.warnings.push_back(
        {WarningCode::kDtypeReplaced,
         device_.id,
         0,
         {{"requested", text(dtype_name(requested))}, {"used", text(dtype_name(instead))}}});
    return instead;
  }

  void from_model() {
    if (model_.fixed_dtype) {
      p_.dtype = *model_.fixed_dtype;
      p_.source = "graph";
      p_.name = dtype_name(p_.dtype);
      return;
    }
    if (!checkpoint_.problem.empty())
      throw Error(ErrorKind::kUnsupported,
                  checkpoint_.problem + "; use `dtype` to forecast the model in another dtype");
    // A file that states bytes tensor by tensor says nothing of the layers they belong to.
    const bool keeps_weights =
        !request_.training || (request_.frozen_weights && !checkpoint_.weights_bytes);
    if (keeps_weights)
      add_messages(p_.warnings, WarningCode::kCheckpoint, model_.name, checkpoint_.warnings);
    p_.as_stored = keeps_weights;
    if (!checkpoint_.schemes.empty() && keeps_weights) return quantized();
    DType requested = request_.fallback;
    p_.source = "default";
    if (checkpoint_.dtype && !(request_.serving && *checkpoint_.dtype == DType::kFp32)) {
      requested = *checkpoint_.dtype;
      p_.source = checkpoint_.dtype_field;
    } else if (!checkpoint_.schemes.empty()) {
      requested = activations();
    }
    if (request_.mixed && requested == DType::kFp32 && !model_.recommendation)
      return default_autocast();
    p_.dtype = supported(requested);
    p_.name = dtype_name(p_.dtype);
    if (!checkpoint_.schemes.empty())
      p_.warnings.push_back({WarningCode::kQuantizationIgnored,
                             model_.name,
                             0,
                             {{"scheme", text(scheme_info(checkpoint_.schemes[0]).name)},
                              {"source", checkpoint_.quantization},
                              {"used", p_.name}}});
  }

  /// Mixed precision, as most train models in fp32 (Trainer with bf16=True or fp16=True).
  void default_autocast() {
    p_.source = "default";
    for (const auto& [dtype, name] :
         {std::pair{DType::kBf16, kAutocastBf16}, std::pair{DType::kFp16, kAutocastFp16}}) {
      if (!has_unit(device_, dtype)) continue;
      p_.dtype = dtype;
      p_.autocast = true;
      p_.name = name;
      return;
    }
    p_.dtype = DType::kFp32;
    p_.name = dtype_name(p_.dtype);
  }

  void quantized() {
    p_.dtype = supported(activations());
    p_.source = checkpoint_.quantization;
    std::vector<std::string> names;
    // The scheme that is used in place of each scheme.
    std::array<QuantScheme, kSchemeCount> used{};
    for (size_t i = 0; i < kSchemeCount; ++i) used[i] = static_cast<QuantScheme>(i);
    for (const QuantScheme scheme : checkpoint_.schemes) {
      QuantScheme& now = used[static_cast<size_t>(scheme)];
      // A checkpoint states only the weights of MXFP4. GPUs that multiply fp4 read them as they
      // are, with activations in fp8; all others convert them.
      if (request_.training ||
          (scheme == QuantScheme::kFp4Fp8 && !has_unit(device_, DType::kFp4))) {
        now = weight_only(scheme);
      } else if (const DType dtype = compute_dtype(scheme, p_.dtype); !has_unit(device_, dtype)) {
        now = weight_only(scheme);
        p_.warnings.push_back({WarningCode::kSchemeReplaced,
                               device_.id,
                               0,
                               {{"scheme", text(scheme_info(scheme).name)},
                                {"source", checkpoint_.quantization},
                                {"compute_dtype", text(dtype_name(dtype))},
                                {"weight_bits", dtype_bits(scheme_info(now).weight_dtype)},
                                {"dtype", text(dtype_name(p_.dtype))},
                                {"used", text(scheme_info(now).name)},
                                {"known", int64_t{has_marlin_kernels()}}}});
      }
      names.emplace_back(scheme_info(now).name);
    }
    p_.name = join(names, "+");
    p_.scheme = used[static_cast<size_t>(checkpoint_.schemes[0])];
    p_.scheme_of = [of = checkpoint_.scheme_of, used](std::string_view module, Role) {
      return used[static_cast<size_t>(of(module))];
    };
  }

  /// Marlin kernels need NVIDIA's matrix units of Turing or Ampere and later, depending on the
  /// version (vLLM's documentation, "Supported Hardware" of quantization). Turing's were the first
  /// to support int8.
  bool has_marlin_kernels() const {
    return device_.vendor == "nvidia" && device_.gpu().matrix_peak(DType::kFp16) > 0 &&
           device_.gpu().matrix_peak(DType::kInt8) > 0;
  }

  const Model& model_;
  const Checkpoint& checkpoint_;
  const Device& device_;
  const PrecisionRequest& request_;
  Precision p_;
};

}  // namespace

Precision resolve_precision(const Model& model, const Device& device,
                            const PrecisionRequest& request) {
  return Resolver(model, device, request).run();
}

void store_as_in_checkpoint(Graph& graph, const Checkpoint& checkpoint,
                            std::optional<double> share) {
  store_weights(graph, checkpoint.storage);
  if (checkpoint.weights_bytes)
    set_weights_bytes(graph, static_cast<int64_t>(static_cast<double>(*checkpoint.weights_bytes) *
                                                  share.value_or(1)));
}

DType cache_dtype(const Model& model, const Device& device, Precision& precision) {
  const std::optional<DType>& requested = model.checkpoint.kv_dtype;
  if (!requested || precision.source == kAsked) return precision.dtype;
  if (has_unit(device, *requested)) return *requested;
  precision.warnings.push_back({WarningCode::kCacheDtypeReplaced,
                                device.id,
                                0,
                                {{"requested", text(dtype_name(*requested))},
                                 {"source", model.checkpoint.quantization},
                                 {"used", text(dtype_name(precision.dtype))}}});
  return precision.dtype;
}

}  // namespace tilecast
