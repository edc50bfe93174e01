#pragma once

// Where the images of prompts are: at the beginning of their own parts.

#include <cstdint>

#include "sim/serving.h"

namespace tilecast {

/// Images of a request that end after its first `from` tokens, and not after the first `to`.
int64_t images_ended(const ServingLoad& load, const RequestSpec& request, int64_t from, int64_t to);

/// Whether the first `at` tokens have a part of an image, but not all of it.
bool is_within_image(const ServingLoad& load, const RequestSpec& request, int64_t at);

/// Tokens of a prompt that a step computes, and the images that it has to encode before.
struct ImageTokens {
  int64_t tokens = 0;
  int64_t images = 0;
};
/// Of `tokens` tokens after the first `from`, those before an image for which there is no room.
/// `starts`: the request has computed nothing yet, so that an image which the prefix cache has in
/// part is encoded, too.
ImageTokens with_room(const ServingLoad& load, const RequestSpec& request, ImageTokens wanted,
                      int64_t from, bool starts);

}  // namespace tilecast
