#include "base/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/threads.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr BudgetPart kThings{"things", 1000, 16};

/// What `work` is stopped with; "": it is not.
template <typename Work>
std::string stopped_with(const Work& work) {
  try {
    work();
  } catch (const LimitReached& reached) {
    return reached.what();
  }
  return "";
}

void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(Budget, PartsHaveUsualLimitsWhichAMemoryLimitReplaces) {
  EXPECT_EQ(Budget::here().most(kThings), 1000);
  EXPECT_NO_THROW(Budget::here().allow(kThings, 1000, "file"));
  EXPECT_ERROR(Budget::here().allow(kThings, 1001, "file"), kUnsupported,
               "file: more than 1,000 things, the most that is expected of real models; "
               "`max-memory` allows more");
  const LimitScope more({.memory_bytes = 1 << 20, .seconds = {}});
  EXPECT_EQ(Budget::here().most(kThings), 65536);
  {
    const LimitScope less({.memory_bytes = 160, .seconds = {}});
    EXPECT_ERROR(Budget::here().allow(kThings, 11, "file"), kUnsupported,
                 "file: more than 10 things, the most for 160 B of memory");
  }
  EXPECT_EQ(Budget::here().most(kThings), 65536);
}

TEST(Budget, TimeThatIsOverEndsTheWorkOfAllThreads) {
  const LimitScope scope({.memory_bytes = {}, .seconds = 0.3});
  EXPECT_EQ(stopped_with([] { Budget::here().check("beginning"); }), "");
  std::atomic<int> begun{0};
  const std::string why = stopped_with([&] {
    run_all(1000, 4, [&](size_t) {
      ++begun;
      while (true) {
        wait_ms(1);
        go_on("spinning");
      }
    });
  });
  EXPECT_TRUE(why.starts_with("stopped after 0.3 s, the limit, while ")) << why;
  EXPECT_TRUE(why.ends_with("; `max-seconds` allows more")) << why;
  EXPECT_LE(begun, 4);
  // An item that is short is not begun either.
  EXPECT_EQ(stopped_with([&] { run_all(10, 1, [&](size_t) { ++begun; }); }),
            "stopped after 0.3 s, the limit, while working through a list; `max-seconds` allows "
            "more");
  EXPECT_LE(begun, 4);
}

TEST(Budget, WithoutLimitsNothingEnds) {
  for (int i = 0; i < 1000; ++i) EXPECT_NO_THROW(go_on("counting"));
  EXPECT_FALSE(Budget::here().has_deadline());
}

TEST(Budget, AProcessThatGrowsIsStopped) {
  const LimitScope scope({.memory_bytes = int64_t{32} << 20, .seconds = {}});
  EXPECT_EQ(stopped_with([] { Budget::here().check("beginning"); }), "");
  const std::vector<char> large(size_t{128} << 20, 'x');
  EXPECT_EQ(stopped_with([] { Budget::here().check("filling memory"); }),
            "stopped at 32.0 MiB of memory, the limit, while filling memory; `max-memory` allows "
            "more");
  EXPECT_EQ(std::count(large.begin(), large.end(), 'x'), 128 << 20);
}

TEST(Budget, AnotherThreadCancelsTheWork) {
  std::atomic<bool> cancelled{false};
  const LimitScope scope({.memory_bytes = {}, .seconds = {}, .cancelled = &cancelled});
  EXPECT_EQ(stopped_with([] { Budget::here().check("beginning"); }), "");
  cancelled = true;
  EXPECT_EQ(stopped_with([] { Budget::here().check("spinning"); }), "cancelled while spinning");
  EXPECT_EQ(stopped_with([] { run_all(10, 2, [](size_t) {}); }),
            "cancelled while working through a list");
}

TEST(Budget, WhatItsThreadsHoldIsCounted) {
  const Budget budget({.memory_bytes = 1000, .seconds = {}});
  budget.add_bytes(1000);
  EXPECT_FALSE(budget.holds_too_much());
  budget.add_bytes(1);
  EXPECT_TRUE(budget.holds_too_much());
  budget.add_bytes(-2000);  // of earlier work
  EXPECT_FALSE(budget.holds_too_much());
  EXPECT_FALSE(budget.is_beyond(1000));
  EXPECT_TRUE(budget.is_beyond(1001));
  EXPECT_FALSE(Budget(Limits{}).is_beyond(SIZE_MAX));
  const LimitScope scope({.memory_bytes = 1000, .seconds = {}});
  EXPECT_NO_THROW(CountedMemory::before(1000));
  EXPECT_THROW(CountedMemory::before(1001), AllocationRefused);
}

TEST(Budget, FilesAreThoseOfItsFolder) {
  const TemporaryFolder root;
  const auto inside = root.path() / "in", outside = root.path() / "in2";
  for (const auto& folder : {inside, outside}) {
    std::filesystem::create_directory(folder);
    write_file(folder / "f", "x");
  }
  std::filesystem::create_symlink(outside / "f", inside / "away");
  std::filesystem::create_symlink(inside / "f", outside / "back");
  const LimitScope scope({.memory_bytes = {}, .seconds = {}, .folder = inside.string()});
  for (const auto& path : {inside / "f", outside / "back", inside / ".." / "in" / "f"}) {
    EXPECT_TRUE(is_there(path) && is_file(path)) << path;
    EXPECT_EQ(read_file(path), "x") << path;
  }
  EXPECT_TRUE(is_folder(inside));
  for (const auto& path : {outside / "f", inside / "away", inside / ".." / "in2" / "f", outside,
                           std::filesystem::path("/etc/passwd"), inside / "none"}) {
    EXPECT_FALSE(is_there(path) || is_file(path) || is_folder(path)) << path;
    EXPECT_ERROR(read_file(path), kNotFound, path.string() + ": no such file");
  }
}

TEST(Budget, ReadersAskIt) {
  std::string list = "[0", table = "a,b\n";
  for (int i = 0; i < 20'000; ++i) list += ",0";
  for (int i = 0; i < 100'000; ++i) table += "1,2\n";
  EXPECT_NO_THROW(parse_json(list + "]", "c.json"));
  EXPECT_NO_THROW(parse_csv(table, "t.csv"));
  const LimitScope scope({.memory_bytes = 1'600'000, .seconds = {}});
  EXPECT_ERROR(
      parse_json(list + "]", "c.json"), kInput,
      "c.json: holds more than 10000 values; is it the right file? `max-memory` allows more");
  // The process may have grown as much before the cells are counted.
  std::string why;
  try {
    parse_csv(table, "t.csv");
  } catch (const std::exception& error) {
    why = error.what();
  }
  EXPECT_NE(why.find("1.53 MiB of memory"), std::string::npos) << why;
  EXPECT_NE(why.find("`max-memory`"), std::string::npos) << why;
}

/// Memory of the process that is in use, in pages of 4 KiB.
int64_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident;
}

TEST(PartlyReadFile, TakesNoMoreMemoryThanWhatIsLoaded) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  write_file(path, std::string(1 << 20, 'x'));
  std::filesystem::resize_file(path, size_t{256} << 20);
  PartlyReadFile file(path);
  file.load(file.content().substr(500'000, 2));
  const std::string_view whole = file.content().substr(0, 1 << 20);
  EXPECT_EQ(whole.substr(500'000, 2), "xx");
  EXPECT_LE(std::count(whole.begin(), whole.end(), 'x'), 4096);
  // One byte of each 2 MiB, which is a huge page of x86.
  const int64_t before = resident_pages();
  for (size_t at = 0; at < file.content().size(); at += 2 << 20)
    file.load(file.content().substr(at, 1));
  EXPECT_LT(resident_pages() - before, 4 * 128);
}

}  // namespace
}  // namespace tilecast
