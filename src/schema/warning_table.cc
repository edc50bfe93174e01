#include "schema/warning_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "schema/warning_sentences.h"

namespace tilecast {
namespace {

constexpr std::string_view kStep = "the step; empty for a pass", kDevice = "the device",
                           kModel = "the model", kNone = "";
constexpr std::string_view kOfTime = "the time";

FactDef message(std::string_view doc) { return {.name = "message", .doc = doc}; }

std::vector<WarningDef> make_table() {  // NOLINT(readability-function-size): a table
  using enum FactKind;
  using enum WarningCode;
  return {
      {kModelFile,
       "model_file",
       "An assumption made while reading a model.",
       kModel,
       kNone,
       {message("what is assumed")},
       "{message}"},
      {kCheckpoint,
       "checkpoint",
       "An assumption about the checkpoint.",
       kModel,
       kNone,
       {message("what is assumed")},
       "{message}"},
      {kDeviceFile,
       "device_file",
       "An assumption made while reading a device file.",
       kDevice,
       kNone,
       {message("what is assumed")},
       "{message}"},
      {kDtypeReplaced,
       "dtype_replaced",
       "The device does not support the dtype of the checkpoint.",
       kDevice,
       kNone,
       {{"requested", kText, "dtype of the checkpoint"}, {"used", kText, "dtype of the forecast"}},
       "{subject} does not support {requested}: forecast in {used} instead"},
      {kQuantizationIgnored,
       "quantization_ignored",
       "Training was requested for a quantized checkpoint.",
       kModel,
       kNone,
       {{"scheme", kText, "of the checkpoint"},
        {"source", kText, "field or file that states it"},
        {"used", kText, "dtype of the forecast"}},
       "training is forecast in {used}: the checkpoint's {scheme} ({source}) is for inference "
       "only"},
      {kSchemeReplaced,
       "scheme_replaced",
       "The device does not support the compute dtype of the checkpoint's scheme.",
       kDevice,
       kNone,
       {{"scheme", kText, "of the checkpoint"},
        {"source", kText, "field or file that states it"},
        {"compute_dtype", kText, "that the device lacks"},
        {"weight_bits", kWhole, "of the weights as they are stored"},
        {"dtype", kText, "that the kernel converts weights to"},
        {"used", kText, "scheme of the forecast"},
        {.name = "known",
         .kind = kFlag,
         .doc = "serving software has kernels for the replacement",
         .if_0 = "though no serving software is known to have such kernels for this GPU",
         .if_1 = "as vLLM's and SGLang's Marlin kernels do"}},
       "the checkpoint is in {scheme} ({source}), but {subject} does not support {compute_dtype}: "
       "the weights stay in {weight_bits} bits and the kernel converts them to {dtype} ({used}), "
       "{known}"},
      {kCacheDtypeReplaced,
       "cache_dtype_replaced",
       "The device does not support the dtype of the checkpoint's KV cache.",
       kDevice,
       kNone,
       {{"requested", kText, "dtype of the checkpoint's cache"},
        {"source", kText, "field or file that states it"},
        {"used", kText, "dtype of the cache"}},
       "the checkpoint's KV cache is in {requested} ({source}), but {subject} does not support "
       "{requested}: the cache is in {used}"},
      {kExtrapolated,
       "extrapolated",
       "Kernels are outside the training range.",
       kStep,
       kOfTime,
       {},
       "{step}{share} of the time is extrapolated outside the training range; the interval is "
       "widened"},
      {kUnmeasuredOperators,
       "unmeasured_operators",
       "Operators without any measured kernel are forecast as kernels of other operators.",
       kNone,
       kOfTime,
       {message("which operators")},
       "{message}"},
      {kNoModel,
       "no_model",
       "The weights have no model for some kernels.",
       kStep,
       kOfTime,
       {{"kernels", kText, "operators and dtypes"}},
       "{step}the weights have no model for {kernels}: {share} of the time comes from the "
       "roofline of the data sheet"},
      {kHostWait,
       "host_wait",
       "The GPU waits for the host.",
       kStep,
       kOfTime,
       {{.name = "cuda_graphs",
         .kind = kFlag,
         .doc = "of a step: whether they are in use",
         .optional = true,
         .absent =
             ": many short kernels; CUDA graphs or compilation would help (--host-launch-us 0 "
             "forecasts without the host)",
         .if_0 = "; CUDA graphs would help"}},
       "{step}the GPU waits for the host {share} of the time{cuda_graphs}"},
      {kUnmeasuredLinks,
       "unmeasured_links",
       "A step over several ranks communicates over links on which no collective was measured.",
       "the cluster, and how many of its GPUs are used",
       "the time, in exposed communication",
       {},
       "{subject}: collectives were not measured on some of its links: {share} of the time is "
       "exposed communication, in part by the law alone"},
      {kOneMeasuredServer,
       "one_measured_server",
       "Communication is in part over PCIe, which was measured on one server only.",
       "the cluster, and how many of its GPUs are used",
       "the time, in communication",
       {},
       "{subject}: {share} of the time is communication, in part over PCIe as it was measured on "
       "one server with L40S; PCIe of other servers may be much faster or slower: describe yours "
       "in a cluster file (--cluster FILE)"},
      {kSlowerExperts,
       "slower_experts",
       "Experts in low precision take longer than in 16 bits.",
       kStep,
       "their time in 16 bits: how much longer",
       {{"scheme", kText, "of the experts"},
        {"dtype", kText, "of 16 bits"},
        {"software", kText, "whose kernels run them"},
        {"device", kText, "id"}},
       "{step}experts in {scheme} take {share:.0f} longer than in {dtype} with {software} on "
       "{device}"},
      {kSlowerPrecision,
       "slower_precision",
       "Text generation in the precision that was asked for is no faster than in 16 bits.",
       "cache, if it is the precision of the cache; else empty",
       "the time in 16 bits: how much longer, at most",
       {{"dtype", kText, "that was asked for"},
        {"reference_dtype", kText, "of 16 bits"},
        {"ttft_s", kSeconds, "time to first token", true},
        {"reference_ttft_s", kSeconds, "the same in 16 bits", true},
        {"tpot_s", kSeconds, "time per output token", true},
        {"reference_tpot_s", kSeconds, "the same in 16 bits", true}},
       "",
       slower_precision_text},
      {kDoesNotFit,
       "does_not_fit",
       "The model does not fit into memory.",
       kDevice,
       kNone,
       {{"needed_bytes", kBytes, "peak"},
        {"usable_bytes", kBytes, "what may be used"},
        {"device_bytes", kBytes, "what programs see of the device's memory"},
        {"largest_batch", kWhole, "that fits, if it was computed; 0: not even one sequence", true},
        {"ways_that_fit", kText, "of a pass or an encode worker: options with which it fits", true},
        {"ranks", kWhole, "of text generation, as the next", true},
        {"prefill", kFlag, "it is a prefill worker", true},
        {"encode", kFlag, "it is an encode worker", true},
        {"rule", kText, "the software's option that limits memory", true},
        {"utilization", kNumber, "its value", true},
        {"tp_that_fits", kWhole, "fewest tensor-parallel ranks", true},
        {"dtype_that_fits", kText, "of weights", true},
        {"kv_dtype_that_fits", kText, "of the cache", true},
        {"pair_that_fits", kText, "two options together", true},
        {"tp_slower_share", kNumber, "by how much a decode step is forecast slower with it", true},
        {"dtype_slower_share", kNumber, "the same", true},
        {"kv_dtype_slower_share", kNumber, "the same", true},
        {"pair_slower_share", kNumber, "the same", true},
        {"utilization_that_fits", kNumber, "a lower value of the option", true},
        {"tokens_that_fit", kWhole, "length of the longest request", true}},
       "",
       does_not_fit_text},
      {kTightMemory,
       "tight_memory",
       "A step over several ranks leaves less memory than the allocator may lose, or a pass on one "
       "GPU less than a forecast of memory may err by.",
       kDevice,
       "the memory, that is left",
       {{"free_bytes", kBytes, "that are left"},
        {.name = "one_gpu",
         .kind = kFlag,
         .doc = "no other GPU takes part",
         .optional = true,
         .absent = "the buffers of NCCL or RCCL, and what the caching allocator cannot use, are "
                   "not counted",
         .if_1 = "a memory forecast may err by more"}},
       "only {free_bytes} ({share:.1f}) of the memory of {subject} are left: the step may run "
       "out of memory; {one_gpu}"},
      {kLengthsIgnored,
       "lengths_ignored",
       "Prompt or output lengths were given together with a trace.",
       "trace",
       kNone,
       {},
       "--prompt and --output are not used: the trace has its own lengths"},
      {kIdleClients,
       "idle_clients",
       "There are more clients than requests.",
       "concurrency",
       kNone,
       {{"clients", kWhole, "how many"}, {"requests", kWhole, "how many"}},
       "{clients} clients, but only {requests} requests: the other clients send none"},
      {kOverloaded,
       "overloaded",
       "The server cannot keep up with the load.",
       "rate or trace",
       kNone,
       {{.name = "rate",
         .kind = kNumber,
         .doc = "requests per second; none with a trace",
         .optional = true,
         .after = " requests a second",
         .absent = "the trace"},
        {"answered", kNumber, "requests per second"}},
       "the server does not keep up with {rate}: it answers {answered} requests a second, and the "
       "queue grows; waiting times depend on how long the load lasts"},
      {kDoesNotStart,
       "does_not_start",
       "The cache of a server holds no sequence of the longest length.",
       kNone,
       kNone,
       {{"max_model_len", kWhole, "length of the longest sequence in tokens"},
        {"tokens_that_fit", kWhole, "tokens in the cache"}},
       "",
       does_not_start_text},
      {kNoEffect,
       "no_effect",
       "An option changes nothing, as another one stands.",
       "the option",
       kNone,
       {{"value", kText, "of the option"}, {"reason", kText, "why it changes nothing"}},
       "--{subject} {value} has no effect: {reason}"},
  };
}

std::string_view kind_name(FactKind kind) {
  switch (kind) {
    case FactKind::kText:
      return "text";
    case FactKind::kWhole:
      return "whole number";
    case FactKind::kFlag:
      return "0 or 1";
    case FactKind::kBytes:
      return "bytes";
    case FactKind::kNumber:
      return "number";
    case FactKind::kSeconds:
      return "seconds";
  }
  return "";
}

}  // namespace

std::span<const WarningDef> warning_table() {
  static const std::vector<WarningDef> table = make_table();
  return table;
}

const WarningDef& warning_def(WarningCode code) {
  const auto table = warning_table();
  const auto index = static_cast<size_t>(code);
  TILECAST_CHECK(index < table.size() && table[index].code == code) << index;
  return table[index];
}

std::string warning_reference() {
  std::string text =
      "# Warnings\n\n"
      "Made by `tools/generate.sh` from `src/schema/warning_table.cc`; do not edit.\n\n"
      "Results have warnings as sentences (`warnings`) and by their codes (`warning_codes`); C++ "
      "has the facts of each as well (`Warning` in `tilecast/result.h`).\n";
  for (const WarningDef& def : warning_table()) {
    text += fmt::format("\n## {}\n{}\n", def.name, def.doc);
    if (!def.sentence.empty()) text += fmt::format("\n> {}\n", def.sentence);
    if (!def.subject.empty()) text += fmt::format("\nSubject: {}.\n", def.subject);
    if (!def.share.empty()) text += fmt::format("\nShare: of {}.\n", def.share);
    if (def.facts.empty()) continue;
    text += "\n| fact | type | what it is |\n|---|---|---|\n";
    for (const FactDef& fact : def.facts)
      text += fmt::format("| `{}` | {}{} | {} |\n", fact.name, kind_name(fact.kind),
                          fact.optional ? ", optional" : "", fact.doc);
  }
  return text;
}

}  // namespace tilecast
