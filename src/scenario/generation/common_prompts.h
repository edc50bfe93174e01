#pragma once

// What the prompts of requests have in common.

#include <span>

#include "sim/serving.h"
#include "tilecast/request.h"

namespace tilecast {

/// Of the images of a prompt, as many as its own tokens have room for, which no earlier turn had.
int64_t images_in(int64_t tokens, int64_t images, int64_t image_tokens);

/// Adds the requests to the load, with the parts of their prompts and the turns that follow an
/// answer. `asked` states the tokens of a block of `hash_ids`, and the system prompts of sessions.
///
/// A prompt consists of the blocks that its `hash_ids` name (the last one may be shorter, and then
/// equals only those of the same length). Without them, a turn's prompt begins with the prompt and
/// the answer of the turn before; where it is too short for both, with the prompt alone (answers of
/// models that reason are cut before the next turn); where it is shorter than that prompt, the
/// conversation was rewritten and has nothing in common with the turn before.
void add_common_prompts(ServingLoad& load, std::span<const TraceRequest> requests,
                        const Request& asked);

}  // namespace tilecast
