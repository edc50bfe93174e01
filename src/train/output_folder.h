#pragma once

#include <filesystem>
#include <vector>

namespace tilecast {

/// The folder that a training run writes, with its checkpoints, held by one process at a time.
class OutputFolder {
 public:
  /// Makes `folder` and its checkpoints folder where they are missing, and locks them. Throws
  /// Error{kIo} where that cannot be done, naming the process that holds the lock.
  explicit OutputFolder(std::filesystem::path folder);
  /// Unlocks, and removes the folders that this object made and that are still empty.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  std::filesystem::path checkpoints() const { return folder_ / "checkpoints"; }
  /// The run is complete: its checkpoints are not needed any more.
  void remove_checkpoints() const;

 private:
  void make_folders();
  void remove_empty_folders() const;
  void lock();

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;  ///< by this object, the outermost first
  int lock_ = -1;                            ///< descriptor
};

}  // namespace tilecast
