#pragma once

// Whether two contents are the same. Against accidents, not against people: FNV-1a is no
// cryptographic hash.

#include <cstdint>
#include <string>
#include <string_view>

namespace tilecast {

/// FNV-1a over words of 8 bytes.
class ContentHash {
 public:
  void add(std::string_view bytes);
  void add(uint64_t number) { add({reinterpret_cast<const char*>(&number), sizeof number}); }
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  uint64_t hash_ = 14695981039346656037ull;
};

/// Of weights, devices, models and software that the build put into the program.
std::string hash_of_embedded_data();

}  // namespace tilecast
