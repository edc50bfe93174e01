#pragma once

// A request for a forecast, and the table of its options. Command-line flags, checks, help,
// completion, the manual page and the options in JSON are derived from the table.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tilecast/choices.h"
#include "tilecast/error.h"

namespace tilecast {

enum class RequestKind : uint8_t {
  kPass,      ///< one forward pass or training step
  kGenerate,  ///< text generation for a static batch of prompts
  kServe,     ///< a server with continuous batching under a load
};

/// One request of a recorded load.
struct TraceRequest {
  double arrival_s = 0;            ///< where it `follows`, that of the turn before
  int64_t prompt = 0, output = 0;  ///< tokens; prompts contain what was said before
  /// Number of its conversation, whose turns are in the order of the list.
  std::optional<int64_t> session = {};
  bool follows = false;  ///< it is sent `think_s` after the answer to the turn before
  double think_s = 0;
  /// What the blocks of the prompt contain (Load::hash_block_size). Prompts that begin with the
  /// same numbers begin with the same tokens. May be empty.
  std::vector<int64_t> hash_ids = {};
  std::optional<int64_t> adapter = {};  ///< number of its low-rank adapter (ServedAdapters)
};

/// Reads a CSV or JSONL file of requests (docs/reference/traces.md), sorted by arrival. Throws
/// Error{kIo} or Error{kNotFound} if it cannot be read, Error{kInput} with file and line if it is
/// malformed.
std::vector<TraceRequest> read_trace(const std::string& path);

/// Maximum number of requests in one simulation.
inline constexpr int64_t kMaxServedRequests = 100'000;

/// The load of a server and its limits. Exactly one of rate, concurrency and trace is given.
struct Load {
  double rate = 0;  ///< requests per second, arriving as a Poisson process; 0: not given
  /// Number of clients; each sends its next request when one is answered; 0: not given.
  int64_t concurrency = 0;
  /// Recorded requests with their arrival times; empty: not given.
  std::vector<TraceRequest> trace;
  /// How many to simulate; 0: 1000 for a rate, 6 per client, all of a trace.
  int64_t requests = 0;
  /// Each request's lengths are drawn uniformly from `Request::prompt` to `max_prompt` and from
  /// `Request::output` to `max_output`; 0: all requests have the same length.
  int64_t max_prompt = 0, max_output = 0;
  bool lengths_given = false;  ///< prompt or output was given; a trace ignores them
  /// Maximum of sequences at once, of one data-parallel rank; default: the software's.
  std::optional<int64_t> max_num_seqs;
  double prefix_hit_rate = 0;  ///< share of each prompt that is in the prefix cache
  /// Conversations instead of single requests, without a trace: turns of each, and the time between
  /// an answer and the next turn. A turn's prompt has all that was said before.
  int64_t session_turns = 1;
  double session_turn_delay_s = 0;
  /// Conversations with a rate: requests that are simulated first and not counted. Default: until
  /// conversations end as often as they begin.
  std::optional<int64_t> warmup_request_count;
  /// Tokens that come before each conversation, one of `num_prefixes` system prompts.
  int64_t prefix_len = 0, num_prefixes = 1;
  int64_t hash_block_size = 512;  ///< tokens of a block of TraceRequest::hash_ids
  bool prefix_caching = true;     ///< full blocks are kept for requests that begin the same way
  /// Memory of the host that takes blocks for which the GPU has no room; 0: none.
  double kv_offloading_bytes = 0;
  /// From a client to the scheduler and back, beside the steps: HTTP, tokenizer, queues between
  /// processes; default: the software's.
  std::optional<double> server_overhead_s;
  /// Time in which a server takes in one request, one after the other; default: the software's.
  std::optional<double> request_turn_s;
  std::optional<double> ttft_s, tpot_s;  ///< goodput counts the requests that meet these limits
};

/// When a server looks for requests, and when it starts them. Zeros and ones: at once.
struct Scheduling {
  /// A step is formed while the step before it runs; default: the software's, by its version.
  std::optional<bool> async;
  int64_t recv_interval = 1;  ///< SGLang: decode steps between two looks
  /// SGLang: decode steps that run in a row before it looks.
  int64_t continuous_decode_steps = 1;
  /// TensorRT-LLM: steps for which prompts wait for others, unless they fill this share of
  /// `max_num_batched_tokens`.
  int64_t batch_wait_timeout_iters = 0;
  double batch_wait_max_tokens_ratio = 0;
  /// TensorRT-LLM, data-parallel ranks: steps for which prompts wait until each rank has one, and
  /// for which they wait for more after that; 0: they do not.
  int64_t attention_dp_timeout_iters = 0;
  int64_t attention_dp_batching_wait_iters = 0;
};

/// Each token chooses its experts by itself, and some are chosen more often: of 128 experts, 16
/// tokens with 8 each meet about half, not all. The smaller of the two exponents that were measured
/// (aiconfigurator's power_law_1.01).
inline constexpr int64_t kServedSkew = 101;

/// How the work is executed: software, precision, parallelism.
struct Execution {
  /// The dtype of weights and activations ("fp32", "tf32", "bf16", "fp16"), torch.autocast with
  /// fp32 weights ("amp": bf16, "amp-fp16"), or a quantization scheme ("fp8", "int4_wo", …:
  /// inference only). "": the checkpoint's, else fp32 for a forward pass, amp (amp-fp16 where there
  /// is no bf16) for training and bf16 for text generation. Training and serving software take 16
  /// bits for checkpoints in fp32, too.
  std::string dtype;
  /// Dtype of the KV cache; "": the checkpoint's, else that of the activations.
  std::string kv_dtype;
  std::optional<Software> software;  ///< default: PyTorch for a pass, vLLM for text generation
  std::string software_version;      ///< "0.12.0"; "": the newest that data/software describes
  /// Default: what Transformers takes, PyTorch's scaled_dot_product_attention (flash) where the
  /// model's class supports it, else eager; eager with selective checkpointing.
  std::optional<AttentionKind> attention;
  Fusion fusion = Fusion::kNone;
  /// Of the images that convolutions read and write. Default: as the graph says; channels first for
  /// configs and ONNX files.
  std::optional<MemoryFormat> memory_format;
  PredictorKind predictor = PredictorKind::kLearned;
  /// Clock of the GPU: "boost" or "base", as in its data sheet, "sustained": what the board's power
  /// allows while the work repeats for seconds, or a number of MHz. "": sustained for training
  /// (but for the roofline) and where `power_cap_w` is given, else boost.
  std::string clocks;
  /// By which the software's host costs below are multiplied, where the request does not state them
  /// (data/laws/host.json).
  HostClass host = HostClass::kTypical;
  /// Time that the host needs for each kernel that it launches; 0: launches are free. Default: 20
  /// us with PyTorch, 50 us with servers. On an H100's host, models of Transformers 5.17 took 19 to
  /// 57 us a kernel in eager PyTorch 2.11 (data/measurements); the launch itself takes 4 of these.
  /// The default is the least of them, 20 us; that of servers follows from prompts of public runs
  /// (research/servers).
  std::optional<double> host_launch_s;
  /// For decode steps, and for parts of steps with prompts: see `cudagraph_mode`.
  bool cuda_graphs = true;
  /// Which steps of a server are graphs; default: the software's.
  std::optional<CudaGraphMode> cudagraph_mode;
  /// Tokens of a step with prompts up to which its parts are graphs; default: the software's.
  std::optional<int64_t> max_cudagraph_capture_size;
  MoeBackend moe_backend = MoeBackend::kAuto;
  /// vLLM from release 0.21 on: captured graphs are among what gpu_memory_utilization limits.
  bool count_cuda_graphs = false;
  /// Data-parallel ranks; for text generation of one server, which divide the sequences in
  /// attention, and share the experts. Each of them has `tp` GPUs in every stage.
  int64_t dp = 1;
  int64_t tp = 1;            ///< tensor-parallel ranks, which share each layer
  int64_t pp = 1;            ///< pipeline stages
  int64_t microbatches = 1;  ///< of each data-parallel rank; training only
  /// Maximum number of tokens in one step, prompts and decodes together. Source: vLLM,
  /// engine/arg_utils.py (default_max_num_batched_tokens of the server) for GPUs with 70 GiB or
  /// more; 2048 for others.
  int64_t max_num_batched_tokens = 8192;
  /// Share of the device's memory that the software may use, by its own rule
  /// (docs/explanation/servers.md); nullopt: the software's default.
  std::optional<double> gpu_memory_utilization;
  /// The longest sequence that a server accepts; default: the model's positions.
  std::optional<int64_t> max_model_len;
  /// 100 × the exponent of the power law of the experts' load; 0: all get as many tokens. Default:
  /// 0 for a pass; for text generation `kServedSkew`, but 0 with DeepEP (copies of busy experts
  /// even it out), and where a token chooses more than an eighth of the experts.
  std::optional<int64_t> skew_percent;
  /// Time between two steps of text generation in which the GPU computes nothing of the model, or
  /// small kernels outside of the CUDA graph only: inputs are copied, tokens drawn and sent back.
  /// Default: 0 with PyTorch, whose kernels wait for the host in any case, else the software's, by
  /// its version (data/software).
  std::optional<double> step_overhead_s;
  /// The same for each sequence of the step; default: the software's.
  std::optional<double> sequence_overhead_s;
};

/// How work is divided over the ranks of a cluster, beside the degrees in Execution. Text
/// generation reads the first fields only, up to `ep`.
struct Parallel {
  /// Id, alias or file of a cluster; "": one node of the GPU.
  std::string cluster;
  std::optional<int64_t> nodes;  ///< default: as few as hold all ranks
  /// Expert-parallel ranks, which share the experts. Training: they are among the data- and
  /// context-parallel ranks. Text generation: among the tp · dp ranks of a stage; the others of
  /// these divide each expert (tp · dp / ep).
  int64_t ep = 1;
  int64_t cp = 1;  ///< context-parallel ranks, which share each sequence
  CpCommType cp_comm_type = CpCommType::kAllGather;
  /// Sequences of one micro-batch; default: what `batch` and `microbatches` give.
  std::optional<int64_t> micro_batch_size;
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  std::optional<int64_t> layers_per_virtual_stage;
  std::string stage_layers;  ///< layers of each stage, "3,4,4,3"; "": as even as possible
  bool sequence_parallel = false;
  /// Exchanges of sequence parallelism run beside the products that they feed or drain.
  bool tp_comm_overlap = false;
  /// Exchanges of experts run beside another micro-batch's passes.
  bool moe_comm_overlap = false;
  TokenDispatcher token_dispatcher = TokenDispatcher::kAllToAll;
  /// Ranks that divide each expert, among the data- and tensor-parallel ones. Default: the
  /// tensor-parallel ranks. Where they are others, each rank sends tokens of its own.
  std::optional<int64_t> expert_tp;
  /// Tensor-parallel ranks divide a vocabulary that is padded to a multiple of this number times
  /// `tp`. Megatron-LM's option and default.
  int64_t vocab_divisible_by = 128;
  Zero zero = Zero::kNone;
  /// Gradients are reduced in buckets of this size. Source: PyTorch's DistributedDataParallel,
  /// bucket_cap_mb; its first bucket has 1 MiB (torch/csrc/distributed/c10d/reducer.hpp).
  double bucket_bytes = 25.0 * (1 << 20);
  bool overlap_grad_reduce = true;  ///< with the backward pass; else after it
  /// Default: fp32 beside 16-bit parameters that are trained, else as the model.
  std::optional<MainParams> main_params;
  /// Ranks that compute slower than others: "5:1.2,17:1.5" (rank:factor).
  std::string slow_ranks;

  bool has_fp32_copies() const { return main_params == MainParams::kFp32; }
};

/// Servers that compute prompts only. The others, which `replicas` counts, get the KV cache from
/// them and compute all tokens after the first.
struct PrefillPool {
  int64_t workers = 0;                     ///< 0: there is no such pool
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;  ///< of each worker; as in Execution and Parallel
  KvTransfer transfer = KvTransfer::kAfterPrefill;
};

/// Servers that run the vision tower only. All others get the tokens of images from them.
struct EncodePool {
  int64_t workers = 0;  ///< 0: the tower runs before the prefill, on the same GPUs
  int64_t tp = 1;       ///< of each worker
};

/// Several tokens in a step of a sequence: a draft of `tokens` tokens is made, and the model checks
/// them all at once.
struct Speculation {
  int64_t tokens = 0;  ///< 0: none
  /// What makes drafts. Default: `draft_model` if there is one, else the model's own layers.
  std::optional<DraftMethod> method;
  /// Probability that the model accepts a token of the draft, if it has accepted those before.
  std::optional<double> acceptance_rate;
  /// Name or file of the model that makes drafts; "": the model's own layers for multi-token
  /// prediction (MTP).
  std::string draft_model;
};

/// Low-rank adapters (LoRA) of which each request to a server has one; there are none where
/// `Request::lora_rank` is 0. A trace may name those of its requests.
struct ServedAdapters {
  int64_t count = 1;  ///< different ones
  double skew = 0;    ///< exponent of the power law by which requests choose; 0: evenly
  std::optional<int64_t> max_loras;      ///< in one step; default: the software's
  std::optional<int64_t> max_lora_rank;  ///< that memory is kept for; default: the software's
};

/// Text generation by more than one server, and what its ranks exchange.
struct Deployment {
  /// Equal servers behind a router. `batch` and `concurrency` belong to each server, rate and trace
  /// to all together.
  int64_t replicas = 1;
  Router router = Router::kLeastLoaded;
  All2All all2all = All2All::kAllGather;
  PrefillPool prefill;
  EncodePool encode;
  Speculation speculation;
};

/// The price of a GPU by a list or a price table (docs/reference/price_tables.md).
struct GpuPrice {
  double price_per_gpu_hour = 0;
  std::string gpu;       ///< a GPU or a cluster, as the row names it; "": one number is for all
  std::string table;     ///< name or file; "": no table
  std::string currency;  ///< "USD"; "": not stated, also the next two
  std::string date, source;

  /// A source that begins with this word is none.
  bool is_guess() const { return source.starts_with("guess"); }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = GpuPrice;
    field.is("GpuPrice", "The row of a list or a price table that a cost follows from.");
    field("table", "", "name or file of the table; empty: a list of the request", &Self::table);
    field("gpu", "", "GPU or cluster, as the row names it", &Self::gpu);
    field("price_per_gpu_hour", "", "of one GPU", &Self::price_per_gpu_hour);
    field("currency", "", "empty: not stated", &Self::currency);
    field("date", "", "of the price; empty: not stated", &Self::date);
    field("guess", "", "the price has no source that can be looked up",
          [](const Self& x) { return x.is_guess(); });
    field("source", "", "of the price; empty: not stated", &Self::source);
  }
};

/// The power that a GPU may draw, and what electricity and GPUs cost. No price is made up.
struct EnergyTerms {
  std::optional<double>
      power_cap_w;              ///< of each GPU (`nvidia-smi -pl`); default: the board's limit
  bool best_power_cap = false;  ///< in its place: the cap with the least energy
  std::optional<double> price_per_gpu_hour, price_per_kwh, carbon_g_per_kwh;
  /// In place of price_per_gpu_hour, by GPU: a list ("H100=2.5,A100=1.2"), a file, or the name of a
  /// price table; "": not given.
  std::string gpu_prices = {};
  std::optional<GpuPrice> gpu_price = {};  ///< the GPU's, once it is looked up
};

/// What a pipeline of image or video diffusion makes, and how GPUs share it. Sizes that are left
/// out are the defaults of the pipeline's class.
struct DiffusionTerms {
  std::optional<int64_t> steps;          ///< of the denoiser
  std::optional<double> guidance;        ///< scale of classifier-free guidance; 1 or less: none
  std::optional<int64_t> height, width;  ///< pixels
  std::optional<int64_t> frames;         ///< of a video
  std::optional<double> fps;             ///< that the video is played at
  /// Ranks that share each sequence: by heads in attention (Ulysses), or in a ring; ranks that
  /// share the two passes of guidance.
  int64_t ulysses_degree = 1, ring_degree = 1, cfg_degree = 1;

  int64_t ranks() const { return ulysses_degree * ring_degree * cfg_degree; }
  bool operator==(const DiffusionTerms&) const = default;
};

/// One request: what is forecast and how it is executed. Fields that do not apply to the kind of
/// request keep their defaults.
struct Request {
  RequestKind kind = RequestKind::kPass;
  int64_t batch = 1;  ///< sequences over all ranks of one server; 1 for `kServe`

  // For a pass.
  Mode mode = Mode::kInference;
  /// Tokens per sequence; default: the longest that the model takes, at most 2,048 (encoders and
  /// T5: 512).
  std::optional<int64_t> seq;
  /// The same of the decoder's sequences, of models with an encoder beside; default: as `seq`.
  std::optional<int64_t> decoder_seq;
  /// Training only, also the next ones. Default: AdamW; SGD for models with embedding tables.
  std::optional<Optimizer> optimizer;
  /// Default of Trainer of transformers 5 (training_args.py, optim) and of torchtitan.
  OptimizerImpl optimizer_impl = OptimizerImpl::kFused;
  /// The host keeps the optimizer's states and fp32 parameters, and computes the step.
  bool optimizer_offload = false;
  /// Of the host's memory, which all GPUs of a node share; default: that of data/laws.
  std::optional<double> host_bytes_per_s;
  ZeroGrad zero_grad = ZeroGrad::kSetToNone;
  Loss loss = Loss::kFull;
  /// Distillation: name or file of a model whose logits the trained one learns to match; "": none.
  std::string teacher;
  /// Default: the software's.
  std::optional<CrossEntropy> cross_entropy;
  /// Of training with `dtype` fp8; default: delayed, as Transformer Engine.
  std::optional<Fp8Recipe> fp8_recipe;
  /// Of training with `dtype` fp8 or fp4: layers whose products stay in 16 bits, the first and the
  /// last ones.
  int64_t bf16_start_layers = 0, bf16_end_layers = 0;
  /// Of training with `dtype` fp8: transposed copies of the weights stay in memory; else the
  /// backward pass makes them.
  bool transpose_cache = true;
  /// Tokens of each sequence of those that fill a row of `seq` tokens; default: a row is one.
  std::optional<int64_t> packed_length;
  Checkpointing checkpointing = Checkpointing::kNone;
  /// What selective checkpointing computes again, names separated by commas; "": core_attn.
  std::string recompute_modules;
  /// Of low-rank adapters, in training and of requests to a server; 0: there are none.
  int64_t lora_rank = 0;
  std::string lora_targets = "all-linear";  ///< names of linear layers, separated by commas
  std::optional<int64_t> tokens;            ///< of a whole training run: its days and GPU hours
  LoraDType lora_dtype = LoraDType::kAsModel;
  /// Sizes of symbolic dimensions of a model file: "seq=128,past=0"; "": none.
  std::string dims;
  bool skip_unsupported = false;  ///< leaves out operators of a model file that are not supported
  Parallel parallel;
  DiffusionTerms diffusion;

  // For text generation.
  int64_t prompt = 1024;  ///< tokens
  int64_t output = 256;   ///< tokens, including the first
  int64_t images = 0;     ///< of each prompt, which get their tokens in addition to `prompt`
  /// Pixels of a side of the (square) images; default: the config's, else 1024.
  std::optional<int64_t> image_size;
  Load load;  ///< for a server
  Scheduling scheduling;
  ServedAdapters adapters;
  Deployment deployment;

  Execution execution;
  EnergyTerms energy;
};

/// The type of an option's value.
enum class OptionType : uint8_t {
  kText,    ///< one of `choices`, or a range of numbers ("800:1000")
  kWhole,   ///< a whole number
  kNumber,  ///< any number
  kFile,    ///< a path; an error in the file is not an error of the command line
};

/// The kinds of requests that an option applies to, as bits `1 << kind`.
using RequestKinds = uint8_t;
inline constexpr RequestKinds kPasses = 1 << static_cast<int>(RequestKind::kPass);
inline constexpr RequestKinds kServers = 1 << static_cast<int>(RequestKind::kServe);
inline constexpr RequestKinds kTokens = kServers | 1 << static_cast<int>(RequestKind::kGenerate);
inline constexpr RequestKinds kAllKinds = kPasses | kTokens;

struct OptionDef;

/// How an option is read from text and written as text.
struct OptionAccess {
  OptionType type = OptionType::kText;
  /// Throws Error{kInput} that names the option if the text is not a valid value.
  void (*set)(Request&, const OptionDef&, const std::string& text) = nullptr;
  /// "" if the option was not given and has no default.
  std::string (*get)(const Request&, const OptionDef&) = nullptr;
};

/// One option of a request. Two options may have the same name if they apply to different kinds of
/// requests.
struct OptionDef {
  std::string name;
  RequestKinds kinds = kAllKinds;
  OptionAccess access;
  std::string value;          ///< placeholder of the value in help ("N"); "": the choices are shown
  std::string unit;           ///< unit of the text: "tokens", "us"; "": none
  std::string default_value;  ///< the default as text
  std::string help;
  std::vector<std::string> choices;   ///< the allowed values; empty: any value that `set` accepts
  double min = 1, max = 1LL << 31;    ///< range of a number; no real batch or length exceeds 2^31
  double per_unit = 1;                ///< factor from the field's unit to the text's unit
  std::vector<std::string> excludes;  ///< options that cannot be combined with this one
  /// "name=value" of another option that is required for values other than the default.
  std::string needs;
  /// A value that asks for nothing: it is accepted where `needs` is not met. "": there is none.
  std::string off_value;
  std::vector<std::string> old_names;  ///< accepted, but not shown in help
  bool repeated = false;  ///< may be given several times; the values are joined by commas

  bool applies_to(RequestKind kind) const { return (kinds >> static_cast<int>(kind) & 1) != 0; }
};

/// The sizes in `Request::dims`. Throws Error{kInput} if the text is not NAME=N, or names one
/// twice.
std::vector<std::pair<std::string, int64_t>> parse_dims(const std::string& text);

/// All options, in the order of the help.
const std::vector<OptionDef>& request_options();

/// The option of that name for requests of this kind; nullptr if there is none.
const OptionDef* find_option(const std::string& name, RequestKind kind);

/// The value of an option: a number in the unit of its text, or a word.
using OptionValue = std::variant<int64_t, double, std::string>;
/// The options of a request with their values, by name with `_` for `-` ("kv_dtype"). Options
/// without a value are omitted.
std::vector<std::pair<std::string, OptionValue>> option_values(const Request& request);

/// Sets one option from text. Throws Error{kInput} if the text is not a valid value.
void set_option(Request& request, const OptionDef& option, const std::string& text);

/// One option with its value as text.
struct GivenOption {
  std::string name, text;
};

/// The options alone, without any file, do not make a request.
class OptionError : public Error {
 public:
  explicit OptionError(const std::string& message) : Error(ErrorKind::kInput, message) {}
};

/// The request that the options describe, in words as on the command line. `prompt`, `trace` and
/// `schedule` make it one for text generation. Throws OptionError for an unknown option, an invalid
/// value, and options that contradict each other or do not apply to the kind of request; another
/// Error for a file that cannot be read or used.
Request make_request(std::span<const GivenOption> given);

/// Says why an option does not apply to requests of this kind: "`rate` needs `schedule`
/// continuous".
std::string why_not(const OptionDef& option, RequestKind kind);

/// Throws Error{kInput} if a value is invalid, or if options contradict each other or would have no
/// effect. Every forecast calls it first. Messages name options in backquotes: `batch`.
void check_request(const Request& request);

}  // namespace tilecast
