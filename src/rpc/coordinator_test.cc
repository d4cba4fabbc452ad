// The coordinator as a state machine, without sockets or clocks.

#include "rpc/coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace berth::rpc {
namespace {

// Members without sockets: records what the coordinator sends to each.
class Hall {
 public:
  explicit Hall(int workers, std::vector<std::string> elastic = {},
                bool chief = false) {
    std::map<std::string, std::vector<std::string>> jobs;
    if (chief) jobs["chief"] = {"h:9"};
    for (int i = 0; i < workers; ++i) {
      jobs["worker"].push_back("h:" + std::to_string(i + 1));
    }
    Coordinator::Options o;
    o.spec = ClusterSpec(jobs);
    o.tasks = o.spec.tasks();
    o.self = {chief ? "chief" : "worker", 0};
    o.elastic_jobs = std::move(elastic);
    o.dead_after_seconds = 1;
    o.heartbeat_seconds = 0.25;
    coordinator_ = std::make_unique<Coordinator>(
        o, [this](int to, const Coordinator::FramePtr& f, bool close) {
          if (f->type != FrameType::kHeartbeat) sent[to].push_back(*f);
          if (close) closed.insert(to);
        });
  }
  Coordinator& operator*() { return *coordinator_; }

  void enroll(int connection, int worker, uint64_t incarnation,
              uint64_t generation = 0, bool shrink = false) {
    enroll({"worker", worker}, connection, incarnation, generation, shrink);
  }
  void enroll(const TaskId& id, int connection, uint64_t incarnation,
              uint64_t generation = 0, bool shrink = false) {
    coordinator_->connected(connection, id);
    Frame f{.type = FrameType::kRegister, .generation = generation};
    f.flag = shrink;
    f.tasks = {{id, "h:" + std::to_string(id.index + 1), "",
                "process " + std::to_string(incarnation), incarnation}};
    coordinator_->received(connection, f);
  }
  void say(int connection, FrameType type, std::string name = "",
           std::string text = "") {
    Frame f{.type = type, .generation = generation};
    f.name = std::move(name);
    f.text = std::move(text);
    coordinator_->received(connection, f);
  }
  void beat(std::initializer_list<int> connections) {
    for (const int c : connections) say(c, FrameType::kHeartbeat);
  }
  // Ticks for so long; the listed members send heartbeats all the time.
  void pass(double seconds, std::initializer_list<int> speak = {}) {
    for (double t = 0; t < seconds; t += 0.1) {
      beat(speak);
      coordinator_->tick(now_ += 0.1);
    }
  }
  // The last frame to a connection; takes all frames.
  Frame last(int connection) {
    auto frames = std::exchange(sent[connection], {});
    return frames.empty() ? Frame{} : frames.back();
  }

  uint64_t generation = 1;
  std::map<int, std::vector<Frame>> sent;
  std::set<int> closed;

 private:
  double now_ = 100;
  std::unique_ptr<Coordinator> coordinator_;
};

TEST(Coordinator, RefusesATaskOfAnotherTransportByName) {
  for (const char* network : {"ucx", "memory,ucx", "?"}) {
    Hall h(2);
    h.enroll(0, 0, 10);
    (*h).connected(1, {"worker", 1});
    Frame f{.type = FrameType::kRegister};
    f.name = network;
    f.tasks = {{{"worker", 1}, "h:2", "", "process 11", 11}};
    (*h).received(1, f);
    const Frame said = h.last(1);
    EXPECT_EQ(said.type, FrameType::kRefused);
    EXPECT_EQ(said.code, static_cast<int>(errors::Code::kFailedPrecondition));
    EXPECT_NE(said.text.find("BERTH_TRANSPORT"), std::string::npos);
    EXPECT_NE(said.text.find("worker:1"), std::string::npos) << said.text;
    EXPECT_NE(h.last(0).type, FrameType::kGo);
    h.enroll(1, 1, 11);  // by sockets, as the coordinator
    EXPECT_EQ(h.last(0).type, FrameType::kGo);
  }
}

TEST(Coordinator, GoesWhenAllAreThere) {
  Hall hall(2);
  hall.enroll(0, 0, 10);
  EXPECT_EQ(hall.last(0).type, FrameType::kNone);
  hall.enroll(1, 1, 11);
  const Frame go = hall.last(1);
  EXPECT_EQ(go.type, FrameType::kGo);
  EXPECT_EQ(go.generation, 1u);
  EXPECT_EQ(go.tasks.size(), 2u);
}

TEST(Coordinator, SaysWhoIsMissingAndWhy) {
  Hall hall(3);
  hall.enroll(0, 0, 10);
  (*hall).turned_away({"worker", 2}, "the secrets differ");
  hall.pass(1.5);
  const Frame waiting = hall.last(0);
  EXPECT_EQ(waiting.type, FrameType::kWaiting);
  EXPECT_EQ(waiting.text,
            "worker:1 (h:2): it has not connected, worker:2 (h:3): it was "
            "turned away: the secrets differ");
}

TEST(Coordinator, WhoGivesUpTellsTheOthersForWhomItWaited) {
  Hall hall(3);
  hall.enroll(0, 0, 10);
  hall.enroll(2, 2, 12);
  hall.say(0, FrameType::kLeft);
  const Frame waiting = hall.last(2);
  EXPECT_EQ(waiting.type, FrameType::kWaiting);
  EXPECT_EQ(waiting.text, "worker:1 (h:2): it has not connected");
}

TEST(Coordinator, RefusesASecondLiveIncarnationAndTakesALaterOne) {
  Hall hall(2);
  hall.enroll(1, 1, 11);
  hall.enroll(2, 1, 12);
  const Frame refused = hall.last(2);
  EXPECT_EQ(refused.type, FrameType::kRefused);
  EXPECT_EQ(refused.code, static_cast<int>(errors::Code::kAlreadyExists));
  EXPECT_NE(refused.text.find("process 11"), std::string::npos);
  EXPECT_NE(refused.text.find("process 12"), std::string::npos);
  EXPECT_TRUE(hall.closed.contains(2));
  (*hall).closed(1);
  hall.enroll(3, 1, 13);
  hall.enroll(0, 0, 10);
  EXPECT_EQ(hall.last(3).type, FrameType::kGo);
}

TEST(Coordinator, TakesTheNewcomerWhenTheOldOneIsSilent) {
  Hall hall(2);
  hall.enroll(1, 1, 11);
  hall.pass(0.95);  // over three heartbeats, not yet dead
  hall.enroll(2, 1, 12);
  EXPECT_EQ(hall.last(2).type, FrameType::kNone);  // undecided
  hall.enroll(0, 0, 10);
  hall.pass(0.3, {0});
  EXPECT_EQ(hall.last(2).type, FrameType::kGo);
}

TEST(Coordinator, OneFailureEndsTheGenerationForAll) {
  Hall hall(3);
  for (int i = 0; i < 3; ++i) hall.enroll(i, i, 10 + i);
  hall.pass(0.2, {0, 1, 2});
  (*hall).closed(1);
  (*hall).closed(2);  // too late
  const Frame abort = hall.last(0);
  EXPECT_EQ(abort.type, FrameType::kAbort);
  EXPECT_EQ(abort.text, "worker:1 (h:2) was lost: " + cause_closed());
}

TEST(Coordinator, WaitsForTheOwnWordsOfATaskThatOthersMiss) {
  Hall hall(3);
  for (int i = 0; i < 3; ++i) hall.enroll(i, i, 10 + i);
  Frame lost{.type = FrameType::kFail, .generation = 1, .task = {"worker", 1}};
  lost.text = "connection reset";
  lost.code = static_cast<int>(errors::Code::kUnavailable);
  lost.flag = true;
  (*hall).received(2, lost);
  Frame own = lost;
  own.flag = false;
  own.code = static_cast<int>(errors::Code::kInvalidArgument);
  own.text = "loss is nan";
  own.step = 5;
  (*hall).received(1, own);
  hall.pass(0.3, {0, 1, 2});
  EXPECT_EQ(hall.last(0).text, "worker:1 (h:2) failed: loss is nan, step 5");
  // Without such a report the others are believed.
  Hall other(3);
  for (int i = 0; i < 3; ++i) other.enroll(i, i, 10 + i);
  (*other).received(2, lost);
  other.pass(0.3, {0, 1, 2});
  EXPECT_EQ(other.last(0).text, "worker:1 (h:2) was lost: connection reset");
}

TEST(Coordinator, GivesUpWhoIsSilentAndTellsIt) {
  Hall hall(2);
  for (int i = 0; i < 2; ++i) hall.enroll(i, i, 10 + i);
  hall.pass(1.5, {0});
  EXPECT_EQ(hall.last(0).text, "worker:1 (h:2) was lost: no heartbeat for 1 s");
  EXPECT_EQ(hall.last(1).type, FrameType::kAbort);
  EXPECT_TRUE(hall.closed.contains(1));
}

TEST(Coordinator, BlamesNobodyForTimeInWhichItSlept) {
  Hall hall(2);
  for (int i = 0; i < 2; ++i) hall.enroll(i, i, 10 + i);
  hall.pass(0.2, {0, 1});
  (*hall).tick(1e6);
  hall.pass(0.2, {0, 1});
  EXPECT_NE(hall.last(0).type, FrameType::kAbort);
}

TEST(Coordinator, BarriersAreOfOneNameAndRound) {
  Hall hall(2);
  for (int i = 0; i < 2; ++i) hall.enroll(i, i, 10 + i);
  hall.last(0);
  hall.say(0, FrameType::kBarrier, "a");
  hall.say(1, FrameType::kBarrier, "b");
  EXPECT_EQ(hall.last(0).type, FrameType::kNone);
  hall.say(1, FrameType::kBarrier, "a");
  EXPECT_EQ(hall.last(0).type, FrameType::kBarrierMet);
}

TEST(Coordinator, StoresForThoseThatAskBeforeAndAfter) {
  Hall hall(2);
  for (int i = 0; i < 2; ++i) hall.enroll(i, i, 10 + i);
  hall.last(0);
  hall.say(0, FrameType::kGet, "k");
  EXPECT_EQ(hall.last(0).type, FrameType::kNone);
  hall.say(1, FrameType::kPut, "k", "v");
  EXPECT_EQ(hall.last(0).text, "v");
  hall.say(1, FrameType::kGet, "k");
  EXPECT_EQ(hall.last(1).text, "v");
}

TEST(Coordinator, CountsAValueThatIsPutAgainOnce) {
  Hall hall(2);
  for (int i = 0; i < 2; ++i) hall.enroll(i, i, 10 + i);
  hall.last(0);
  const std::string name(1 << 20, 'k');
  for (int i = 0; i < 1100; ++i) hall.say(1, FrameType::kPut, name, "v");
  hall.say(0, FrameType::kGet, name);
  EXPECT_EQ(hall.last(0).text, "v");  // not the end of the generation
}

TEST(Coordinator, EndsWhenAllAreDoneAndNotBefore) {
  Hall hall(2);
  for (int i = 0; i < 2; ++i) hall.enroll(i, i, 10 + i);
  hall.last(0);
  hall.say(1, FrameType::kDone);
  (*hall).closed(1);  // leaving early is not a failure
  EXPECT_EQ(hall.last(0).type, FrameType::kNone);
  hall.say(0, FrameType::kDone);
  EXPECT_EQ(hall.last(0).type, FrameType::kAllDone);
}

TEST(Coordinator, FormsAnewWithAllOrWithThoseLeft) {
  Hall hall(3);
  for (int i = 0; i < 3; ++i) hall.enroll(i, i, 10 + i);
  (*hall).closed(1);
  hall.enroll(0, 0, 10, 1);
  hall.enroll(2, 2, 12, 1);
  EXPECT_EQ(hall.last(0).type, FrameType::kAbort);
  hall.enroll(3, 1, 21);
  EXPECT_EQ(hall.last(0).generation, 2u);
  EXPECT_EQ(hall.last(3).tasks.size(), 3u);
  (*hall).closed(3);
  hall.enroll(0, 0, 10, 2, true);
  EXPECT_NE(hall.last(0).type, FrameType::kGo);  // worker:2 is not ready
  hall.enroll(2, 2, 12, 2, true);
  const Frame go = hall.last(0);
  EXPECT_EQ(go.generation, 3u);
  EXPECT_EQ(go.tasks.size(), 2u);
}

TEST(Coordinator, ANewOneCountsOnFromWhatTheOthersKnow) {
  Hall hall(2);
  hall.enroll(0, 0, 99);  // restarted
  hall.enroll(1, 1, 11, 7);
  EXPECT_EQ(hall.last(1).generation, 8u);
}

TEST(Coordinator, IgnoresWhatIsOfAnOldGeneration) {
  Hall hall(2);
  for (int i = 0; i < 2; ++i) hall.enroll(i, i, 10 + i);
  (*hall).closed(1);
  hall.enroll(0, 0, 10, 1);
  hall.enroll(3, 1, 13);
  hall.generation = 1;
  hall.last(0);
  Frame fail{.type = FrameType::kFail, .generation = 1, .task = {"worker", 1}};
  (*hall).received(0, fail);
  EXPECT_EQ(hall.last(0).type, FrameType::kNone);
}

TEST(Coordinator, GoesOnWithoutAnElasticTaskAndTakesItBack) {
  Hall hall(3, {"worker"});
  for (int i = 0; i < 3; ++i) hall.enroll(i, i, 10 + i);
  hall.say(0, FrameType::kBarrier, "a");
  hall.say(2, FrameType::kBarrier, "a");
  hall.sent.clear();
  (*hall).closed(1);
  ASSERT_EQ(hall.sent[0].size(), 2u);
  EXPECT_EQ(hall.sent[0][0].type, FrameType::kGone);
  EXPECT_EQ(hall.sent[0][1].type, FrameType::kBarrierMet);
  hall.enroll(3, 1, 21);
  EXPECT_EQ(hall.last(0).type, FrameType::kBack);
  const Frame go = hall.last(3);
  EXPECT_EQ(go.type, FrameType::kGo);
  EXPECT_EQ(go.generation, 1u);
}

TEST(Coordinator, BeginsWithoutAnElasticTaskThatDoesNotCome) {
  for (const int first : {0, 1}) {  // workers that never come
    Hall hall(2 + first, {"worker"}, true);
    hall.enroll(TaskId{"chief", 0}, 0, 9);
    if (first == 1) hall.enroll(1, 0, 10);
    const auto went = [&] {
      return std::any_of(
          hall.sent[0].begin(), hall.sent[0].end(),
          [](const Frame& f) { return f.type == FrameType::kGo; });
    };
    hall.pass(0.9, {0, 1});
    EXPECT_FALSE(went());
    hall.pass(0.5, {0, 1});
    EXPECT_EQ(went(), first == 1);  // somebody has to work
  }
}

}  // namespace
}  // namespace berth::rpc
