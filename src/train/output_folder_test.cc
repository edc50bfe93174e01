#include "train/output_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "base/file.h"
#include "test_support.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

TEST(OutputFolder, IsHeldByOneRunAtATime) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  {
    const OutputFolder first(path);
    EXPECT_ERROR(OutputFolder(path), kIo,
                 path.string() + ": process " + std::to_string(::getpid()) +
                     " trains into this folder; wait for it to end");
    write_file(first.checkpoints() / "a.checkpoint", "x");
  }
  // Nothing but the checkpoint stays; the next run can have the folder.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path / "checkpoints"), {}), 1);
  OutputFolder(path).remove_checkpoints();
  EXPECT_FALSE(std::filesystem::exists(path / "checkpoints"));
}

TEST(OutputFolder, LeavesAnotherRunsLock) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  auto first = std::make_unique<OutputFolder>(path);
  // The first run is complete; the second takes the folder before the first has ended.
  first->remove_checkpoints();
  const OutputFolder second(path);
  first.reset();
  EXPECT_ERROR(OutputFolder(path), kIo, "trains into this folder");
}

TEST(OutputFolder, AFailureLeavesNoEmptyFolders) {
  const TemporaryFolder folder;
  const auto ignore = [](const Progress&) {};
  const auto output = folder.path() / "new" / "weights";
  EXPECT_ERROR(train_weights({.data = {folder.path() / "none"}, .output = output}, ignore),
               kNotFound, "no such file or folder");
  write_file(folder.path() / "few.csv", "gpu,op,dtype,n,latency_s\nT4,add,fp32,1000,1e-5\n");
  EXPECT_ERROR(train_weights({.data = {folder.path() / "few.csv"}, .output = output}, ignore),
               kInput, "too little to learn");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "new"));
  // The user's own folder stays.
  const auto own = folder.path() / "own";
  std::filesystem::create_directory(own);
  EXPECT_ERROR(train_weights({.data = {folder.path() / "none"}, .output = own}, ignore), kNotFound,
               "no such file or folder");
  EXPECT_TRUE(std::filesystem::is_empty(own));
  EXPECT_ERROR(train_weights({.data = {}, .output = folder.path() / "few.csv"}, ignore), kIo,
               "cannot make the folder");
}

}  // namespace
}  // namespace tilecast
