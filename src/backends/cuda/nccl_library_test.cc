// Finding NCCL, and the message without it.

#include "backends/cuda/nccl_library.h"

#include <gtest/gtest.h>

#include "backends/cuda/cards.h"
#include "backends/cuda/nccl_sums.h"
#include "backends/cuda/nccl_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "device/plugin.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#define BERTH_NCCL_HEADER 1
#endif

namespace berth::cuda {
namespace {

using fresh_process::check;

class NcclLibraryDeathTest : public CudaTest {};

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void find_cards(const char* nccl, int count = 2) {
  kFake->begin(fmt::format("devices={}", count).c_str());
  kNccl->begin(nccl);
  check(static_cast<int>(cards().size()) == count, "cards");
}

TEST_F(NcclLibraryDeathTest, IsFoundAndNothingIsSaid) {
  IN_A_FRESH_PROCESS({
    find_cards("");
    check(why_none().empty(), why_none());
    std::string why;
    const Nccl* nccl = Nccl::find(&why);
    check(nccl && nccl->description() == "NCCL 2.28.9", why);
  });
}

TEST_F(NcclLibraryDeathTest, TooOldIsSaidAndSumsGoByCopies) {
  IN_A_FRESH_PROCESS({
    find_cards("version=2708");
    check(has(why_none(),
              "sums between GPUs go by copies: NCCL 2.7.8 is too "
              "old, 2.14 or newer is needed"),
          why_none());
    kNccl->begin("version=2708");  // the plug-in itself searches
    check(count_ops(*SumStep{.devices = {gpu_name(0), gpu_name(1)}}
                         .plan())["_AllReduceStart"] == 0,
          "copies");
  });
}

TEST_F(NcclLibraryDeathTest, ThatDoesNotWorkIsSaid) {
  IN_A_FRESH_PROCESS({
    find_cards("fail=ncclGetVersion@1:3");
    check(has(why_none(), "NCCL does not work: ncclGetVersion: internal error"),
          why_none());
  });
}

TEST_F(NcclLibraryDeathTest, IsNotLookedForWhenSwitchedOff) {
  IN_A_FRESH_PROCESS({
    setenv("BERTH_COLLECTIVES", "own", 1);
    find_cards("");
    check(has(why_none(),
              "sums between GPUs go by copies: "
              "BERTH_COLLECTIVES=own"),
          why_none());
    check(kNccl->calls("ncclGetVersion") == 0, "not opened");
  });
}

TEST_F(NcclLibraryDeathTest, NobodyMissesItWithOneGpu) {
  IN_A_FRESH_PROCESS({
    find_cards("version=2708", 1);
    check(why_none().empty(), why_none());
  });
}

// Checks NVIDIA's own library, where there is one.
TEST_F(NcclLibraryDeathTest, TheRealOneHasEveryFunction) {
  setenv("BERTH_NO_FAKE_NCCL", "1", 1);
  IN_A_FRESH_PROCESS({
    std::string why;
    const Nccl* nccl = Nccl::find(&why);
    check(nccl ? nccl->description().starts_with("NCCL 2.")
               : has(why, "there is no libnccl.so.2: install it"),
          why);
  });
  unsetenv("BERTH_NO_FAKE_NCCL");
}

TEST_F(NcclLibraryDeathTest, ATimeoutIsANumberOfSeconds) {
  IN_A_FRESH_PROCESS({
    setenv("BERTH_NCCL_TIMEOUT", "soon", 1);
    fresh_process::refuses<errors::InvalidArgument>(
        [] { NcclSums::default_timeout_seconds(); },
        "BERTH_NCCL_TIMEOUT is 'soon'; expected a number of seconds above 0");
  });
  IN_A_FRESH_PROCESS({
    setenv("BERTH_NCCL_TIMEOUT", "2.5", 1);
    check(NcclSums::default_timeout_seconds() == 2.5, "2.5");
  });
}

#ifdef BERTH_NCCL_HEADER
TEST(NcclApi, IsThatOfNvidiasHeader) {
  EXPECT_EQ(kNcclSuccess, ncclSuccess);
  EXPECT_EQ(kNcclInvalidArgument, ncclInvalidArgument);
  EXPECT_EQ(kNcclInvalidUsage, ncclInvalidUsage);
  EXPECT_EQ(kNcclInProgress, ncclInProgress);
  EXPECT_EQ(kNcclInt8, ncclInt8);
  EXPECT_EQ(kNcclUint8, ncclUint8);
  EXPECT_EQ(kNcclInt32, ncclInt32);
  EXPECT_EQ(kNcclInt64, ncclInt64);
  EXPECT_EQ(kNcclFloat16, ncclFloat16);
  EXPECT_EQ(kNcclFloat32, ncclFloat32);
  EXPECT_EQ(kNcclFloat64, ncclFloat64);
  EXPECT_EQ(kNcclBfloat16, ncclBfloat16);
  EXPECT_EQ(kNcclSum, ncclSum);
  EXPECT_EQ(sizeof(NcclId), sizeof(ncclUniqueId));
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(NcclConfig{}.magic, theirs.magic);
  EXPECT_EQ(offsetof(NcclConfig, size), offsetof(ncclConfig_t, size));
  EXPECT_EQ(offsetof(NcclConfig, magic), offsetof(ncclConfig_t, magic));
  EXPECT_EQ(offsetof(NcclConfig, version), offsetof(ncclConfig_t, version));
  EXPECT_EQ(offsetof(NcclConfig, blocking), offsetof(ncclConfig_t, blocking));
}
#endif

}  // namespace
}  // namespace berth::cuda
