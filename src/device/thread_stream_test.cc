#include "device/thread_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "device/testing.h"

namespace berth {
namespace {

// Work that calls `fn`.
Work call(std::function<void()> fn) {
  Work work;
  work.what = "Call";
  work.site = Site{"dir/model.cc", 7};
  work.context =
      std::make_unique<std::function<void()>>(std::move(fn)).release();
  work.run = [](void* c, Stream&) {
    (*static_cast<std::function<void()>*>(c))();
  };
  work.drop = [](void* c) {
    std::unique_ptr<std::function<void()>>(
        static_cast<std::function<void()>*>(c));
  };
  return work;
}

class ThreadStreamTest : public testing::TestWithParam<int> {
 protected:
  ThreadStreamOptions options() const { return {{}, GetParam()}; }
  test::TestDevice device_;
};

TEST_P(ThreadStreamTest, RunsWorkInOrderOnAThreadOfItsOwn) {
  std::vector<int> seen;
  std::thread::id where;
  ThreadStream s(&device_, options());
  for (int i = 0; i < 1000; ++i) {
    s.launch(call([&seen, &where, i] {
      seen.push_back(i);
      where = std::this_thread::get_id();
    }));
  }
  s.synchronize(s.record());
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[i], i);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST_P(ThreadStreamTest, StartsOnlyAfterTheEventItWaitsFor) {
  ThreadStream a(&device_, options()), b(&device_, options());
  std::atomic<bool> go{false};
  std::atomic<int> value{0};
  a.launch(call([&] {
    while (!go) std::this_thread::yield();
    value = 1;
  }));
  const Event e = a.record();
  EXPECT_FALSE(a.done(e));
  b.wait(e);
  int seen = -1;
  b.launch(call([&] { seen = value; }));
  go = true;
  b.synchronize(b.record());
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(a.done(e));
}

TEST_P(ThreadStreamTest, AFailurePoisonsWhatFollowsAndWhoWaits) {
  ThreadStream a(&device_, options()), b(&device_, options());
  a.launch(call([] { throw errors::InvalidArgument("no such row"); }));
  bool ran = false;
  a.launch(call([&] { ran = true; }));
  const Event bad = a.record();
  b.wait(bad);
  bool ran_b = false;
  b.launch(call([&] { ran_b = true; }));
  try {
    b.synchronize(b.record());
    FAIL() << "nothing was thrown";
  } catch (const errors::InvalidArgument& e) {
    EXPECT_STREQ(
        e.what(),
        "Call failed on CPU:7 (model.cc:7): no such row; what CPU:7 was "
        "given after that is skipped, until "
        "config::reset_device_error(\"CPU:7\")");
  }
  EXPECT_FALSE(ran);
  EXPECT_FALSE(ran_b);
  a.reset_error();
  a.launch(call([&] { ran = true; }));
  a.synchronize(a.record());
  EXPECT_TRUE(ran);
  EXPECT_THROW(a.synchronize(bad), errors::InvalidArgument);
  a.wait(bad);
  EXPECT_THROW(a.synchronize(a.record()), errors::InvalidArgument);
}

TEST_P(ThreadStreamTest, WhatIsRecordedAfterAResetIsNotTheOldFailure) {
  ThreadStream a(&device_, options()), b(&device_, options());
  a.launch(call([] { throw errors::Internal("broken"); }));
  a.reset_error();
  b.wait(a.record());  // nothing was launched since
  EXPECT_NO_THROW(a.synchronize(a.record()));
  EXPECT_NO_THROW(b.synchronize(b.record()));
}

TEST_P(ThreadStreamTest, OrderAloneDoesNotCarryAFailureOver) {
  ThreadStream a(&device_, options()), b(&device_, options());
  a.launch(call([] { throw errors::Internal("broken"); }));
  b.wait_for_reuse(a.record());
  bool ran = false;
  b.launch(call([&] { ran = true; }));
  b.synchronize(b.record());
  EXPECT_TRUE(ran);
}

TEST_P(ThreadStreamTest, DropsEveryWorkOnceAlsoWhatNeverRan) {
  auto counter = std::make_shared<int>(0);
  {
    ThreadStream s(&device_, options());
    s.launch(call([] { throw errors::Internal("broken"); }));
    for (int i = 0; i < 600; ++i) s.launch(call([counter] { ++*counter; }));
  }
  EXPECT_EQ(*counter, 0);
  EXPECT_EQ(counter.use_count(), 1);
}

INSTANTIATE_TEST_SUITE_P(Spin, ThreadStreamTest, testing::Values(0, 500));

}  // namespace
}  // namespace berth
