#include "base/core_set.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fresh_process_testing.h"
#include "base/thread_pool.h"
#include "berth/errors.h"

namespace berth {
namespace {

TEST(CoreSet, ParsesRangesAndSinglesAndPrintsThemBack) {
  CoreSet set = CoreSet::parse("6,0-3,2");
  EXPECT_EQ(set.cores(), (std::vector<int>{0, 1, 2, 3, 6}));
  EXPECT_EQ(set.str(), "0-3,6");
  EXPECT_EQ(CoreSet::parse("").str(), "");
  EXPECT_EQ(CoreSet::parse("5").str(), "5");
  EXPECT_EQ(CoreSet::parse("1,3,5").str(), "1,3,5");
}

TEST(CoreSet, RefusesMalformedTextWithANamedError) {
  for (const char* bad : {"a", "1-", "-1", "3-1", "1,,2", "1,", ",", "1-2-3",
                          "99999999999999999999", "0-70000", " 1", "1 "}) {
    EXPECT_THROW(CoreSet::parse(bad), errors::InvalidArgument) << bad;
  }
}

TEST(CoreSet, SplitsIntoDisjointSetsOfNearlyEqualSize) {
  CoreSet set = CoreSet::parse("0-6");
  for (int n = 1; n <= 7; ++n) {
    std::vector<int> all;
    for (const CoreSet& part : set.split(n)) {
      EXPECT_GE(part.size(), 7 / n);
      EXPECT_LE(part.size(), (7 + n - 1) / n);
      all.insert(all.end(), part.cores().begin(), part.cores().end());
    }
    EXPECT_EQ(all.size(), 7u) << n;
    EXPECT_EQ(CoreSet(all), set) << n;
  }
  EXPECT_THROW(set.split(0), errors::InvalidArgument);
  EXPECT_THROW(set.split(8), errors::InvalidArgument);
}

TEST(CoreSet, KnowsContainmentAndOverlap) {
  CoreSet set = CoreSet::parse("0-3");
  EXPECT_TRUE(set.contains(3));
  EXPECT_FALSE(set.contains(4));
  EXPECT_TRUE(set.contains(CoreSet::parse("1,2")));
  EXPECT_FALSE(set.contains(CoreSet::parse("1,4")));
  EXPECT_TRUE(set.overlaps(CoreSet::parse("3,4")));
  EXPECT_FALSE(set.overlaps(CoreSet::parse("4,5")));
}

TEST(CoreSet, AllowedLiesInsideTheAffinityMask) {
  CoreSet allowed = CoreSet::allowed();
  ASSERT_GE(allowed.size(), 1);
  EXPECT_TRUE(current_thread_cores().contains(allowed));
}

TEST(CoreSet, BindingAThreadNarrowsWhatIsAllowed) {
  if (pretended_cores()) GTEST_SKIP() << "no thread is bound to such cores";
  const CoreSet all = CoreSet::allowed();
  std::thread([&] {
    const CoreSet one(std::vector<int>{all[all.size() - 1]});
    ASSERT_TRUE(bind_current_thread(one));
    EXPECT_EQ(current_thread_cores(), one);
    EXPECT_EQ(CoreSet::allowed(), one);
    EXPECT_FALSE(bind_current_thread(CoreSet()));
  }).join();
}

// Counts with 16 cores, whatever the machine has.
void pretends() {
  using fresh_process::check;
  setenv("BERTH_CORES", "0-14,40", 1);
  const CoreSet all = CoreSet::parse("0-14,40");
  check(CoreSet::allowed() == all, "those of BERTH_CORES");
  check(current_thread_cores() == all, "threads may use them");
  check(bind_current_thread(CoreSet::parse("40")), "binding is no error");
  check(current_thread_within(all), "within all");
  check(!current_thread_within(CoreSet::parse("40")), "and not bound");
  ThreadPool pool({.cores = all});
  check(pool.size() == 16, "a worker for each");
  std::atomic<int> sum = 0;
  pool.parallel_for(16, [&](int i) { sum += i; });
  check(sum == 120, "every chunk once");
}

TEST(PretendedCores, StandForThoseOfTheMachine) {
  IN_A_FRESH_PROCESS(pretends());
}

void refuses_nonsense() {
  setenv("BERTH_CORES", "all", 1);
  fresh_process::refuses<errors::InvalidArgument>(
      [] { CoreSet::allowed(); }, "environment variable BERTH_CORES: core set");
}

TEST(PretendedCores, NonsenseIsAnErrorThatNamesTheVariable) {
  IN_A_FRESH_PROCESS(refuses_nonsense());
}

class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/berth_cgroup_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    const std::string path = root_ + "/" + file;
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  std::string root_;
};

TEST_F(Cgroup, ReadsVersionTwoAndTakesTheSmallestAncestor) {
  write("cpu.max", "max 100000\n");
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota_cores(root_, "/a/b"), 1.5);
  EXPECT_DOUBLE_EQ(cgroup_quota_cores(root_, "/"), 0);
}

TEST_F(Cgroup, ReadsVersionOneAndTreatsMinusOneAsNoQuota) {
  write("cpu.cfs_quota_us", "-1\n");
  write("cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota_cores(root_, "/x"), 0);
  write("cpu.cfs_quota_us", "250000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota_cores(root_, "/x"), 2.5);
}

TEST_F(Cgroup, SurvivesGarbage) {
  write("cpu.max", "pony 0\n");
  EXPECT_DOUBLE_EQ(cgroup_quota_cores(root_, "no/slash//"), 0);
  EXPECT_DOUBLE_EQ(cgroup_quota_cores("/does/not/exist", ""), 0);
}

}  // namespace
}  // namespace berth
