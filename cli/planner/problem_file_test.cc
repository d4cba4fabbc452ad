// Problem files: the problem that is read, and the message for a bad one.

#include "cli/planner/problem_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/errors.h"
#include "planner/planner.h"

namespace berth {
namespace {

const char kSmall[] =
    R"({"berth_problem": 1, "name": "small", "objective": "throughput",
  "classes": [{"name": "CPU", "type": "CPU"}, {"name": "fast", "type": "ACC"}],
  "devices": [
    {"name": "ACC:0", "class": "fast", "memory_bytes": 100, "copies": "both"},
    {"name": "CPU:0", "class": "CPU", "copies": "receiving", "free_of_touch": true}],
  "bytes_per_time": 2,
  "ops": [
    {"name": "a", "id": 7, "times": [4, 2.5], "reads": [], "bytes": 12, "group": 0, "held": 60.5,
     "touch": 0.5},
    {"name": "b", "id": 5, "times": [1, "inf"], "reads": [0, 0], "bytes": 0, "group": 1,
     "touch": 0.25, "backward": true, "devices": [1]}]})";

std::string with(std::string text, const std::string& old,
                 const std::string& now) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), now);
}

std::string failure(const std::string& text) {
  try {
    read_problem(text, "f");
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(ProblemFile, IsReadFieldByField) {
  const PlanProblem p = read_problem(kSmall, "f");
  EXPECT_EQ(p.name, "small");
  EXPECT_EQ(p.model, PlanModel::kLoad);
  EXPECT_EQ(p.time_unit, "");
  ASSERT_EQ(p.num_devices(), 2);
  EXPECT_EQ(p.costs.devices[0].name, "ACC:0");
  EXPECT_EQ(p.costs.devices[0].memory_limit, 100);
  EXPECT_EQ(p.costs.devices[0].copies, CopyRule::kBoth);
  EXPECT_EQ(p.costs.devices[1].memory_limit, 0);
  EXPECT_EQ(p.free_of_touch, (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(p.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(p.ids, (std::vector<int64_t>{7, 5}));
  EXPECT_EQ(p.group, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(p.num_groups, 2);
  EXPECT_EQ(p.backward, (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(p.resident_bytes, (std::vector<double>{60.5, 0}));
  EXPECT_EQ(p.touch_us, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(p.costs.bytes[0][0], 12);
  EXPECT_EQ(p.costs.link(0, 1).time_us(12), 6);
  EXPECT_EQ(p.costs.time(0, 0).us, 2.5);
  EXPECT_EQ(p.costs.time(0, 1).us, 4);
  EXPECT_TRUE(std::isinf(p.costs.time(1, 0).us));
  EXPECT_EQ(p.graph.reads[1].size(), 1u) << "read twice is read once";
  EXPECT_EQ(allowed_of_groups(p), (std::vector<DeviceSet>{3, 2}));
}

TEST(ProblemFile, BadFieldsAreNamedByTheirPath) {
  const struct {
    std::string old, now, expected;
  } cases[] = {
      {"\"berth_problem\": 1, ", "",
       "f: the document: has no \"berth_problem\"; files of dnn-partitioning "
       "and Doppler are converted by tools/plan_problem FILE > PROBLEM"},
      {"\"berth_problem\": 1", "\"berth_problem\": 2",
       "f: berth_problem: found 2, expected 1 to 1"},
      {"throughput", "speed",
       "f: objective: found \"speed\", expected \"latency\" or \"throughput\""},
      {"\"class\": \"fast\"", "\"class\": \"slow\"",
       "f: devices[0].class: found \"slow\", expected the name of a class"},
      {"both", "all",
       "f: devices[0].copies: found \"all\", expected \"overlap\""},
      {"\"bytes_per_time\": 2", "\"bytes_per_time\": 0",
       "f: bytes_per_time: found 0, expected more than 0"},
      {"[4, 2.5]", "[4]",
       "f: ops[0].times: found an array of 1, expected 2 times, one per class"},
      {"[4, 2.5]", "[4, -1]", "op \"a\" takes -1 on \"fast\""},
      {"[0, 0]", "[0, 2]", "f: ops[1].reads[1]: found 2, expected 0 to 1"},
      {"[0, 0]", "[1]", "waits for itself"},
      {"\"name\": \"b\"", "\"name\": \"a\"",
       "f: ops[1].name: found \"a\", expected a name that no op before has"},
      {"\"held\": 60.5", "\"held\": -1",
       "f: ops[0].held: found -1, expected 0 to"},
      {"\"touch\": 0.25, ", "", "1 transfer times; expected 2, one each"},
      {"\"devices\": [1]", "\"devices\": [2]",
       "f: ops[1].devices[0]: found 2, expected 0 to 1"},
      {"\"held\"", "\"hold\"",
       "f: ops[0]: found a field \"hold\", expected only"},
  };
  for (const auto& c : cases) {
    const std::string said = failure(with(kSmall, c.old, c.now));
    EXPECT_NE(said.find(c.expected), std::string::npos)
        << c.now << ": " << said;
  }
  EXPECT_NE(failure(""), "");
  EXPECT_NE(failure(std::string(1'000'000, '[')), "");
  EXPECT_NE(failure(std::string(300'000, '[') + std::string(300'000, ']')), "");
}

}  // namespace
}  // namespace berth
