#include "base/interrupt.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "berth/errors.h"

namespace berth {

namespace {

class Interrupt : public testing::Test {
 protected:
  ~Interrupt() override {
    set_interrupt_ask(nullptr);
    clear_interrupt();
  }
  static void loop() {
    for (;;) check_interrupt();
  }
};

TEST_F(Interrupt, NobodyIsAskedWithoutABinding) {
  ask_interrupt();
  EXPECT_NO_THROW(check_interrupt());
}

TEST_F(Interrupt, EndsTheLoopOfTheThreadThatAsked) {
  static int asked;
  asked = 0;
  set_interrupt_ask(+[]() noexcept { return ++asked == 2; });
  EXPECT_THROW(loop(), errors::Cancelled);
  EXPECT_EQ(asked, 2);
  EXPECT_THROW(check_interrupt(), errors::Cancelled);  // until it is told
  clear_interrupt();
  set_interrupt_ask(nullptr);
  EXPECT_NO_THROW(check_interrupt());
}

TEST_F(Interrupt, EndsTheLoopThatAnotherThreadRunsForTheCaller) {
  set_interrupt_ask(+[]() noexcept { return true; });
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  std::thread worker([&, caller = interrupt_of_call()] {
    {
      const WorksFor works(caller);  // it asks for nobody but the caller
      EXPECT_THROW(loop(), errors::Cancelled);
    }
    std::lock_guard lock(mutex);
    ended = true;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  wait_asking(changed, lock, [&] { return ended; });
  lock.unlock();
  worker.join();
  EXPECT_THROW(check_interrupt(), errors::Cancelled);
}

}  // namespace

}  // namespace berth
