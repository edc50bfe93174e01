// The forecast of text generation as a Python object.

#include "bindings/bindings.h"
#include "tilecast/report.h"

namespace tilecast::python {
namespace {

/// A step with the strings that its kernels point into.
struct Step {
  StepForecast step;
  std::shared_ptr<const void> names;
};

void add_parts(py::module_& module) {
  py::class_<Step>(module, "Step", "One prefill or decode step.")
      .def_property_readonly("latency", [](const Step& s) { return s.step.time; })
      .def_property_readonly("host_wait_s", [](const Step& s) { return s.step.host_wait_s; })
      .def_property_readonly("limits",
                             [](const Step& s) {
                               py::dict limits;
                               for (const auto& [limit, share] : s.step.limits)
                                 limits[py::str(limit)] = share;
                               return limits;
                             })
      .def_property_readonly("kernels",
                             [](const Step& s) { return kernel_rows(s.step.kernels, s.names); });
  py::class_<Distribution>(module, "Distribution", "Mean, median and 99th percentile.")
      .def_readonly("mean", &Distribution::mean)
      .def_readonly("median", &Distribution::median)
      .def_readonly("p99", &Distribution::p99);
  py::class_<ServedPart>(module, "ServedPart", "What the clients of a server see.")
      .def_readonly("requests", &ServedPart::requests)
      .def_readonly("ttft", &ServedPart::ttft)
      .def_readonly("tpot", &ServedPart::tpot)
      .def_readonly("e2e", &ServedPart::e2e)
      .def_readonly("requests_per_s", &ServedPart::requests_per_s)
      .def_readonly("output_tokens_per_s", &ServedPart::output_tokens_per_s)
      .def_readonly("total_tokens_per_s", &ServedPart::total_tokens_per_s);
  using Serving = LlmForecast::Serving;
  py::class_<Serving>(module, "Serving", "A server under load.")
      .def_readonly("cache_tokens", &Serving::cache_tokens)
      .def_readonly("most_sequences", &Serving::most_sequences)
      .def_readonly("most_in_flight", &Serving::most_in_flight)
      .def_readonly("all", &Serving::all)
      .def_readonly("steady", &Serving::steady)
      .def_readonly("goodput_requests_per_s", &Serving::goodput_requests_per_s)
      .def_readonly("mean_batch", &Serving::mean_batch)
      .def_readonly("busy_share", &Serving::busy_share)
      .def_readonly("cache_use", &Serving::cache_use)
      .def_readonly("preemptions", &Serving::preemptions)
      .def_readonly("keeps_up", &Serving::keeps_up)
      .def_readonly("gpus", &Serving::gpus)
      .def_readonly("replicas", &Serving::replicas);
}

/// The memory of a result, with the names of pass results where both have it.
struct LlmMemory {
  int64_t peak_bytes, weights_bytes, cache_bytes, activations_bytes, workspace_bytes,
      framework_bytes, overhead_bytes, device_bytes, usable_bytes;
  bool fits;
  int64_t largest_batch;
};

LlmMemory memory_of(const LlmForecast& f) {
  return {
      f.peak_bytes,      f.weights_bytes,  f.cache_bytes,  f.activations_bytes, f.workspace_bytes,
      f.framework_bytes, f.overhead_bytes, f.device_bytes, f.usable_bytes,      f.fits,
      f.largest_batch};
}

void add_server_memory(py::module_& module) {
  py::class_<LlmMemory>(module, "LlmMemory", "The memory of one rank, in bytes.")
      .def_readonly("peak_bytes", &LlmMemory::peak_bytes)
      .def_readonly("weights_bytes", &LlmMemory::weights_bytes)
      .def_readonly("cache_bytes", &LlmMemory::cache_bytes)
      .def_readonly("activations_bytes", &LlmMemory::activations_bytes)
      .def_readonly("workspace_bytes", &LlmMemory::workspace_bytes)
      .def_readonly("framework_bytes", &LlmMemory::framework_bytes)
      .def_readonly("overhead_bytes", &LlmMemory::overhead_bytes)
      .def_readonly("device_bytes", &LlmMemory::device_bytes)
      .def_readonly("usable_bytes", &LlmMemory::usable_bytes)
      .def_readonly("fits", &LlmMemory::fits)
      .def_readonly("largest_batch", &LlmMemory::largest_batch);
}

}  // namespace

py::object make_llm(LlmForecast forecast) {
  return py::cast(std::make_shared<LlmForecast>(std::move(forecast)));
}

void add_llm(py::module_& module) {
  add_parts(module);
  add_server_memory(module);
  using F = LlmForecast;
  py::class_<F, std::shared_ptr<F>> llm(module, "LlmForecast", "The forecast of text generation.");
  llm.def_readonly("model", &F::model)
      .def_readonly("gpu", &F::gpu)
      .def_readonly("gpu_name", &F::gpu_name)
      .def_readonly("dtype", &F::dtype)
      .def_readonly("dtype_source", &F::dtype_source)
      .def_readonly("kv_dtype", &F::kv_dtype)
      .def_readonly("software", &F::software)
      .def_readonly("prompt", &F::prompt)
      .def_readonly("output", &F::output)
      .def_readonly("batch", &F::batch)
      .def_readonly("tp", &F::tp)
      .def_readonly("pp", &F::pp)
      .def_readonly("dp", &F::dp)
      .def_readonly("ep", &F::ep)
      .def_readonly("gpus", &F::gpus)
      .def_readonly("latency", &F::latency)
      .def_property_readonly("latency_s", [](const F& f) { return f.latency.seconds; })
      .def_property_readonly("latency_low_s", [](const F& f) { return f.latency.low_s; })
      .def_property_readonly("latency_high_s", [](const F& f) { return f.latency.high_s; })
      .def_readonly("ttft", &F::ttft)
      .def_readonly("tpot", &F::tpot)
      .def_readonly("request", &F::request)
      .def_readonly("tokens_per_s", &F::tokens_per_s)
      .def_readonly("course", &F::course)
      .def_readonly("flops", &F::flops)
      .def_readonly("bytes", &F::bytes)
      .def_readonly("communication_s", &F::communication_s)
      .def_readonly("utilization_ratio", &F::utilization_ratio)
      .def_readonly("parameters", &F::parameters)
      .def_readonly("active_parameters", &F::active_parameters)
      .def_readonly("multiplied_parameters", &F::multiplied_parameters)
      .def_readonly("flops_per_token", &F::flops_per_token)
      .def_readonly("attention_flops_per_token", &F::attention_flops_per_token)
      .def_readonly("kv_bytes_per_token", &F::kv_bytes_per_token)
      .def_readonly("window_bytes_per_token", &F::window_bytes_per_token)
      .def_readonly("window_tokens", &F::window_tokens)
      .def_readonly("state_bytes_per_sequence", &F::state_bytes_per_sequence)
      .def_property_readonly("prefill", [](const F& f) { return Step{f.prefill, f.names}; })
      .def_property_readonly("decode", [](const F& f) { return Step{f.decode, f.names}; })
      .def_readonly("serving", &F::serving)
      .def_property_readonly("memory", memory_of)
      .def_property_readonly("kernels",
                             [](const F& f) { return kernel_rows(f.kernels, f.names); })
      .def_property_readonly("warnings", [](const F& f) { return warning_texts(f.warnings); })
      .def_property_readonly("warning_codes",
                             [](const F& f) { return warning_code_names(f.warnings); })
      .def(
          "to_json", [](const F& f) { return llm_json(f); },
          "What `tilecast forecast --format json` writes.")
      .def(
          "table",
          [](const F& f, int width, size_t rows) {
            return llm_table(f, {.width = width, .rows = rows});
          },
          py::arg("width") = TableStyle{}.width, py::arg("rows") = 8,
          "What `tilecast forecast` writes.");
  add_views(llm);
}

}  // namespace tilecast::python
