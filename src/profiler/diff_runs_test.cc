#include "profiler/diff_runs.h"

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <vector>

#include "berth/errors.h"
#include "berth/function.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"

namespace berth::profiler {
namespace {

TimelineEvent event(const char* kind, const char* op, int line, double at,
                    uint64_t bits) {
  TimelineEvent e{"checksums", op, kind, {"/home/me/train.py", line}, at, at};
  e.bytes = static_cast<int64_t>(bits);
  return e;
}

void add(std::vector<TimelineEvent>* to, const char* op, int line, double at,
         uint64_t sum, double least = 1, double most = 0) {
  to->push_back(event("checksum", op, line, at, sum));
  if (least > most) return;
  to->push_back(event("least", op, line, at, std::bit_cast<uint64_t>(least)));
  to->push_back(event("most", op, line, at, std::bit_cast<uint64_t>(most)));
}

TEST(DiffRuns, NamesTheFirstOpInTheOrderOfTheFirstRun) {
  std::vector<TimelineEvent> a, b;
  add(&a, "MatMul", 3, 1, 11, -1, 2);
  add(&a, "Relu", 4, 2, 12, 0, 2);
  add(&a, "MatMul", 3, 3, 13, -1, 2);
  add(&a, "Relu", 4, 4, 14, 0, 2);
  b = a;
  b[6].bytes = 99;  // the second MatMul
  b[7].bytes = static_cast<int64_t>(std::bit_cast<uint64_t>(-1.5));
  b[9].bytes = 98;
  const RunDifference d = first_difference(Timeline(a), Timeline(b));
  ASSERT_TRUE(d.found);
  EXPECT_EQ(d.op, "MatMul");
  EXPECT_EQ(d.line, "train.py:3");
  EXPECT_EQ(d.step, 2);
  EXPECT_EQ(d.compared, 2);
  EXPECT_EQ(d.a.checksum, 13u);
  EXPECT_EQ(d.b.checksum, 99u);
  EXPECT_EQ(d.b.least, -1.5);
  const std::string text = d.str();
  EXPECT_NE(text.find("MatMul (train.py:3), step 2"), text.npos) << text;
  EXPECT_NE(text.find("-1.5 to 2"), text.npos) << text;
}

TEST(DiffRuns, OrderOfIndependentOpsDoesNotMatter) {
  std::vector<TimelineEvent> a, b;
  add(&a, "MatMul", 3, 1, 11);
  add(&a, "Relu", 4, 2, 12);
  add(&b, "Relu", 4, 1, 12);
  add(&b, "MatMul", 3, 2, 11);
  const RunDifference d = first_difference(Timeline(a), Timeline(b));
  EXPECT_FALSE(d.found);
  EXPECT_EQ(d.str(), "equal bits in 2 results\n");
}

TEST(DiffRuns, AnOpThatOnlyOneRunHasDiffers) {
  std::vector<TimelineEvent> a, b;
  add(&a, "MatMul", 3, 1, 11);
  b = a;
  add(&b, "Relu", 4, 2, 12);
  const RunDifference more = first_difference(Timeline(a), Timeline(b));
  EXPECT_EQ(more.op, "Relu");
  EXPECT_FALSE(more.a.is_there);
  EXPECT_NE(more.str().find("first:  did not run"), std::string::npos);
  const RunDifference less = first_difference(Timeline(b), Timeline(a));
  EXPECT_EQ(less.op, "Relu");
  EXPECT_FALSE(less.b.is_there);
}

TEST(DiffRuns, ARunWithoutChecksumsIsRefused) {
  std::vector<TimelineEvent> a;
  add(&a, "MatMul", 3, 1, 11);
  try {
    first_difference(Timeline(a), Timeline());
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    const std::string m = e.what();
    EXPECT_NE(m.find("the second run has no checksums"), m.npos) << m;
  }
}

// A function of two ops and an eager one, `shift` added by the third line.
Timeline recorded(float shift) {
  const auto f = function(
      [](const Tensor& x, const Tensor& s) {
        return math::reduce_sum(math::matmul(x, x) + s);
      },
      {.name = "step"});
  start({.checksums = true});
  const Tensor x = fill({8, 8}, 0.5f);
  for (int step = 0; step < 2; ++step) {
    f(x, fill({8, 8}, step == 1 ? shift : 1.0f)).item<float>();
  }
  const Timeline t = stop();
  const std::string path = testing::TempDir() + "/diff_runs.pftrace";
  t.write(path);
  const Timeline read = Timeline::read(path);
  std::filesystem::remove(path);
  return read;
}

TEST(DiffRuns, RecordedRunsOfOneProgramAreEqual) {
  const RunDifference d = first_difference(recorded(1), recorded(1));
  EXPECT_FALSE(d.found) << d.str();
  EXPECT_GE(d.compared, 4);
}

TEST(DiffRuns, ARecordedDifferenceIsFoundWhereItBegan) {
  const RunDifference d = first_difference(recorded(1), recorded(2));
  ASSERT_TRUE(d.found);
  EXPECT_NE(d.line.find("diff_runs_test.cc"), std::string::npos) << d.str();
  EXPECT_EQ(d.step, 2) << d.str();
  EXPECT_EQ(d.a.least, 1);
  EXPECT_EQ(d.b.least, 2);
}

}  // namespace
}  // namespace berth::profiler
