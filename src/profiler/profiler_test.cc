#include "berth/profiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fresh_process_testing.h"
#include "base/timeline.h"
#include "berth/berth.h"

namespace berth::profiler {
namespace {

std::vector<TimelineEvent> of_kind(const Timeline& t, const std::string& kind) {
  std::vector<TimelineEvent> found;
  std::copy_if(t.events().begin(), t.events().end(), std::back_inserter(found),
               [&](const TimelineEvent& e) { return e.kind == kind; });
  return found;
}

TEST(Profiler, HasEveryRunOfAPlanAndEveryEagerOp) {
  const auto f = function([](const Tensor& x) { return matmul(x, x); },
                          {.name = "square"});
  const Tensor x = ones({8, 8});
  f(x);  // the trace is not recorded
  start();
  for (int i = 0; i < 5; ++i) f(x);
  const Tensor y = x + x;
  {
    const Trace trace("mine");
    f(x);
  }
  const Timeline t = stop();
  const auto runs = of_kind(t, "MatMul");
  ASSERT_EQ(runs.size(), 6u);
  EXPECT_NE(runs[0].track.find("CPU:0"), std::string::npos);
  EXPECT_NE(std::string(runs[0].site.file).find("profiler_test.cc"),
            std::string::npos);
  EXPECT_EQ(of_kind(t, "AddV2").size(), 1u);
  const auto mine = of_kind(t, "annotation");
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0].name, "mine");
  // The last run lies within.
  EXPECT_LE(mine[0].begin_us, runs[5].begin_us);
  EXPECT_GE(mine[0].end_us, runs[5].end_us);
  EXPECT_TRUE(std::is_sorted(
      t.events().begin(), t.events().end(),
      [](const auto& a, const auto& b) { return a.begin_us < b.begin_us; }));
}

TEST(Profiler, KeepsNothingThatRanBeforeOrAfter) {
  const auto f = function([](const Tensor& x) { return matmul(x, x); });
  const Tensor x = ones({8, 8});
  f(x);
  start();
  f(x);
  EXPECT_EQ(of_kind(stop(), "MatMul").size(), 1u);
  f(x);
  const Trace nothing("nothing");
  start();
  EXPECT_TRUE(stop().events().empty());
}

TEST(Profiler, PlansThatAreGoneDoNoHarm) {
  start();
  {
    const auto f = function([](const Tensor& x) { return matmul(x, x); });
    f(ones({4, 4}));
  }
  EXPECT_EQ(of_kind(stop(), "MatMul").size(), 1u);
}

TEST(Profiler, JsonIsATraceOfChrome) {
  const Timeline t({{"/CPU:0", "a \"b\"", "MatMul", {"net.cc", 7}, 100, 130},
                    {"eager ops", "Add", "Add", {}, 110, 111}});
  const auto json = nlohmann::json::parse(t.json());
  const auto& events = json["traceEvents"];
  ASSERT_EQ(events.size(), 4u);  // a name and an event for each track
  EXPECT_EQ(events[0]["args"]["name"], "/CPU:0");
  EXPECT_EQ(events[1]["name"], "a \"b\"");
  EXPECT_EQ(events[1]["ts"], 0);
  EXPECT_EQ(events[1]["dur"], 30);
  EXPECT_EQ(events[1]["args"]["line"], "net.cc:7");
  EXPECT_EQ(events[3]["ts"], 10);
  EXPECT_NE(events[1]["pid"], events[3]["pid"]);
}

// Rows of simulated devices begin at 0 of their own clock and say so.
void simulated_rows() {
  config::set_simulated_devices("GPUx1");
  config::list_logical_devices();
  const std::string task = "/job:localhost/replica:0/task:0/device:";
  const Timeline t({{task + "GPU:0", "Mul", "Mul", {}, 40, 45},
                    {task + "CPU:0", "Add", "Add", {}, 7'000'100, 7'000'130},
                    {task + "GPU:0", "Sub", "Sub", {}, 50, 55}});
  const auto events = nlohmann::json::parse(t.json())["traceEvents"];
  const auto is = [&](size_t i, const std::string& name, double ts) {
    fresh_process::check(events[i]["args"]["name"] == name, events[i].dump());
    fresh_process::check(events[i + 1]["ts"] == ts, events[i + 1].dump());
  };
  is(0, task + "GPU:0 (simulated time)", 0);
  is(2, task + "CPU:0", 0);
  fresh_process::check(events[4]["ts"] == 10, events[4].dump());
}
TEST(Profiler, KeepsSimulatedTimeApart) {
  IN_A_FRESH_PROCESS(simulated_rows());
}

TEST(Profiler, OneRecordingAtATime) {
  EXPECT_THROW(stop(), errors::FailedPrecondition);
  start();
  EXPECT_THROW(start(), errors::AlreadyExists);
  stop();
  EXPECT_THROW(Timeline().write("/there/is/no/such/folder/x.json"),
               errors::InvalidArgument);
}

// A model split over two devices: the copy between them, what it waits for and
// what waits for it.
void two_devices() {
  using fresh_process::check;
  config::set_simulated_devices("GPUx1");
  const auto f = function(
      [](const Tensor& x) {
        const auto product = [](const char* where, const Tensor& of) {
          const auto scope = device(where);
          return matmul(of, of);
        };
        return product("/GPU:0", product("/CPU:0", x));
      },
      {.name = "two_devices"});
  const Tensor x = ones({8, 8});
  f(x);
  start();
  f(x).to_vector<float>();
  const Timeline t = stop();
  const auto only = [&](const std::string& kind, const std::string& device) {
    std::vector<TimelineEvent> found = of_kind(t, kind);
    std::erase_if(found, [&](const TimelineEvent& e) {
      return e.track.find(device) == std::string::npos;
    });
    check(found.size() == 1, kind + " on " + device);
    return found[0];
  };
  const TimelineEvent before = only("MatMul", "CPU:0");
  const TimelineEvent after = only("MatMul", "GPU:0");
  check(after.flops == 2 * 8 * 8 * 8, "flops");
  check(after.run > 0 && after.run == before.run, "run");
  bool follows_copy = false;
  for (const int32_t a : after.after) {
    const TimelineEvent& copy = t.events()[a];
    if (copy.kind != "copy") continue;
    follows_copy = true;
    check(copy.detail.find("CPU:0 -> ") != std::string::npos &&
              copy.detail.ends_with("GPU:0"),
          copy.detail);
    bool follows_product = false;
    for (const int32_t b : copy.after) {
      follows_product |= t.events()[b].name == before.name;
    }
    check(follows_product, "the copy follows the product");
  }
  check(follows_copy, "the second product follows a copy");
  check(only("call", "calls").name == "two_devices", "call");
  check(!of_kind(t, "wait").empty(), "wait");
}

TEST(Profiler, StepsSayWhatTheyHadToWaitFor) {
  IN_A_FRESH_PROCESS(two_devices());
}

TEST(Profiler, PipelinesAreEventsOfTheirStages) {
  auto numbers = data::Dataset::range(5).map(
      [](const Tensors& x) { return Tensors{x[0] + x[0]}; });
  start();
  int count = 0;
  for (const data::Element& e : numbers) count += e.size();
  const Timeline t = stop();
  EXPECT_EQ(count, 5);
  EXPECT_EQ(of_kind(t, "input").size(), 6u);  // the end, too
  const auto stages = of_kind(t, "stage");
  EXPECT_EQ(stages.size(), 12u);  // of range and map
  EXPECT_NE(stages[0].site.line, 0);
}

TEST(Profiler, MemoryInUseIsAnEvent) {
  start();
  const Tensor x = zeros({1 << 20});
  const auto memory = of_kind(stop(), "memory");
  ASSERT_FALSE(memory.empty());
  // Threads tell of small blocks that they freed 64 KiB later.
  EXPECT_GE(memory.back().bytes, (int64_t{4} << 20) - (64 << 10));
}

TEST(Profiler, EveryThreadKeepsItsLastEvents) {
  timeline::start(100);
  std::barrier both(2);  // else the second goes on where the first ended
  const auto work = [&](const std::string& name) {
    both.arrive_and_wait();
    for (int i = 0; i < 250; ++i) const timeline::Span s("t", name, "k");
    both.arrive_and_wait();
  };
  std::thread a([&] { work("a"); }), b([&] { work("b"); });
  a.join();
  b.join();
  const timeline::RecordedEvents r = timeline::stop();
  EXPECT_EQ(r.types.size(), 2u);
  EXPECT_EQ(r.events.size(), 200u);
  EXPECT_EQ(r.dropped, 300);
  // The next recording begins with nothing.
  timeline::start();
  EXPECT_EQ(timeline::stop().events.size(), 0u);
}

}  // namespace
}  // namespace berth::profiler
