#pragma once

// What is asked of a forecast, and the table of its options: flags, checks, help, completion, the
// manual page and the values in JSON derive from the table.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilecast/choices.h"

namespace tilecast {

enum class RequestKind : uint8_t {
  kPass,      ///< one forward pass or training step
  kGenerate,  ///< a static batch of prompts, answered token by token
  kServe,     ///< a server that batches continuously, under a load
};

/// A request of a recorded load.
struct TraceRequest {
  double arrival_s = 0;
  int64_t prompt = 0, output = 0;  ///< tokens
};

/// Reads a CSV file with the columns arrival_s, prompt and output (seconds, tokens, tokens), sorted
/// by arrival. Throws Error{kIo, kNotFound} where it cannot be read, Error{kInput} with file and
/// line where it is wrong.
std::vector<TraceRequest> read_trace(const std::string& path);

/// Sequences that a server runs at once when nothing is said. Source: vLLM, engine/arg_utils.py
/// (default_max_num_seqs), for GPUs with less than 70 GiB; for larger ones newer releases take
/// 1024.
inline constexpr int64_t kDefaultMaxNumSeqs = 256;

/// Requests of one simulation at most.
inline constexpr int64_t kMaxServedRequests = 100'000;

/// The load of a server and what bounds its answers. One of rate, concurrency and trace is given.
struct Load {
  double rate = 0;  ///< requests a second of a Poisson process; 0: not asked
  int64_t concurrency =
      0;  ///< clients that send the next request when one is answered; 0: not asked
  std::vector<TraceRequest> trace;  ///< requests at their own times; empty: not asked
  int64_t requests = 0;  ///< to simulate; 0: 1000 at a rate, 6 for each client, all of a trace
  /// Lengths are drawn evenly from `Request::prompt` to `max_prompt`, and from `Request::output`
  /// to `max_output`; 0: all are alike.
  int64_t max_prompt = 0, max_output = 0;
  bool lengths_given = false;           ///< someone named a length, which a trace makes useless
  std::optional<int64_t> max_num_seqs;  ///< sequences that run at once; default: kDefaultMaxNumSeqs
  double prefix_hit_rate = 0;    ///< share of each prompt that is in the cache before it arrives
  double server_overhead_s = 0;  ///< HTTP and tokenizer, before the scheduler sees a request
  std::optional<double> ttft_s, tpot_s;  ///< limits that goodput counts by
};

/// How the work is executed, whatever it is.
struct Execution {
  /// Of weights and activations ("fp32", "tf32", "bf16", "fp16"), torch.autocast around fp32
  /// weights ("amp": bf16, "amp-fp16"), or how weights are stored and multiplied ("fp8", "int4_wo",
  /// …: inference only). "": as the checkpoint says, else fp32 for a pass and bf16 token by token.
  std::string dtype;
  std::string kv_dtype;  ///< of the cache; "": as the checkpoint says, else as the activations
  std::optional<Software> software;  ///< default: PyTorch for a pass, vLLM token by token
  AttentionKind attention = AttentionKind::kEager;
  Fusion fusion = Fusion::kNone;
  PredictorKind predictor = PredictorKind::kLearned;
  /// What the host takes to launch a kernel; 0: launches cost nothing.
  /// 5 us: a guess until the measurement kit has seen a host; PyTorch's eager dispatch of small
  /// operators is usually put at 4 to 10 us.
  double host_launch_s = 5e-6;
  bool cuda_graphs = true;  ///< of decode steps; a prefill is launched kernel by kernel
  int64_t dp = 1;           ///< ranks; of a pass only 1 so far, as for the three below
  int64_t tp = 1;           ///< ranks that share each layer
  int64_t pp = 1;
  int64_t microbatches = 1;
  /// Tokens of one step at most, prompts and decodes together. Source: vLLM, engine/arg_utils.py
  /// (default_max_num_batched_tokens of the server) for GPUs with 70 GiB or more; 2048 for others.
  int64_t max_num_batched_tokens = 8192;
  double gpu_memory_utilization = 0.9;  ///< share of the device's memory that may be used
  int64_t skew_percent = 0;  ///< 100 times the exponent of the experts' popularity; 0: even
};

/// One request: what is forecast, and how it is executed. Fields that the kind has no use for keep
/// their defaults.
struct Request {
  RequestKind kind = RequestKind::kPass;
  int64_t batch = 1;  ///< sequences, of all ranks together; of a server 1

  // Of a pass.
  Mode mode = Mode::kInference;
  std::optional<int64_t> seq;  ///< tokens a sequence; default: what the model was made for
  Optimizer optimizer = Optimizer::kNone;  ///< training only

  // Token by token.
  int64_t prompt = 1024;  ///< tokens
  int64_t output = 256;   ///< tokens, the first included
  Load load;              ///< of a server

  Execution execution;
};

/// What an option's text stands for.
enum class OptionType : uint8_t {
  kText,    ///< one of `choices`, or a range of numbers ("800:1000")
  kWhole,   ///< a whole number
  kNumber,  ///< any number
  kFile,    ///< a path: what is wrong with the file is no error of the command line
};

/// Kinds of requests that have an option, as bits `1 << kind`.
using RequestKinds = uint8_t;
inline constexpr RequestKinds kPasses = 1 << static_cast<int>(RequestKind::kPass);
inline constexpr RequestKinds kServers = 1 << static_cast<int>(RequestKind::kServe);
inline constexpr RequestKinds kTokens = kServers | 1 << static_cast<int>(RequestKind::kGenerate);
inline constexpr RequestKinds kAllKinds = kPasses | kTokens;

struct OptionDef;

/// How an option is read from text and written as text.
struct OptionAccess {
  OptionType type = OptionType::kText;
  /// Throws Error{kInput} naming the option where the text does not fit.
  void (*set)(Request&, const OptionDef&, const std::string& text) = nullptr;
  /// "" where nothing was given and nothing is known that stands for it.
  std::string (*get)(const Request&, const OptionDef&) = nullptr;
};

/// One option of a request. Two options may have one name where they mean different things for
/// different kinds of requests.
struct OptionDef {
  std::string name;
  RequestKinds kinds = kAllKinds;
  OptionAccess access;
  std::string value;  ///< what stands for the value in help ("N"); "" where `choices` says it
  std::string unit;   ///< of the text: "tokens", "us"; "" where it has none
  std::string default_value;  ///< default, as text
  std::string help;
  std::vector<std::string> choices;   ///< the closed list of values; empty: any that `set` takes
  double min = 1, max = 1LL << 31;    ///< of a number: no batch or length beyond 2^31 is meant
  double per_unit = 1;                ///< how many of the text's unit are one of the field's
  std::vector<std::string> excludes;  ///< names of options that may not be given beside this one
  /// "name=value" of another option, without which a value other than the default has no meaning.
  std::string needs;
  std::vector<std::string> old_names;  ///< still read, but not shown

  bool applies_to(RequestKind kind) const { return (kinds >> static_cast<int>(kind) & 1) != 0; }
};

/// All options, in the order of the help.
const std::vector<OptionDef>& request_options();

/// The option that requests of this kind have; nullptr where there is none of that name.
const OptionDef* find_option(const std::string& name, RequestKind kind);

/// Sets one option from text. Throws Error{kInput} where the text is none of the choices or does
/// not fit.
void set_option(Request& request, const OptionDef& option, const std::string& text);

/// Why requests of this kind do not have the option: "`rate` needs `schedule` continuous".
std::string why_not(const OptionDef& option, RequestKind kind);

/// Throws Error{kInput} where a value is not known, or options contradict each other or would have
/// no effect. Forecasts begin with it. Messages name options in backquotes: `batch`.
void check_request(const Request& request);

}  // namespace tilecast
