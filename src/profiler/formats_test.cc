// json(), folded() and xspace().

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/wire_reader.h"
#include "berth/profiler.h"
#include "profiler/event_index.h"

namespace berth::profiler {
namespace {

using nlohmann::json;

TEST(ChromeJson, HasWhatIsKnownOfEvents) {
  const Timeline t({{.track = "/CPU:0",
                     .name = "a",
                     .kind = "MatMul",
                     .begin_us = 0,
                     .end_us = 5,
                     .bytes = 7,
                     .flops = 0.5,
                     .predicted_us = 4,
                     .run = 2},
                    {.track = "/GPU:0",
                     .name = "b",
                     .kind = "copy",
                     .begin_us = 6,
                     .end_us = 9,
                     .detail = "/CPU:0 -> /GPU:0",
                     .after = {0}},
                    {.track = "/GPU:0",
                     .name = "c",
                     .kind = "copy",
                     .begin_us = 7,
                     .end_us = 11,
                     .task = "worker:1"},
                    {.track = "/GPU:0",
                     .name = "d",
                     .kind = "memory",
                     .begin_us = 8,
                     .end_us = 8,
                     .bytes = 64}});
  const json events = json::parse(t.json())["traceEvents"];
  const auto found = [&](const char* phase) {
    std::vector<json> all;
    for (const json& e : events) {
      if (e["ph"] == phase) all.push_back(e);
    }
    return all;
  };
  const auto slices = found("X"), counters = found("C");
  const auto from = found("s"), to = found("f");
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0]["args"], json::parse(R"({"kind": "MatMul", "bytes": 7,
      "flops": 0.5, "predicted_us": 4.0, "run": 2})"));
  EXPECT_EQ(slices[1]["args"]["detail"], "/CPU:0 -> /GPU:0");
  EXPECT_NE(slices[1]["pid"], slices[2]["pid"]);
  ASSERT_EQ(from.size(), 1u);
  ASSERT_EQ(to.size(), 1u);
  EXPECT_EQ(from[0]["id"], to[0]["id"]);
  EXPECT_EQ(from[0]["pid"], slices[0]["pid"]);
  EXPECT_EQ(to[0]["pid"], slices[1]["pid"]);
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0]["args"]["bytes"], 64);
}

TEST(ChromeJson, NamesOfAnyBytesAreValid) {
  std::string name;
  for (int c = 0; c < 256; ++c) name += static_cast<char>(c);
  const Timeline t({{name, name, name, {"f\n\xff", 1}, 0, 1, name}});
  const json events = json::parse(t.json())["traceEvents"];
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1]["name"].get<std::string>().substr(0, 128),
            name.substr(0, 128));
}

TEST(ChromeJson, SlicesThatOverlapHaveThreadsOfTheirOwn) {
  const Timeline t({{"/GPU:0", "a", "copy", {}, 0, 5},
                    {"/GPU:0", "b", "copy", {}, 3, 8},
                    {"/GPU:0", "c", "copy", {}, 5, 6}});
  const json events = json::parse(t.json())["traceEvents"];
  EXPECT_NE(events[1]["tid"], events[2]["tid"]);
  EXPECT_EQ(events[1]["tid"], events[3]["tid"]);
}

TEST(Folded, CountsTheTimeThatAnEventHasToItself) {
  const Timeline t({{"/CPU:0", "step", "call", {}, 0, 100},
                    {"/CPU:0", "net/dense/MatMul", "MatMul", {}, 10, 40},
                    {"/CPU:0", "net/dense/MatMul", "MatMul", {}, 50, 60.4},
                    {"/CPU:0", "a;b\nc", "wait", {}, 100, 102},
                    {"/CPU:0", "short", "wait", {}, 102, 102.1},
                    {"/CPU:0", "m", "memory", {}, 20, 30}});
  EXPECT_EQ(t.folded(),
            "/CPU:0;a_b_c 2\n"
            "/CPU:0;net/dense;MatMul 40\n"
            "/CPU:0;step 60\n");
}

TEST(Steps, AreMarkedOrRunsOfThePlanThatRanMost) {
  std::vector<TimelineEvent> events;
  const auto add = [&](const char* name, const char* kind, double begin,
                       double end, int64_t run, std::vector<int32_t> after) {
    events.push_back({.track = "/CPU:0",
                      .name = name,
                      .kind = kind,
                      .begin_us = begin,
                      .end_us = end,
                      .run = run,
                      .after = std::move(after)});
  };
  add("next", "input", 0, 1, 0, {});
  add("MatMul", "MatMul", 1, 2, 1, {});
  add("Add", "AddV2", 2, 4, 1, {1});
  add("next", "input", 5, 6, 0, {});
  add("MatMul", "MatMul", 6, 7, 2, {});
  add("Add", "AddV2", 7, 9, 2, {4});
  add("Other", "Mul", 9, 10, 2, {});
  const Timeline runs(events);
  const EventIndex plan(runs);
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[0].begin, 1);
  EXPECT_EQ(plan.steps[0].end, 6);  // with the input after it
  EXPECT_EQ(plan.steps[1].begin, 6);
  EXPECT_EQ(plan.steps[1].end, 9);
  events[6] = {.track = "annotations",
               .name = "train (step_num=7)",
               .kind = "annotation",
               .begin_us = 6,
               .end_us = 11};
  const Timeline with_mark(events);
  const EventIndex marked(with_mark);
  ASSERT_EQ(marked.steps.size(), 1u);
  EXPECT_EQ(marked.step_name, "train");
  EXPECT_EQ(marked.steps[0].begin, 6);
  EXPECT_EQ(marked.steps[0].end, 11);
  EXPECT_EQ(marked.step[4], 0);
  EXPECT_EQ(marked.step[1], -1);
}

TEST(XSpace, HasAPlaneOfTheHostWithSteps) {
  const Timeline t({{.track = "/CPU:0",
                     .name = "a\xff/MatMul",
                     .kind = "MatMul",
                     .begin_us = 1,
                     .end_us = 3,
                     .run = 1}});
  const std::string text = t.xspace();
  WireReader space(text);
  std::vector<std::string_view> planes;
  while (const uint32_t tag = space.tag()) {
    std::string_view bytes;
    ASSERT_TRUE(space.view(&bytes));
    if (tag == wire::tag_of(1, wire::kDelimited)) planes.push_back(bytes);
  }
  EXPECT_TRUE(space.finished());
  ASSERT_EQ(planes.size(), 1u);
  for (const char* part :
       {"/host:CPU", "train", "group_id", "a\xef\xbf\xbd/MatMul:MatMul"}) {
    EXPECT_NE(planes[0].find(part), std::string_view::npos) << part;
  }
}

}  // namespace
}  // namespace berth::profiler
