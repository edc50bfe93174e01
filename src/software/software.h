#pragma once

// The software whose kernels run a model: frameworks, servers, and libraries of matrix products
// whose kernels were measured alone. Each is a file in data/software: its versions, the scheduler
// and the rule of its cache by name (src/sim/scheduler.cc, src/scenario/generation/cache_pool.cc),
// its defaults, costs of the host, memory of a process, and traits that laws read. Laws never ask
// which software it is. A server's file has its flags too, with which the best plan is started. A
// file may be based on another's: it states what differs.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilecast/choices.h"

namespace tilecast {

/// Traits: how kernels of the software differ from another's. Laws read these. Each number's source
/// is in its file.
struct SoftwareTraits {
  // Products
  bool quantizes_activations = false;      ///< in launches before a product in 8 bits
  double quantization_launches_s = 0;      ///< time of these launches
  double fp4_quantization_launches_s = 0;  ///< the same before a product in FP4
  double fp8_scale_cycles_per_row = 0;     ///< of an SM, to find a scale for each row; 0: for all
  bool splits_products = false;            ///< a long k is divided between blocks
  double benchmark_weight_copies = 0;      ///< between which its benchmarks alternate
  bool benchmark_copies_fill_l2 = false;   ///< as many copies as fill L2, the above at most

  // Attention
  bool packs_heads_with_wgmma = false;     ///< query heads that share a key head share a tile
  bool packs_heads_with_mma_sync = false;  ///< the same (FlashInfer)
  /// Its kernels of prompts with mma.sync are FlashAttention 2's; FlashInfer's for 8-bit caches.
  bool runs_flash_attention_2 = false;
  bool packs_decode_heads_with_tcgen05 = false;  ///< the same of single queries
  bool falls_back_to_triton = false;             ///< for wide heads
  double prefill_cycles_ratio = 0;  ///< cycles of a pair of query and key, over FlashAttention's
  double prefill_launch_us = 0;     ///< beside the kernel's own launch
  double mma_sync_start_ratio = 0;  ///< of a block with mma.sync, over FlashAttention's
  double prefill_query_passes = 0;  ///< over the queries: rotary embedding in the same call
  double prefill_passes = 0;        ///< over new keys and values: the write of the cache
  bool rounds_heads_with_wgmma = false;   ///< to a power of two, up to wide_head_dim
  bool pages_prompts = false;             ///< FlashAttention 2 reads the keys of prompts by pages
  int64_t most_packed_decode_heads = 0;   ///< on a key head; 0: no limit
  bool compiles_decode_by_heads = false;  ///< decode kernels differ by query heads per key head
  double decode_latency_cycles = 0;       ///< of a kernel without tcgen05, beside its work
  bool multiplies_8bit_cache = false;     ///< without converting it first
  double windowed_decode_ratio = 0;       ///< of a kernel for windows with mma.sync, over others

  // Fusions of a step
  bool fuses_quantization_with_norm = false;  ///< the norm writes what the next product multiplies
  bool fuses_quantization_with_gate = false;  ///< so does a gated activation
  bool fuses_quantization_with_attention = false;
  bool fuses_fp4_quantization = false;  ///< the three above hold for FP4 too
  /// Families of models (model_type) whose modules fuse norms with what comes after; "": all.
  std::string families_with_fused_norms;
  bool compiles_gates = false;  ///< gated activations are kernels of a compiler, without row blocks

  // Training
  /// On GPUs with wgmma, cycles of a pair of query and key over those of kernels with wgmma.
  double wgmma_attention_ratio = 0, wgmma_attention_backward_ratio = 0;
  /// The same on GPUs with tcgen05.
  double tcgen05_attention_ratio = 0;
  bool fuses_modules = false;  ///< norms, rotary, activations and sums are a kernel each
  std::string cross_entropy;   ///< a word of CrossEntropy
  double learned_share = 0;    ///< of what measured times differ from laws, that counts for others
  /// The software whose measured kernels are its own too; "": none.
  std::string kernels_of;

  // Others
  double expert_launches_us = 0;         ///< routing, sorting, two products, activation, sum
  double block_fp8_experts_ratio = 0;    ///< time of experts in FP8 by blocks over the measured one
  bool has_row_blocks = false;           ///< norms, gates and rotary: a block for each row
  bool moves_rows_by_vectors = false;    ///< the same kernels move 16 bytes at a time
  std::string all_reduce_curve;          ///< of the weights of collectives; "": NCCL's
  bool overlaps_shared_experts = false;  ///< on a second stream, with few tokens
  bool fuses_norm_with_all_reduce = false;
  bool fuses_norm_on_older_gpus = false;  ///< that have no FP8 too

  bool operator==(const SoftwareTraits&) const = default;
};

/// Times of the host.
struct HostCosts {
  double host_launch_s = 0;        ///< for each kernel that is launched alone
  double hip_graph_launch_s = 0;   ///< for each kernel of a graph on AMD's GPUs
  double step_overhead_s = 0;      ///< between the steps of text generation
  double sequence_overhead_s = 0;  ///< the same for each sequence of a step
  double request_overhead_s = 0;   ///< from a client to the scheduler and back, beside its steps
  double request_turn_s = 0;       ///< of it: for one request after the other
  double ngram_token_s = 0;        ///< to search a draft in the tokens of a sequence, each

  bool operator==(const HostCosts&) const = default;
};

/// Defaults of a server where the request says nothing.
struct ServerDefaults {
  int64_t block_tokens = 0;         ///< tokens of a block of the cache
  int64_t latent_block_tokens = 0;  ///< the same for latent attention
  int64_t max_num_seqs = 0;
  int64_t max_num_seqs_large = 0;  ///< on GPUs with 70 GiB or more that have FP8
  std::string memory_option;       ///< its option that limits the memory it takes
  double memory_share = 0;         ///< default of this option, unless the cache rule computes it
  bool schedules_ahead = false;    ///< forms a step while the step before it runs
  bool captures_pieces = false;    ///< CUDA graphs of what lies between attention, with prompts too
  int64_t captured_tokens = 0;     ///< of a step with prompts, at most
  bool profiles_steps = false;     ///< runs its largest step once to find what it takes
  /// It ends with an error where its cache holds no sequence of the longest length. Others start,
  /// and take sequences that the cache holds.
  bool needs_longest_sequence = false;
  bool keeps_tower = false;  ///< has the weights of a vision tower that encode workers run

  bool operator==(const ServerDefaults&) const = default;
};

/// How a server keeps blocks of the cache for requests that begin like earlier ones
/// (src/sim/prefix_cache.h).
struct PrefixRule {
  /// Full blocks can be found as soon as they are allocated, by requests of the same step too; else
  /// after the step that computes them.
  bool finds_when_allocated = false;
  bool stores_parts_of_prompts = false;  ///< before the whole prompt is computed
  bool keeps_preempted = false;          ///< what a preempted request has written can be found
  bool takes_empty_first = false;        ///< free blocks without content before all others
  bool evicts_whole_leaves = false;      ///< of its tree; else single blocks
  /// Blocks are copied to the host's memory when they are computed; else when others take them.
  bool host_copies_when_computed = false;
  /// When blocks come back from there: "beside_steps" of other requests, "before_step" or
  /// "by_layer" of the step that needs them.
  std::string host_load;
  double host_link_ratio = 0;  ///< of the rate of the link, that reading blocks reaches

  bool operator==(const PrefixRule&) const = default;
};

/// How a server runs low-rank adapters of requests (LoRA).
struct LoraRule {
  int64_t max_loras = 0;      ///< different ones in a step, which are in the GPU's memory
  int64_t max_lora_rank = 0;  ///< that memory is kept for; 0: that of the adapters
  bool adapts_all = false;    ///< all layers that may have an adapter run its kernels, and memory
                              ///< is kept for them; else those that adapters have
  bool computes_kept_rank = false;  ///< kernels multiply by all ranks that memory is kept for
  bool clears_buffer = false;  ///< a kernel fills what lies between the two products with zeros
  double load_matrix_s = 0;    ///< of the host, for each matrix of an adapter that is loaded

  /// The rank that memory is kept for, where the request states none, for adapters of this rank.
  int64_t kept_rank(int64_t rank) const { return std::max(max_lora_rank, rank); }

  bool operator==(const LoraRule&) const = default;
};

/// How a server is started from a shell. Words of options, in which a name in braces stands for a
/// value; "": no flag sets it.
struct LaunchWords {
  std::string command;          ///< up to {model}
  std::string tp, pp, dp, ep;   ///< {tp}, {pp}, {dp}, {ep}, and {attention_ranks}: tp x dp
  std::string deepep;           ///< experts exchange tokens by DeepEP
  std::string bf16, fp16, fp8;  ///< dtype of the weights
  std::string fp8_cache;
  std::string max_model_len, max_num_seqs, max_num_batched_tokens, memory_share;  ///< also {…}
  std::string lora;  ///< {max_loras}, {max_lora_rank}

  bool operator==(const LaunchWords&) const = default;
};

/// Memory of a process beside the model's, in bytes.
struct SoftwareStack {
  std::string measured_with;
  /// Bytes that a process adds to the memory in use on the card, less torch.cuda.memory_reserved.
  int64_t context_bytes = 0;    ///< CUDA context
  int64_t modules_bytes = 0;    ///< at the first tensor
  int64_t libraries_bytes = 0;  ///< cuBLAS, at the first product
  /// Modules of further kernels, which CUDA loads at their first launch.
  int64_t inference_bytes = 0, training_bytes = 0;
  /// Buffers of NCCL and of the server's own collectives, on each of several ranks.
  int64_t communication_bytes = 0;
  /// cuBLAS workspace of one handle and stream, which PyTorch allocates like a tensor.
  int64_t workspace_bytes = 0;
  /// The same on GPUs of compute capability 9.0 and 10.0.
  int64_t workspace_large_bytes = 0;
  /// Of a library beside PyTorch (Transformer Engine), for its products; on GPUs of compute
  /// capability 9.0 and 10.0; and how many more it has for grouped products of experts.
  int64_t extension_workspace_bytes = 0, extension_workspace_large_bytes = 0;
  int64_t expert_workspaces = 0;

  bool operator==(const SoftwareStack&) const = default;
};

/// What the software runs on and what for.
struct SoftwareSupport {
  std::string architectures;  ///< of GPUs, words of device files with spaces between, or "any"
  bool trains = false;
  bool infers = false;  ///< passes and text generation

  bool operator==(const SoftwareSupport&) const = default;
};

/// A version that something here was read from or measured with.
struct SoftwareVersion {
  std::string version;
  std::string source;

  bool operator==(const SoftwareVersion&) const = default;
};

struct SoftwareDef {
  /// "": the newest that its file describes; else what versions before this one had in another way.
  std::string before;
  std::string name;         ///< its word in options, weights and measurements
  std::string title;        ///< its name in sentences
  int64_t position = 0;     ///< in lists, from 1; the first is PyTorch
  int64_t stand_in = 0;     ///< place, from 1, among those whose kernels stand in for another's
  bool runs_models = true;  ///< false: a library whose kernels were measured alone
  std::vector<SoftwareVersion> versions;
  std::string scheduler;   ///< by name (src/sim/scheduler.cc); "": it has none
  std::string cache_rule;  ///< by name (src/scenario/generation/cache_pool.cc); "": it has none
  SoftwareSupport support;
  SoftwareTraits traits;
  HostCosts costs;
  ServerDefaults server;    ///< where it serves
  PrefixRule prefix_cache;  ///< where it serves
  LoraRule lora;            ///< where it serves
  LaunchWords launch;       ///< of a server; its command may be "": it is not known
  SoftwareStack memory;

  bool serves() const { return !scheduler.empty(); }
  bool operator==(const SoftwareDef&) const = default;
};

/// A file of data/software.
struct SoftwareFile {
  std::string where;  ///< names it in messages
  std::string_view text;
};
/// The table of these files, in order of position. Throws Error{kInput} for content that is not as
/// described above: unknown keys, wrong units, missing sources, places that are taken twice.
std::vector<SoftwareDef> read_software(std::span<const SoftwareFile> files);

/// One value of a file, without unit and source.
struct SoftwareValue {
  std::string_view software;  ///< its name; of earlier versions with the first that differs: a<1.0
  std::string_view section;   ///< "": the file itself
  std::string_view key;       ///< in `versions`, the version
  std::variant<bool, double, std::string_view> value;
};
/// The table that the build makes of data/software (cmake/software.cmake).
std::span<const SoftwareValue> stored_software();

/// All of data/software; Software is the index. Earlier versions are not among them, but have a
/// Software of their own too.
std::span<const SoftwareDef> all_software();
const SoftwareDef& software_def(Software software);
/// The software as this version has it, "0.12.0"; "": the newest. Throws Error{kInput} for words
/// that are no version.
Software software_version(Software software, std::string_view version, const std::string& where);
/// The same software in its newest version, whose kernels were measured.
Software newest_version(Software software);
/// The software under whose name its kernels were measured: the newest version of itself, or of
/// another that it takes over.
Software measured_kernels(Software software);
inline const SoftwareTraits& traits_of(Software software) { return software_def(software).traits; }

/// The first server of the table: that of text generation where the request names none.
Software default_server();
/// All, by `stand_in`.
const std::vector<Software>& stand_ins();

std::string_view software_name(Software software);
/// nullopt where no software has that name.
std::optional<Software> find_software(std::string_view name);
/// Throws Error{kInput} with the known names.
Software parse_software(std::string_view name, const std::string& where);
/// All, in the order of the table.
const std::vector<std::string>& software_names();
/// The software that models can be forecast with, and the software among it that serves.
std::vector<std::string> model_software_names();
/// Those of them that run models forward only: some software only trains.
std::vector<std::string> inference_software_names();
std::vector<std::string> server_software_names();

}  // namespace tilecast
