// Reading and writing files: those that change meanwhile, disks that are full, runs that are
// killed.

#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "base/unfinished_file.h"
#include "test_support.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

TEST(File, OnlyRegularFilesOfTheirSizeAreRead) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "in.txt";
  write_file(path, "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_ERROR(read_file(path, 4), kInput, "is too large: 5 B, expected at most 4 B");
  EXPECT_ERROR(read_file(folder.path()), kInput, "is a folder, expected a file");
  EXPECT_ERROR(read_file(path / "x"), kNotFound, "no such file");
  EXPECT_ERROR(read_file("/dev/zero"), kInput, "is a device, expected a file");
  // Nobody writes into it: opening it would wait for ever.
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_ERROR(read_file(pipe), kInput, "is a pipe, expected a file; write its content to a file");
  // A sparse file takes no room on the disk and is refused before it takes any in memory.
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  EXPECT_ERROR(read_file(path), kInput, "is too large: 1.00 TiB, expected at most 64.0 MiB");
  if (std::filesystem::exists("/proc/self/status")) {
    EXPECT_NE(read_file("/proc/self/status").find("VmPeak"), std::string::npos);
  }
}

TEST(File, IsWrittenWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out.txt";
  write_file(path, "first");
  EXPECT_EQ(read_file(path), "first");
  EXPECT_ERROR(write_file(folder.path() / "missing" / "out.txt", "x"), kIo, "cannot write");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, ALinkStaysALinkAndItsTargetIsReplaced) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "real");
  write_file(folder.path() / "real" / "out.txt", "first");
  fs::create_symlink("real/out.txt", folder.path() / "link");
  fs::create_symlink("link", folder.path() / "link2");
  write_file(folder.path() / "link2", "second");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link2"));
  EXPECT_EQ(read_file(folder.path() / "real" / "out.txt"), "second");
  // A link to what does not exist yet makes it exist.
  fs::create_symlink("real/new.txt", folder.path() / "dangling");
  write_file(folder.path() / "dangling", "third");
  EXPECT_EQ(read_file(folder.path() / "real" / "new.txt"), "third");
  fs::create_symlink("b", folder.path() / "a");
  fs::create_symlink("a", folder.path() / "b");
  EXPECT_ERROR(write_file(folder.path() / "a", "x"), kIo, "cannot write: Too many levels");
}

TEST(File, KeepsItsPermissions) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const auto path = folder.path() / "out.txt";
  write_file(path, "first");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_file(path, "second");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(File, DoesNotInheritTheRightsOfAProgram) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out.txt";
  write_file(path, "first");
  ASSERT_EQ(::chmod(path.c_str(), 06755), 0);
  write_file(path, "second");
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0755u);
}

TEST(File, GetsWhatTheUsersMaskAllows) {
  const TemporaryFolder folder;
  const mode_t mask = ::umask(027);
  write_file(folder.path() / "out.txt", "x");
  ::umask(mask);
  struct stat status{};
  ASSERT_EQ(::stat((folder.path() / "out.txt").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST(File, PartFilesOfRunsThatWereKilledBlockNoLaterRun) {
  // A container gives each run the same process number: forks of one process count alike.
  const TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const UnfinishedFile part(folder.path() / "out.txt", "out.txt");
      _exit(0);  // without its destructor, as after kill -9
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(name.find(std::to_string(::getpid())), std::string::npos) << name;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 3u);
  write_file(folder.path() / "out.txt", "x");
  EXPECT_EQ(read_file(folder.path() / "out.txt"), "x");
}

TEST(File, AWriteBeyondALimitOfFileSizesLeavesTheOldContent) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out.txt";
  write_file(path, "first");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(path, std::string(1 << 20, 'x'));
    } catch (const Error& error) {
      _exit(std::string(error.what()).ends_with("cannot write: File too large") ? 7 : 1);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(path), "first");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(PartlyReadFile, HasThePartsThatWereLoaded) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "large";
  std::string content(300'000, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>('a' + i % 23);
  write_file(path, content);
  PartlyReadFile file(path);
  ASSERT_EQ(file.content().size(), content.size());
  EXPECT_EQ(file.content()[0], '\0');
  for (const auto& [at, size] : {std::pair<size_t, size_t>{0, 1},
                                 {200'000, 5},
                                 {65'530, 140'000},
                                 {299'999, 1},
                                 {0, 300'000}}) {
    const std::string_view part = file.content().substr(at, size);
    file.load(part);
    EXPECT_EQ(part, content.substr(at, size));
  }
  file.load(file.content().substr(300'000));
  EXPECT_ERROR(PartlyReadFile(folder.path()), kInput, "is a folder, expected a file");
  EXPECT_ERROR(PartlyReadFile("/dev/zero"), kInput, "is a device, expected a file");
}

TEST(PartlyReadFile, AFileThatIsShortenedMeanwhileIsAnError) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "large";
  write_file(path, std::string(300'000, 'x'));
  PartlyReadFile file(path);
  file.load(file.content().substr(0, 10));
  std::filesystem::resize_file(path, 100'000);
  EXPECT_EQ(file.content()[0], 'x');
  EXPECT_ERROR(file.load(file.content().substr(200'000, 10)), kIo,
               "was shortened while it was read");
}

TEST(File, ASignalLeavesNoPartFile) {
  const TemporaryFolder folder;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Programs that a shell runs in the background inherit SIGINT ignored.
      ::signal(signal, SIG_DFL);
      remove_unfinished_files_on_signals();
      const UnfinishedFile part(folder.path() / "out.txt", "out.txt");
      // Half of the file is written when the signal comes.
      if (::write(part.descriptor(), "half", 4) == 4) ::raise(signal);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 0);
  }
}

TEST(File, AFullDeviceIsReported) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_ERROR(write_file("/dev/full", "x"), kIo, "No space left on device");
}

}  // namespace
}  // namespace tilecast
