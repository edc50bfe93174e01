#include "scenario/generation/common_prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "sim/prefix_cache.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// What a key stands for, so that equal numbers of two kinds differ.
enum ContentKind : uint64_t { kHashId = 1, kSystemPrompt, kPrompt, kAnswer, kAdapterNumber };
uint64_t key_of(ContentKind kind, int64_t number) {
  return mix_keys(kind, static_cast<uint64_t>(number));
}

/// A conversation up to its last turn.
struct Conversation {
  size_t last = 0;  ///< its last request
  std::vector<ContentPart> prompt;
  int64_t tokens = 0;  ///< of the prompt
};

/// The keys and values of the same tokens differ from one adapter to the next.
uint64_t key_under(const TraceRequest& r, uint64_t key) {
  return r.adapter ? mix_keys(key, key_of(kAdapterNumber, *r.adapter)) : key;
}

/// The part of a prompt that no other has.
ContentPart own_part(const ServingLoad& load, const Request& asked, int64_t index, int64_t tokens) {
  return {key_of(kPrompt, index), tokens, images_in(tokens, asked.images, load.image_tokens)};
}

std::vector<ContentPart> parts_of_hashes(const TraceRequest& r, int64_t block) {
  std::vector<ContentPart> parts;
  int64_t left = r.prompt;
  for (const int64_t id : r.hash_ids) {
    const int64_t tokens = std::min(block, left);
    if (tokens == 0) break;
    parts.push_back({key_under(r, key_of(kHashId, id)), tokens});
    left -= tokens;
  }
  return parts;
}

class CommonPrompts {
 public:
  CommonPrompts(ServingLoad& load, const Request& asked) : load_(load), asked_(asked) {}

  void add(const TraceRequest& r) {
    const size_t index = load_.requests.size();
    const auto number = static_cast<int64_t>(index);
    RequestSpec spec{.arrival_s = r.arrival_s,
                     .prompt = r.prompt,
                     .output = r.output,
                     .session = r.session,
                     .follows = r.follows,
                     .think_s = r.think_s,
                     .output_key = key_of(kAnswer, number),
                     .adapter = r.adapter};
    Conversation* before = nullptr;
    bool first = true;
    if (r.session) {
      const auto [found, added] = conversations_.try_emplace(*r.session);
      before = &found->second;
      first = added;
      if (r.follows && !first) load_.requests[before->last].next = index;
    }
    std::vector<ContentPart> parts = r.hash_ids.empty()
                                         ? parts_before_turn(r, first ? nullptr : before)
                                         : parts_of_hashes(r, asked_.load.hash_block_size);
    int64_t own = r.prompt;
    for (const ContentPart& part : parts) own -= part.tokens;
    if (own > 0) {
      parts.push_back(own_part(load_, asked_, number, own));
      spec.images = parts.back().images;
    }
    // 100,000 requests of 200 turns and less have 20 million.
    constexpr size_t kMostParts = 30'000'000;
    if (load_.parts.size() + parts.size() > kMostParts)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("the prompts of {} requests have more than {} parts in all (turns "
                              "before them, hash_ids); ask for fewer `requests`",
                              index + 1, kMostParts));
    spec.first_part = load_.parts.size();
    spec.part_count = parts.size();
    load_.parts.insert(load_.parts.end(), parts.begin(), parts.end());
    load_.requests.push_back(spec);
    if (before != nullptr) *before = {index, std::move(parts), r.prompt};
  }

 private:
  /// What was said before a turn, or the system prompt.
  std::vector<ContentPart> parts_before_turn(const TraceRequest& r,
                                             const Conversation* before) const {
    std::vector<ContentPart> parts;
    const Load& asked = asked_.load;
    if (before == nullptr && asked.prefix_len > 0 && r.session) {
      parts.push_back(
          {key_under(r, key_of(kSystemPrompt, *r.session % asked.num_prefixes)), asked.prefix_len});
    } else if (before != nullptr && r.prompt >= before->tokens &&
               load_.requests[before->last].adapter == r.adapter) {
      parts = before->prompt;
      const int64_t answer = load_.requests[before->last].output;
      if (r.prompt - before->tokens >= answer)
        parts.push_back({load_.requests[before->last].output_key, answer});
    }
    return parts;
  }

  ServingLoad& load_;
  const Request& asked_;
  std::unordered_map<int64_t, Conversation> conversations_;
};

}  // namespace

int64_t images_in(int64_t tokens, int64_t images, int64_t image_tokens) {
  return image_tokens > 0 ? std::min(images, tokens / image_tokens) : 0;
}

void add_common_prompts(ServingLoad& load, std::span<const TraceRequest> requests,
                        const Request& asked) {
  CommonPrompts all(load, asked);
  for (const TraceRequest& r : requests) all.add(r);
}

}  // namespace tilecast
