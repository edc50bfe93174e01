// What a process has set or lacks does not change results: its locale, its number of threads.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <cstdlib>
#include <stdexcept>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "base/threads.h"
#include "test_support.h"

namespace tilecast {
namespace {

/// Sets a locale that it compiles; false: this machine has no sources of locales.
bool set_locale(const TemporaryFolder& folder, const std::string& name) {
  const std::string path = (folder.path() / (name + ".UTF-8")).string();
  const std::string command = "localedef -i " + name + " -f UTF-8 " + path + " 2>/dev/null";
  if (std::system(command.c_str()) != 0) return false;
  ::setenv("LOCPATH", folder.path().c_str(), 1);
  return std::setlocale(LC_ALL, (name + ".UTF-8").c_str()) != nullptr;
}

TEST(Locale, NamesAndNumbersAreReadInTheSameWayInAll) {
  for (const std::string name : {"de_DE", "tr_TR"}) {
    const TemporaryFolder folder;
    const bool set = set_locale(folder, name);
    const std::string lower = lower_case("MIXTRAL-8X7B ÄI");
    const std::string normalized = normalized_name("MIXTRAL-8x7B");
    const std::string written = fmt::format("{} {:.2f}", 1410.75, 0.5);
    const std::optional<double> number = parse_number<double>("1410.75");
    const double json = parse_json("[1410.75]", "x")[0].get<double>();
    std::setlocale(LC_ALL, "C");
    ::unsetenv("LOCPATH");
    if (!set) GTEST_SKIP() << "no locale " << name << " here";
    EXPECT_EQ(lower, "mixtral-8x7b Äi");
    EXPECT_EQ(normalized, "mixtral8x7b");
    EXPECT_EQ(written, "1410.75 0.50");
    EXPECT_EQ(number, 1410.75);
    EXPECT_EQ(json, 1410.75);
  }
}

TEST(Threads, WorkThatFailsIsTheLastToBegin) {
  size_t begun = 0;
  const auto work = [&](size_t i) {
    ++begun;
    if (i == 3) throw std::runtime_error("3");
  };
  EXPECT_THROW(run_all(10, 1, work), std::runtime_error);
  EXPECT_EQ(begun, 4u);
}

#ifdef __has_feature
#define HAS_CLANG_FEATURE(name) __has_feature(name)
#else
#define HAS_CLANG_FEATURE(name) 0
#endif
// A sanitizer itself needs more memory than the limit: no thread would start, or the test would
// not.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !HAS_CLANG_FEATURE(address_sanitizer) && !HAS_CLANG_FEATURE(thread_sanitizer)
TEST(Threads, WorkIsDoneWhereTheSystemHasNoFurtherThreads) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Stacks of threads do not fit: a limit on processes does not bind root.
    const rlimit limit{256 << 20, 256 << 20};
    ::setrlimit(RLIMIT_AS, &limit);
    std::atomic<int> done{0};
    try {
      run_parallel(10000, 256, nullptr, [&](size_t) { ++done; });
      run_all(10000, 256, [&](size_t) { ++done; });
    } catch (const std::exception&) {
      _exit(2);
    }
    _exit(done == 20000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace tilecast
