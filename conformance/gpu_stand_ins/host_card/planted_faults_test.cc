// Faults planted in kernels on purpose must be found.

#include <gtest/gtest.h>

#include <numeric>

#include "berth/errors.h"
#include "conformance/gpu_stand_ins/host_card/host_testing.h"

namespace berth::gpu {
namespace {

class PlantedFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (host_check() != HostCheck::kMemory) {
      GTEST_SKIP() << "this program has no AddressSanitizer in it";
    }
  }
};

// Makes a kernel whose items see x of n elements and y of 256.
std::string body(const std::string& statements) {
  return R"(
    KERNEL(GROUP_SIZE, f)(BUF(const i32, x), BUF(i32, y), const i32 n) {
      AT(const i32, x);
      AT(i32, y);)" +
         statements + "}";
}

void run(const std::string& statements, uint64_t seed = 0) {
  HostCard card(seed);
  const CardArray<int32_t> x(card, std::vector<int32_t>(255, 2147483647));
  const CardArray<int32_t> y(card, std::vector<int32_t>(256));
  const int32_t n = 255;
  launch_f(card, body(statements), 1, {x.arg(), y.arg(), value_arg(n)});
}

TEST_F(PlantedFaults, ReadsAndWritesWithinBoundsAreNone) {
  run("if (LID < n) y[LID] = x[LID];");
}

TEST_F(PlantedFaults, AReadOneElementBehindAnArrayIsFound) {
  EXPECT_DEATH(run("y[LID] = x[LID];"), "use-after-poison.*\n.*READ of size 4");
}

TEST_F(PlantedFaults, AWriteOneElementBehindAnArrayIsFound) {
  EXPECT_DEATH(run("y[LID + 1] = 1;"), "use-after-poison.*\n.*WRITE of size 4");
}

TEST_F(PlantedFaults, AWriteOneByteBehindAnArrayIsFound) {
  EXPECT_DEATH(run("((u8 *)y)[256 * 4] = 1;"), "WRITE of size 1");
}

TEST_F(PlantedFaults, AWriteBehindMemoryOfTheGroupIsFound) {
  EXPECT_DEATH(run(R"(
    LOCAL_ARRAY(i32, box, GROUP_SIZE);
    i32 *volatile hidden = box;
    i32 *p = hidden;
    p[LID + 1] = n;
    y[LID] = p[LID];)"),
               "global-buffer-overflow");
}

TEST_F(PlantedFaults, AnIndexOfMemoryOfTheGroupIsFound) {
  EXPECT_DEATH(run(R"(
    LOCAL_ARRAY(i32, box, GROUP_SIZE);
    box[LID + (n == 255)] = n;
    y[LID] = box[LID];)"),
               "index 256 out of bounds");
}

TEST_F(PlantedFaults, AWriteBehindAnArrayOfAnItemIsFound) {
  // Behind a barrier the stack is a fiber's.
  EXPECT_DEATH(run(R"(
    i32 own[4];
    for (i32 i = 0; i < 4; ++i) own[i] = i;
    BARRIER();
    i32 *volatile hidden = own;
    i32 *p = hidden;
    p[n - 251] = 1;
    y[LID] = own[LID & 3];)"),
               "stack-buffer-overflow");
}

TEST_F(PlantedFaults, AMisalignedAccessIsFound) {
  EXPECT_DEATH(run("if (LID == 0) y[0] = *(const i32 *)((const u8 *)x + 2);"),
               "misaligned address");
}

TEST_F(PlantedFaults, ASignedOverflowIsFound) {
  EXPECT_DEATH(run("if (LID < n) y[LID] = x[LID] + LID;"),
               "signed integer overflow: (1 \\+ 2147483647|2147483647 \\+ 1)");
}

TEST_F(PlantedFaults, AShiftThatIsTooFarIsFound) {
  EXPECT_DEATH(run("y[LID] = 1u << LID;"), "shift exponent 32 is too large");
}

TEST_F(PlantedFaults, AFloatThatAWholeNumberCannotHoldIsFound) {
  EXPECT_DEATH(run("y[LID] = (i32)(3e9f + (f32)LID);"),
               "3e\\+09 is outside the range");
}

TEST_F(PlantedFaults, ARaceShowsInAnotherOrder) {
  // Lacks the barrier between reading and writing; correct only in order.
  const std::string text = R"(
    KERNEL(GROUP_SIZE, f)(BUF(const i32, x), BUF(i32, y)) {
      AT(const i32, x);
      AT(i32, y);
      LOCAL_ARRAY(i32, box, GROUP_SIZE);
      box[LID] = x[LID];
      // Here a BARRIER is missing.
      i32 sum = 0;
      for (i32 i = 0; i <= LID; ++i) sum += box[i];
      y[LID] = sum;
    })";
  std::vector<int32_t> ones(256, 1), right(256);
  std::iota(right.begin(), right.end(), 1);
  const auto result = [&](uint64_t seed) {
    HostCard card(seed);
    const CardArray<int32_t> x(card, ones), y(card, ones);
    launch_f(card, text, 1, {x.arg(), y.arg()});
    return y.values();
  };
  EXPECT_EQ(result(0), right);
  EXPECT_NE(result(1), right);
}

// Launches one group with races watched; returns its error, "" if none.
std::string race_in(const std::string& statements, uint32_t groups = 1) {
  HostCard card(0, HostCheck::kRaces);
  const std::vector<int32_t> ones(2 * 256, 1);
  const CardArray<int32_t> x(card, ones), y(card, ones);
  const int32_t n = 255;
  try {
    launch_f(card, body(statements), groups, {x.arg(), y.arg(), value_arg(n)});
  } catch (const errors::Internal& e) {
    return e.what();
  }
  return "";
}

TEST(PlantedRaces, WhereItemsWaitForEachOtherThereAreNone) {
  EXPECT_EQ(race_in(R"(
    LOCAL_ARRAY(i32, box, GROUP_SIZE);
    box[LID] = x[ITEM];
    BARRIER();
    for (i32 s = GROUP_SIZE / 2; s > 0; s /= 2) {
      if (LID < s) box[LID] += box[LID + s];
      BARRIER();
    }
    if (LID == 0) y[GROUP] = box[0];)",
                    2),
            "");
}

TEST(PlantedRaces, AMissingBarrierIsFoundInAnyOrder) {
  EXPECT_NE(race_in(R"(
    LOCAL_ARRAY(i32, box, GROUP_SIZE);
    box[LID] = x[LID];
    y[LID] = LID > 0 ? box[LID - 1] : 0;)")
                .find("a race: item 0 of group 0 writes byte 0 of box, which "
                      "item 1 of group 0 reads"),
            std::string::npos);
}

TEST(PlantedRaces, ElementsOfTwoGroupsAreFound) {
  EXPECT_NE(race_in("y[ITEM - GROUP] = 1;", 2)
                .find("a race: item 255 of group 0 writes byte 1020 of "
                      "argument 1, which item 0 of group 1 writes"),
            std::string::npos);
}

TEST(PlantedRaces, AtomicOperationsAreNone) {
  EXPECT_EQ(race_in("ATOMIC_CAS(y, 1, 2);", 2), "");
}

}  // namespace
}  // namespace berth::gpu
