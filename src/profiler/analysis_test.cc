#include "profiler/analysis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "profiler/event_index.h"
#include "profiler/report_page.h"
#include "profiler/tasks.h"

namespace berth::profiler {
namespace {

// Two devices, a copy between them, input before each of two steps. Times:
//   input     0-10           100-120
//   call     10-90           120-200     (train_step)
//   CPU:0    10-40 A                     copy 40-50 on CPU:1 from CPU:0
//   CPU:1                50-80 B
Timeline hand_made() {
  std::vector<TimelineEvent> events;
  const auto step = [&](double t, double input) {
    const auto at = static_cast<int32_t>(events.size());
    events.push_back({"input", "next element", "input", {}, t - input, t});
    events.push_back({"calls", "train_step", "call", {}, t, t + 80});
    TimelineEvent a = {"CPU:0", "A", "MatMul", {"net.cc", 7}, t, t + 30};
    a.flops = 3e6;
    a.bytes = 3000;
    a.predicted_us = 20;
    a.run = 1;
    TimelineEvent copy = {"CPU:1", "copy A", "copy", {}, t + 30, t + 40};
    copy.detail = "CPU:0 -> CPU:1";
    copy.bytes = 500;
    copy.after = {at + 2};
    copy.run = 1;
    TimelineEvent b = {"CPU:1", "B", "Softmax", {"net.cc", 9}, t + 40, t + 70};
    b.after = {at + 3};
    b.run = 1;
    for (TimelineEvent* e : {&a, &copy, &b}) events.push_back(*e);
  };
  step(10, 10);
  step(120, 20);
  return Timeline(std::move(events));
}

double idle(const DeviceTime& d, IdleCause cause) {
  return d.idle_us[static_cast<size_t>(cause)];
}

TEST(Analysis, OfAHandMadeTimeline) {
  const Analysis a = analyze(hand_made());
  ASSERT_EQ(a.steps, 2);
  EXPECT_EQ(a.step_name, "train_step");
  // 10 to 120 (until the next call), and 120 to 200.
  EXPECT_EQ(a.step_spans[0], std::make_pair(10.0, 120.0));
  EXPECT_EQ(a.step_spans[1], std::make_pair(120.0, 200.0));
  ASSERT_EQ(a.devices.size(), 2u);
  const DeviceTime &d0 = a.devices[0], &d1 = a.devices[1];
  EXPECT_DOUBLE_EQ(d0.busy_us, 60);
  EXPECT_DOUBLE_EQ(d1.busy_us, 60);
  EXPECT_DOUBLE_EQ(d0.window_us, 190);
  // CPU:1 waits for A (30), for the copy (10); then the step ends (10), and the
  // next batch is awaited (20).
  EXPECT_DOUBLE_EQ(idle(d1, IdleCause::kCompute), 60);
  EXPECT_DOUBLE_EQ(idle(d1, IdleCause::kTransfer), 20);
  EXPECT_DOUBLE_EQ(idle(d1, IdleCause::kInput), 20);
  EXPECT_DOUBLE_EQ(idle(d1, IdleCause::kStepEnd), 30);
  EXPECT_EQ(d1.idle_edges[0].first, "compute of CPU:0");
  EXPECT_EQ(d1.idle_edges[1].first, "transfer CPU:0 -> CPU:1");
  for (const DeviceTime& d : a.devices) {
    double all = d.busy_us;
    for (const double us : d.idle_us) all += us;
    EXPECT_NEAR(all, d.window_us, 1e-6) << d.name;
  }
  // 70 of 80 us of work in each step, and 20 of input.
  EXPECT_DOUBLE_EQ(a.explained, 160.0 / 190);
  EXPECT_DOUBLE_EQ(a.transfers.total_us, 20);
  EXPECT_DOUBLE_EQ(a.transfers.hidden_us, 0);
  EXPECT_EQ(a.transfers.bytes, 1000);
  EXPECT_DOUBLE_EQ(a.input_us, 10);
}

TEST(Analysis, CriticalPathGoesThroughDevicesAndCopies) {
  const Analysis a = analyze(hand_made());
  std::vector<std::string> names;
  for (const PathPart& p : a.path) {
    if (p.event >= 0) names.push_back(p.what);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"A", "copy A", "B"}));
  double all = 0;
  for (const auto& [where, us] : a.path_by_device) all += us;
  EXPECT_NEAR(all, 95, 1e-6);  // the mean step
  for (const OpSummary& row : a.ops) {
    EXPECT_DOUBLE_EQ(row.critical_us, row.kind == "copy" ? 10 : 30);
    EXPECT_EQ(row.count, 2);
    if (row.name != "A") continue;
    EXPECT_EQ(row.line, "net.cc:7");
    EXPECT_DOUBLE_EQ(row.predicted_us, 20);
    EXPECT_DOUBLE_EQ(row.median_us, 30);
    EXPECT_EQ(row.limit, OpLimit::kCompute);
  }
}

TEST(Analysis, AdvisesOnInputAndCopies) {
  const Analysis a = analyze(hand_made());
  ASSERT_EQ(a.advice.size(), 2u);
  for (const Advice& v : a.advice) {
    EXPECT_DOUBLE_EQ(v.gain_us, 10) << v.title;
    EXPECT_GE(v.share, 0.03);
    EXPECT_FALSE(v.formula.empty());
  }
}

// Busy time and overlap against a bitmap of microseconds.
TEST(Analysis, AgreesWithABitmap) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 20; ++round) {
    constexpr int kEnd = 2000;
    std::vector<TimelineEvent> events;
    std::vector<char> busy(kEnd, 0), copies(kEnd, 0);
    events.push_back({"calls", "train", "call", {}, 0, kEnd});
    for (int begin = 0; begin < kEnd - 60; begin += below(40)) {
      const int end = begin + 1 + below(50);
      const bool copy = below(3) == 0;
      events.push_back({"CPU:0",
                        copy ? "c" : "op" + std::to_string(below(5)),
                        copy ? "copy" : "Add",
                        {},
                        1.0 * begin,
                        1.0 * end});
      std::fill(&(copy ? copies : busy)[begin], &(copy ? copies : busy)[end],
                1);
    }
    const Analysis a = analyze(Timeline(std::move(events)));
    double busy_us = 0, copy_us = 0, hidden_us = 0;
    for (int t = 0; t < kEnd; ++t) {
      busy_us += busy[t];
      copy_us += copies[t];
      hidden_us += busy[t] && copies[t];
    }
    ASSERT_EQ(a.devices.size(), 1u);
    EXPECT_DOUBLE_EQ(a.devices[0].busy_us, busy_us);
    EXPECT_DOUBLE_EQ(a.transfers.total_us, copy_us);
    EXPECT_DOUBLE_EQ(a.transfers.hidden_us, hidden_us);
    double all = 0;
    for (const double us : a.devices[0].idle_us) all += us;
    EXPECT_NEAR(all, kEnd - busy_us, 1e-6);
  }
}

// A task that enters two exchanges, by a clock that shows `shift` too much. It
// hands its values over and goes on, and adds others up alone before.
TaskEvents late_task(const std::string& name, double arrival, double shift) {
  TaskEvents t = {name, {{"CPU:0", "A", "MatMul", {}, 0, arrival}}};
  for (const double from : {0.0, 100.0}) {
    const double enters = from + arrival, leaves = from + 100;
    t.events.insert(t.events.end(),
                    {{"sums", "gradients/sum", "sum", {}, enters - 1, enters},
                     {"sums", "gradients/start", "sum", {}, enters, enters + 1},
                     {"sums", "gradients/end", "sum", {}, enters + 2, leaves}});
  }
  for (TimelineEvent& e : t.events) {
    e.begin_us += shift;
    e.end_us += shift;
  }
  return t;
}

TEST(Analysis, EstimatesTheClocksOfTasks) {
  for (const double shift : {-7e9, -300.0, 0.0, 250.0, 5e6}) {
    std::vector<TaskEvents> tasks = {late_task("worker:0", 60, 0),
                                     late_task("worker:1", 90, shift)};
    const std::vector<TaskClock> clocks = clocks_of(tasks);
    ASSERT_EQ(clocks.size(), 2u);
    EXPECT_EQ(clocks[0].offset_us, 0);
    EXPECT_EQ(clocks[1].messages, 2);
    // Each waits in a sum for the other: 10 us here, 40 there.
    EXPECT_DOUBLE_EQ(clocks[1].error_us, 25);
    EXPECT_NEAR(clocks[1].offset_us, -shift, 25 + 1e-6);
    const Timeline t = joined(std::move(tasks), clocks);
    std::map<std::string, double> begin, end;
    for (const TimelineEvent& e : t.events()) {
      const std::string part = e.kind == "sum" ? e.name : "";
      if (part == "gradients/start") begin.try_emplace(e.task, e.begin_us);
      if (part == "gradients/end") end.try_emplace(e.task, e.end_us);
    }
    EXPECT_GE(end["worker:0"], begin["worker:1"]);
    EXPECT_GE(end["worker:1"], begin["worker:0"]);
  }
  // Without a sum in common nothing is known.
  EXPECT_EQ(clocks_of({late_task("a", 60, 0), TaskEvents{"b"}})[1].messages, 0);
}

TEST(Analysis, NamesTheTaskThatIsLate) {
  const Analysis a = analyze(joined(
      {late_task("worker:0", 60, 0), late_task("worker:1", 90, 0)}, {{}, {}}));
  ASSERT_EQ(a.lags.size(), 2u);
  EXPECT_EQ(a.lags[0].last, 0);
  EXPECT_DOUBLE_EQ(a.lags[0].waited_us, 60);
  EXPECT_EQ(a.lags[1].last, 2);
  EXPECT_DOUBLE_EQ(a.lags[1].median_lost_us, 30);
  EXPECT_EQ(a.devices[1].name, "worker:1 CPU:0");
}

TEST(Analysis, FindsTheSlowStage) {
  std::vector<TimelineEvent> events;
  for (int k = 0; k < 4; ++k) {  // batch 3 us, of which map takes 8 within 10
    events.push_back(
        {"input: batch", "batch", "stage", {}, k * 20.0, k * 20.0 + 10});
    events.push_back({"input: map",
                      "map",
                      "stage",
                      {"in.cc", 3},
                      k * 20.0 + 1,
                      k * 20.0 + 9});
  }
  const Analysis a = analyze(Timeline(std::move(events)));
  ASSERT_EQ(a.stages.size(), 2u);
  EXPECT_EQ(a.stages[0].name, "map");
  EXPECT_EQ(a.stages[0].line, "in.cc:3");
  EXPECT_DOUBLE_EQ(a.stages[0].own_us, 32);
  EXPECT_DOUBLE_EQ(a.stages[1].own_us, 8);
  EXPECT_DOUBLE_EQ(a.stages[1].busy_us, 40);
}

TEST(Analysis, ComparesOpByOp) {
  const auto run = [](const char* second, double us) {
    return analyze(Timeline({{"CPU:0", "A", "MatMul", {}, 0, us},
                             {"CPU:0", second, "Add", {}, us, us + 1}}));
  };
  const auto rows = compare(run("B", 10), run("C", 30));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "A");
  EXPECT_DOUBLE_EQ(rows[0].per_step_us, 20);
  const auto json = to_json(rows);
  EXPECT_EQ(json[1]["change"], "gone");
  EXPECT_EQ(json[2]["change"], "new");
}

TEST(Analysis, NamesDevicesShortly) {
  const std::string here = "/job:localhost/replica:0/task:0/device:";
  const std::string there = "/job:worker/replica:0/task:1/device:";
  std::vector<TimelineEvent> events = {{here + "CPU:0",
                                        "a",
                                        "copy",
                                        {},
                                        0,
                                        1,
                                        there + "GPU:0 -> " + here + "CPU:0"},
                                       {"eager ops", "b", "Add", {}, 0, 1}};
  shorten_devices(&events);
  EXPECT_EQ(events[0].track, "CPU:0");
  EXPECT_EQ(events[0].detail, "worker:1 GPU:0 -> CPU:0");
  EXPECT_EQ(events[1].track, "eager ops");
}

TEST(Analysis, OfNothing) {
  const Timeline nothing;
  const Analysis a = analyze(nothing);
  EXPECT_EQ(a.steps, 0);
  EXPECT_TRUE(a.advice.empty());
  EXPECT_NE(report_page(EventIndex(nothing), a, "nothing").find("</html>"),
            std::string::npos);
}

TEST(Analysis, PageEscapesTheTitle) {
  const Timeline t({{"CPU:0", "</script><b>", "Add", {}, 0, 1}});
  const std::string page =
      report_page(EventIndex(t), analyze(t), "</title><script>\"'\x01");
  EXPECT_EQ(page.find("</title><script>\""), std::string::npos);
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
}

}  // namespace
}  // namespace berth::profiler
