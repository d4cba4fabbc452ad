// The coordinator of a cluster whose tasks come and go, without sockets.

#include <gtest/gtest.h>

#include "rpc/coordinator.h"

namespace berth::rpc {
namespace {

class Changing {
 public:
  explicit Changing(int places, int min, int max = 0, int self = 0,
                    std::vector<TaskId> expected = {})
      : min_(min), max_(max) {
    std::vector<std::string> addresses;
    for (int i = 0; i < places; ++i) addresses.push_back(fmt_port(i));
    Coordinator::Options o;
    o.spec = ClusterSpec({{"worker", addresses}});
    o.tasks = o.spec.tasks();
    o.self = {"worker", self};
    o.dead_after_seconds = 1;
    o.expected = std::move(expected);
    o.asks_first = true;
    coordinator_ = std::make_unique<Coordinator>(
        o, [this](int to, const Coordinator::FramePtr& f, bool) {
          if (f->type == FrameType::kHeartbeat) return;
          if (f->type == FrameType::kWaiting) return;
          last_[to] = *f;
        });
  }
  void enroll(int worker, uint64_t generation = 0) {
    coordinator_->connected(worker, {"worker", worker});
    Frame f{.type = FrameType::kRegister, .generation = generation};
    f.value = min_;
    f.code = max_;
    f.tasks = {{{"worker", worker},
                fmt_port(worker),
                "",
                "p",
                static_cast<uint64_t>(worker + 1)}};
    coordinator_->received(worker, f);
  }
  void say(int worker, Frame f) {
    f.generation = last_[worker].generation;
    coordinator_->received(worker, f);
  }
  void pass(double seconds, std::vector<int> speak) {
    for (double t = 0; t < seconds; t += 0.05) {
      for (const int w : speak) {
        Frame beat{.type = FrameType::kHeartbeat};
        beat.value = min_;
        beat.code = max_;
        say(w, beat);
      }
      coordinator_->tick(now_ += 0.05);
    }
  }
  // Takes the last frame to a task.
  Frame last(int worker) { return std::exchange(last_[worker], {}); }
  Coordinator& operator*() { return *coordinator_; }

 private:
  static std::string fmt_port(int i) { return "h:" + std::to_string(i + 1); }

  const int min_, max_;
  double now_ = 10;
  std::map<int, Frame> last_;
  std::unique_ptr<Coordinator> coordinator_;
};

// The tasks of the generation that begins.
std::vector<int> in(const Frame& go) {
  EXPECT_EQ(go.type, FrameType::kGo);
  std::vector<int> tasks;
  for (const TaskEntry& e : go.tasks) tasks.push_back(e.task.index);
  return tasks;
}

TEST(ComingAndGoing, EnoughTasksBeginOnceTheOthersHadAMoment) {
  Changing c(4, 2);
  (*c).asked(false, {});
  c.enroll(0);
  c.pass(2, {});
  EXPECT_EQ(c.last(0).type, FrameType::kNone);  // one is not enough
  c.enroll(2);
  c.pass(0.5, {2});
  EXPECT_EQ(c.last(0).type, FrameType::kNone);
  c.pass(1, {2});
  EXPECT_EQ(in(c.last(0)), (std::vector<int>{0, 2}));
}

TEST(ComingAndGoing, NobodyBeginsBesideAnotherCoordinator) {
  Changing c(2, 1);
  c.enroll(0);
  c.pass(2, {});
  EXPECT_EQ(c.last(0).type, FrameType::kNone);  // it has not asked
  (*c).asked(true, {});
  c.pass(2, {});
  EXPECT_EQ(c.last(0).type, FrameType::kNone);
  (*c).asked(false, {});
  EXPECT_EQ(in(c.last(0)), (std::vector<int>{0}));
}

TEST(ComingAndGoing, ATaskThatComesEndsTheGenerationAndTakesPartInTheNext) {
  Changing c(3, 1);
  (*c).asked(false, {});
  c.enroll(0);
  c.enroll(1);
  c.pass(1.5, {1});
  EXPECT_EQ(in(c.last(1)).size(), 2u);
  c.enroll(2);
  c.pass(0.2, {0, 1});
  const Frame abort = c.last(1);
  EXPECT_EQ(abort.type, FrameType::kAbort);
  EXPECT_EQ(abort.code, static_cast<int>(errors::Code::kAborted));
  EXPECT_EQ(abort.text, "worker:2 (h:3) changes the cluster: it joins");
  (*c).asked(false, {});
  c.enroll(0, 1);
  EXPECT_EQ(c.last(0).type, FrameType::kAbort);  // 1 is alive
  c.enroll(1, 1);
  EXPECT_EQ(in(c.last(0)), (std::vector<int>{0, 1, 2}));
}

TEST(ComingAndGoing, ThoseOverTheMostWaitAsSpares) {
  Changing c(3, 1, 2);
  (*c).asked(false, {});
  for (const int w : {0, 1, 2}) c.enroll(w);
  EXPECT_EQ(in(c.last(0)), (std::vector<int>{0, 1}));
  c.pass(1, {0, 1, 2});
  EXPECT_EQ(c.last(0).type, FrameType::kNone);
  (*c).closed(1);
  EXPECT_EQ(c.last(0).type, FrameType::kAbort);
  (*c).asked(false, {});
  c.enroll(0, 1);
  EXPECT_EQ(in(c.last(0)), (std::vector<int>{0, 2}));
}

TEST(ComingAndGoing, WhoTakesOverWaitsForThoseThatAreAlive) {
  Changing c(4, 1, 0, 1, {{"worker", 2}, {"worker", 3}});
  c.enroll(1, 5);
  (*c).asked(false, {});
  c.enroll(2, 5);
  EXPECT_EQ(c.last(1).type, FrameType::kNone);
  (*c).asked(false, {{"worker", 3}});  // refused there
  const Frame go = c.last(1);
  EXPECT_EQ(in(go), (std::vector<int>{1, 2}));
  EXPECT_EQ(go.generation, 6u);
}

TEST(ComingAndGoing, WhoComesWhenAllAreDoneIsToldSo) {
  Changing c(2, 1);
  (*c).asked(false, {});
  c.enroll(0);
  c.pass(1.5, {});
  EXPECT_EQ(in(c.last(0)).size(), 1u);
  c.enroll(1);
  Frame done{.type = FrameType::kDone};
  done.generation = 1;
  (*c).received(0, done);
  const Frame refused = c.last(1);
  EXPECT_EQ(refused.type, FrameType::kRefused);
  EXPECT_EQ(refused.code, static_cast<int>(errors::Code::kCancelled));
}

}  // namespace
}  // namespace berth::rpc
