#include "base/content_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/embedded.h"

namespace tilecast {

void ContentHash::add(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    hash_ = (hash_ ^ word) * 1099511628211ull;
    hash_ ^= hash_ >> 32;
  }
}

std::string ContentHash::text() const { return fmt::format("{:016x}", hash_); }

std::string hash_of_embedded_data() {
  ContentHash hash;
  for (const EmbeddedFile& file : embedded_files("")) {
    hash.add(file.path);
    hash.add(file.content);
  }
  return hash.text();
}

}  // namespace tilecast
