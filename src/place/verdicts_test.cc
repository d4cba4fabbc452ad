// Verdicts of reports: when they are given, and when not.

#include "place/verdicts.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

constexpr const char* kVerdictCpu =
    "/job:localhost/replica:0/task:0/device:CPU:0";

placement::OpRow op_row(const std::string& op, const std::string& type,
                        double us, double runs) {
  placement::OpRow row;
  row.op = op;
  row.type = type;
  row.device = kVerdictCpu;
  row.measured_us = us;
  row.runs_per_step = runs;
  return row;
}

placement::Report report_of(std::vector<placement::OpRow> ops, double step_us) {
  placement::Report r;
  r.ops = std::move(ops);
  r.measured_step_us = step_us;
  return r;
}

TEST(Verdicts, PythonOnTheHost) {
  const auto v = verdicts_of(report_of({op_row("a", "MatMul", 110, 1),
                                        op_row("p", "PyFunction", 880, 1)},
                                       1000),
                             {});
  ASSERT_EQ(v.size(), 1u);
  EXPECT_TRUE(
      v[0].starts_with("88 % of the step is Python on CPU:0: "
                       "PyFunction \"p\""))
      << v[0];
  EXPECT_TRUE(verdicts_of(report_of({op_row("a", "MatMul", 800, 1),
                                     op_row("p", "PyFunction", 100, 1)},
                                    1000),
                          {})
                  .empty());
}

TEST(Verdicts, LoopsOfTinyOps) {
  const auto body = [](double us, double turns) {
    return report_of({op_row("loop/body/Add", "Add", us, turns),
                      op_row("loop/body/Mul", "Mul", us, turns)},
                     1000);
  };
  const auto v = verdicts_of(body(1, 300), {});
  ASSERT_EQ(v.size(), 1u);
  EXPECT_TRUE(
      v[0].starts_with("60 % of the step is 600 runs of ops of less "
                       "than 10 us in \"loop\""))
      << v[0];
  EXPECT_TRUE(verdicts_of(body(20, 20), {}).empty());  // they do some work
  EXPECT_TRUE(verdicts_of(body(9, 5), {}).empty());    // few turns
}

TEST(Verdicts, AValueThatIsReadAfterEveryStep) {
  const auto v = verdicts_of(report_of({}, 1000), {100, 98, "GPU:0"});
  ASSERT_EQ(v.size(), 1u);
  EXPECT_TRUE(
      v[0].starts_with("after 98 of 100 steps a value was read from "
                       "GPU:0"))
      << v[0];
  EXPECT_TRUE(verdicts_of(report_of({}, 1000), {100, 10, "GPU:0"}).empty());
  EXPECT_TRUE(verdicts_of(report_of({}, 1000), {2, 2, "GPU:0"}).empty());
}

}  // namespace
}  // namespace berth
