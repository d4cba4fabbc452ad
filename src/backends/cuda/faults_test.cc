// Fails every call of the driver: expects a named error, no crash, no hang.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "backends/cuda/scenario_testing.h"
#include "berth/errors.h"

namespace berth::cuda {
namespace {

class Faults : public CudaTest {};

constexpr const char* kCalls[] = {
#define BERTH_CUDA_NAME(call) #call,
    BERTH_CUDA_CALLS(BERTH_CUDA_NAME)
#undef BERTH_CUDA_NAME
};

// True for calls whose failure does not change the result: those that end or
// free things, take times, or wait for these.
bool may_fail(const std::string& call) {
  return call.find("Destroy") != std::string::npos || call == "cuMemFree" ||
         call == "cuMemFreeHost" || call == "cuModuleUnload" ||
         call == "cuEventElapsedTime" || call == "cuGraphExecUpdate" ||
         call == "cuCtxSetCurrent" || call == "cuCtxGetCurrent" ||
         call == "cuStreamSynchronize" || call == "cuEventSynchronize";
}

std::vector<unsigned char> expected() {
  std::vector<unsigned char> bytes(16, 7);
  bytes.resize(32, 3);
  return bytes;
}

TEST_F(Faults, NoneInAGoodRunAndNothingIsLeft) {
  for (const char* fake : {"devices=2", "devices=2,later=3"}) {
    kFake->begin(fake);
    const size_t bytes = kFake->bytes_used();
    const long objects = kFake->objects();
    EXPECT_EQ(run_scenario(), expected());
    EXPECT_EQ(kFake->bytes_used(), bytes);
    EXPECT_EQ(kFake->objects(), objects);
  }
}

TEST_F(Faults, TheRunCallsEverythingOfTheTable) {
  kFake->begin("devices=2,later=1");
  run_scenario();
  for (const std::string call : kCalls) {
    // Called when cards are found, within one card's memory, or to name errors.
    if (call == "cuInit" || call == "cuDriverGetVersion" ||
        call == "cuDeviceGetCount" || call == "cuMemcpyDtoDAsync" ||
        call == "cuGetErrorName") {
      continue;
    }
    EXPECT_GT(kFake->calls(call.c_str()), 0) << call;
  }
}

// Runs with one failure; the error must name it.
void run_with(const std::string& call, long at, int code) {
  const std::string fake =
      fmt::format("devices=2,later=1,fail={}@{}:{}", call, at, code);
  SCOPED_TRACE(fake);
  kFake->begin(fake.c_str());
  const size_t bytes_before = kFake->bytes_used();
  const long objects_before = kFake->objects();
  try {
    const auto bytes = run_scenario();
    EXPECT_TRUE(may_fail(call) || kFake->failed() == 0 ||
                (call == "cuMemAlloc" && code == 2));
    if (code < 700) {
      EXPECT_EQ(bytes, expected());
    }
  } catch (const errors::Error& e) {
    const std::string what = e.what();
    // It retried with less, or the error is the allocator's.
    if (code == 2 && what.find("memory") != std::string::npos) return;
    EXPECT_NE(what.find(call), std::string::npos) << what;
    EXPECT_NE(what.find(fmt::format("({})", code)), std::string::npos) << what;
    EXPECT_EQ(e.code() == errors::Code::kUnavailable, code >= 700) << what;
  }
  // Neither a lost card nor a failed call to free gives anything back.
  if (code >= 700 || may_fail(call)) return;
  EXPECT_EQ(kFake->bytes_used(), bytes_before);
  EXPECT_EQ(kFake->objects(), objects_before);
}

TEST_F(Faults, OneAtEachPlace) {
  kFake->begin("devices=2,later=1");
  run_scenario();
  std::map<std::string, long> counts;
  for (const char* call : kCalls) counts[call] = kFake->calls(call);
  counts.erase("cuInit");  // NVRTC calls it
  for (const auto& [call, count] : counts) {
    for (long at = 1; at <= count; ++at) {
      // Some are called very often, from the same places.
      if (at > 12 && at < count - 3) continue;
      run_with(call, at, CUDA_ERROR_INVALID_VALUE);
      run_with(call, at, CUDA_ERROR_ILLEGAL_ADDRESS);
      run_with(call, at, CUDA_ERROR_OUT_OF_MEMORY);
    }
  }
}

TEST_F(Faults, ALastingErrorClosesItsCardAlone) {
  kFake->begin("devices=2");
  CardPair pair;
  Device& first = pair.device(0);
  kFake->begin("devices=2,fail=cuMemsetD8Async@1:700");
  launch_on(first.compute_stream(),
            [&](Stream& s) { first.fill_async(s, nullptr, 0, 8); });
  for (int i = 0; i < 2; ++i) {
    try {
      synchronize(first.compute_stream().record());
      FAIL();
    } catch (const errors::Unavailable& e) {
      EXPECT_STREQ(e.what(),
                   "Test failed on GPU:40: Fake GPU 0: cuMemsetD8Async: "
                   "CUDA_ERROR_ILLEGAL_ADDRESS (700): the device is closed "
                   "until the process ends");
    }
    try {
      first.reset_error();
    } catch (const errors::Unavailable&) {
    }
  }
  EXPECT_THROW(first.allocator().allocate(100 << 10), errors::Unavailable);
  Device& second = pair.device(1);
  const BlockRef b = BlockRef::adopt(second.allocator().allocate(8));
  second.copy_from_host(b->data, "1234567", 8);
  char back[8];
  second.copy_to_host(back, b->data, 8);
  EXPECT_STREQ(back, "1234567");
}

TEST_F(Faults, AnotherErrorDoesNot) {
  kFake->begin("devices=2");
  CardPair pair;
  Device& d = pair.device(0);
  const BlockRef b = BlockRef::adopt(d.allocator().allocate(8));
  kFake->begin("devices=2,fail=cuMemsetD8Async@1:1");
  const auto fill = [&](Stream& s) { d.fill_async(s, b->data, 1, 8); };
  launch_on(d.compute_stream(), fill);
  EXPECT_THROW(synchronize(d.compute_stream().record()), errors::Internal);
  d.reset_error();
  launch_on(d.compute_stream(), fill);
  synchronize(d.compute_stream().record());
}

}  // namespace
}  // namespace berth::cuda
