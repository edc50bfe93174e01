#pragma once

// One server that batches continuously. Goals: several servers can be simulated side by side, each
// advanced to its next event. The results are declared in src/sim/serving.h.

#include <deque>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/adapter_slots.h"
#include "sim/decode_run.h"
#include "sim/scheduler.h"
#include "sim/token_gaps.h"

namespace tilecast {

/// State that all servers of a simulation share.
struct EngineShared {
  std::vector<ServedRequest>& requests;
  std::vector<RequestTimes>& times;
  int64_t& work;                        ///< keeps every simulation within a few seconds
  const PrefixRule* prefix = nullptr;   ///< by which caches keep blocks; null: they keep none
  const ServingLoad* images = nullptr;  ///< whose images these servers encode; null: none
  bool watched = false;                 ///< ServerPool::watch sees the steps
};

/// A request that is answered completely.
struct Answered {
  size_t request = 0;
  double at_s = 0;
};

class Engine {
 public:
  /// `pool` must outlive the engine. `prefix_blocks`: see shared_blocks.
  Engine(const ServerPool& pool, const EngineShared& shared, int64_t prefix_blocks);

  /// When it does something next; infinity: when it gets a request.
  double next_s() const { return next_s_; }
  /// A request reaches the scheduler. `at_s` is not before any event that has happened.
  void receive(size_t request, double at_s);
  /// Does the next thing. Adds the requests that are answered. Steps that end after `until_s`, when
  /// requests may come, are only begun: a request that does come cuts a jump over several steps.
  void advance(double until_s, std::vector<Answered>& answered);

  /// When a request that comes at this time has what the host's memory has of its prompt: later
  /// where the software reads it before the request gets to the scheduler.
  double read_host(size_t request, double at_s);

  int64_t in_flight() const { return in_flight_; }
  double busy_s() const { return busy_s_; }
  double used_block_s() const { return used_block_s_; }
  int64_t steps() const { return steps_; }
  int64_t decoded() const { return decoded_; }
  int64_t preemptions() const;
  int64_t adapter_loads() const { return adapter_loads_; }
  int64_t adapter_steps() const { return adapter_steps_; }
  const TokenGaps& gaps() const { return gaps_; }
  /// Adds what the prefix caches of its ranks have found, lost and kept.
  void add_prefix_use(PrefixUse& use) const;
  /// What was before is not counted.
  void forget_counts();

 private:
  /// One of the batches in the pipeline.
  struct Lane {
    std::vector<ServerState> ranks;
    std::vector<int64_t> in_flight;  ///< by rank
    double ready_s = 0;              ///< when its next step may begin
    bool running = false;
    bool has_work = false;  ///< a sequence waits or runs, as of the last arrival or end of a step
    bool blocked = false;   ///< until a step of another batch ends: those hold the cache
    double start_s = 0;     ///< of the running step
    double end_s = 0;       ///< of the running step
    std::vector<std::vector<Scheduled>> step;
    int64_t steps = 1;            ///< that run one after the other
    double step_s = 0;            ///< of each of them
    std::vector<double> stage_s;  ///< of each of them, on each stage
    int64_t priced = 0;           ///< further steps of `decode_run` that take as long
    bool alike = false;           ///< `decode_run` is worth while
    bool decodes = false;         ///< all sequences decode in this step
    DecodeRun decode_run;
    bool in_decode_run = false;         ///< the running steps belong to `decode_run`
    bool taken = false;                 ///< … and `decode_run` has counted them
    bool arrived = false;               ///< a request came while they ran
    std::vector<ServingBatch> batches;  ///< of the last step
    /// Sequences that decode for the first time in the next step that decodes: when they got their
    /// first tokens, how many.
    std::vector<std::pair<double, int64_t>> first_tokens;
    double decode_ended_s = 0;  ///< when the last step that decodes has ended
    /// Requests that the scheduler has not seen yet, with their ranks.
    std::vector<std::pair<size_t, size_t>> unseen;
    int64_t adapter_loads = 0;   ///< of the rank with the most, before the next step
    int64_t unlooked_steps = 0;  ///< decode steps since prompts: it looks after every few
    bool goes_on = false;        ///< between two steps, the next of which is sure to come
    int64_t rank_wait_steps = 0, rank_batch_steps = 0;  ///< for which prompts have waited
  };
  double next_of(const Lane& lane) const;
  double earliest_s() const;
  bool sees_later(const Lane& lane) const;
  void look(Lane& lane);
  void take_unseen(Lane& lane);
  bool holds_prompts(Lane& lane) const;
  std::pair<Lane*, size_t> next_place();
  double host_blocks_s(const Lane& lane) const;
  void add_host_time(Lane& lane);
  void use_adapters(Lane& lane);
  void begin(Lane& lane, double until_s);
  void wait(Lane& lane);
  void find_time(Lane& lane, int64_t steps);
  void run(Lane& lane, bool undisturbed);
  bool continue_decode_run(Lane& lane, double until_s);
  void place(Lane& lane);
  void account(Lane& lane, int64_t grown);
  void note_gaps(Lane& lane);
  int64_t all_free() const;
  bool cut(Lane& lane, double at_s, int64_t further);
  void end_decode_run(Lane& lane);
  bool only_decodes(const Lane& lane) const;
  bool nobody_waits(const Lane& lane) const;
  void finish(Lane& lane, std::vector<Answered>& answered);
  void finish_step(Lane& lane, std::vector<Answered>& answered);
  void describe(const ServerState& state, const std::vector<Scheduled>& step,
                ServingBatch& batch) const;
  int64_t alike_steps(const Lane& lane) const;
  int64_t alike_steps_of(const ServerState& state, const std::vector<Scheduled>& step,
                         const ServingBatch& batch) const;
  int64_t tokens_after(const ServedRequest& request, int64_t steps) const;
  void grow(Lane& lane);
  void limit_work(Lane& lane);
  bool advance_request(ServerState& state, const Scheduled& s, int64_t steps, double at_s);

  const ServerPool& pool_;
  EngineShared shared_;
  ServerLimits limits_;                      ///< of one lane
  std::deque<HostCache> host_caches_;        ///< by data-parallel rank; may be empty
  double host_free_s_ = 0;                   ///< when the link to the host has ended its last read
  std::vector<PrefixCache> prefix_caches_;   ///< by data-parallel rank; may be empty
  std::vector<AdapterSlots> adapter_slots_;  ///< by data-parallel rank; may be empty
  std::vector<FreeBlocks> free_blocks_;      ///< by data-parallel rank
  std::vector<Lane> lanes_;
  std::vector<double> stage_free_;  ///< when each stage has ended its last step
  double next_s_ = std::numeric_limits<double>::infinity();
  int64_t in_flight_ = 0, steps_ = 0, decoded_ = 0;
  int64_t adapter_loads_ = 0;
  int64_t adapter_steps_ = 0;  ///< sum over steps of their different adapters, of the busiest rank
  int64_t vain_rounds_ = 0;    ///< in which no batch could run
  double busy_s_ = 0, used_block_s_ = 0;
  bool begins_counting_ = false;  ///< with the next steps
  TokenGaps gaps_;
};

}  // namespace tilecast
