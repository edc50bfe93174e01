#include "sim/prompt_images.h"

#include <algorithm>

namespace tilecast {
namespace {

/// Calls `visit(begin, images)` for the parts that have images and begin before `to`.
template <typename Visit>
void each_part(const ServingLoad& load, const RequestSpec& request, int64_t to, Visit visit) {
  if (request.part_count == 0) return visit(0, request.images);
  int64_t begin = 0;
  for (size_t i = 0; i < request.part_count && begin < to; ++i) {
    const ContentPart& part = load.parts[request.first_part + i];
    if (part.images > 0) visit(begin, part.images);
    begin += part.tokens;
  }
}

}  // namespace

int64_t images_ended(const ServingLoad& load, const RequestSpec& request, int64_t from,
                     int64_t to) {
  int64_t count = 0;
  each_part(load, request, to, [&](int64_t begin, int64_t images) {
    const auto ended = [&](int64_t at) {
      return std::clamp<int64_t>((at - begin) / load.image_tokens, 0, images);
    };
    count += ended(to) - ended(from);
  });
  return count;
}

bool is_within_image(const ServingLoad& load, const RequestSpec& request, int64_t at) {
  bool within = false;
  each_part(load, request, at, [&](int64_t begin, int64_t images) {
    const int64_t part = at - begin;
    within = within || (part < images * load.image_tokens && part % load.image_tokens != 0);
  });
  return within;
}

ImageTokens with_room(const ServingLoad& load, const RequestSpec& request, ImageTokens wanted,
                      int64_t from, bool starts) {
  const int64_t each = load.image_tokens;
  int64_t to = from + wanted.tokens, encoded = 0;
  each_part(load, request, to, [&](int64_t begin, int64_t images) {
    // The first that is neither computed nor encoded.
    const int64_t before = std::max<int64_t>(0, from - begin);
    const int64_t first = starts ? before / each : (before + each - 1) / each;
    for (int64_t i = first; i < images && begin + i * each < to; ++i) {
      if (encoded == wanted.images) {
        to = std::max(from, begin + i * each);
        return;
      }
      encoded += 1;
    }
  });
  return {to - from, encoded};
}

}  // namespace tilecast
