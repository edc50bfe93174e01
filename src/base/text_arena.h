#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

namespace tilecast {

/// Many short texts in few allocations. They stay where they are as long as the arena lives.
class TextArena {
 public:
  std::string_view add(std::string_view text) {
    if (text.size() > room_) {
      room_ = std::max(kBlock, text.size());
      blocks_.push_back(std::make_unique<char[]>(room_));
      next_ = blocks_.back().get();
    }
    const std::string_view kept(next_, text.size());
    std::copy(text.begin(), text.end(), next_);
    next_ += text.size();
    room_ -= text.size();
    return kept;
  }

 private:
  static constexpr size_t kBlock = 4096;

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t room_ = 0;  ///< in the last block
};

}  // namespace tilecast
