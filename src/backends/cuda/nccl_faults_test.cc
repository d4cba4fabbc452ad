// Sums by NCCL that fail, hang or are abandoned: expects an error that names
// them, in time, and a device that works again.

#include <gtest/gtest.h>

#include "backends/cuda/nccl_meeting.h"
#include "backends/cuda/nccl_testing.h"
#include "backends/gpu/gpu_device.h"
#include "base/errors_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/distribute.h"

namespace berth::cuda {
namespace {

using fresh_process::check;

class NcclFaults : public FourCards {
 protected:
  // Makes communicators of the first two cards.
  void SetUp() override {
    FourCards::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    expect_sums(two(), *two().plan());
    communicators_ = kNccl->communicators();
    kNccl->begin("");
  }

  // Runs the step and reads the result; returns the error.
  template <class E>
  static std::string failure(const SumStep& step, Plan& plan) {
    return message_of<E>([&] {
      for (const Tensor& t : run_plan(plan, step.arguments())) on_host(t);
    });
  }

  static SumStep two() { return {.devices = gpus(2)}; }

  // After a failure everything works as before.
  void works_again(const SumStep& step, Plan& plan) const {
    kNccl->begin("");
    reset();
    expect_sums(step, plan);
    EXPECT_EQ(kNccl->communicators(), communicators_) << "the old are gone";
  }

 private:
  long communicators_ = 0;
};

TEST_F(NcclFaults, ASumThatNeverEndsIsGivenUpInTime) {
  const SumStep step = two();
  const auto plan = step.plan();
  expect_sums(step, *plan);
  kNccl->begin("hang=sum");
  const std::string message = failure<errors::DeadlineExceeded>(step, *plan);
  EXPECT_TRUE(says(message, "the sum of GPU:0, GPU:1 by NCCL (5 elements of "));
  EXPECT_TRUE(says(message, "has not ended within 2 s; all of them are in"));
  EXPECT_TRUE(says(message, "BERTH_COLLECTIVES=own"));
  EXPECT_TRUE(says(message, "BERTH_NCCL_TIMEOUT"));
  works_again(step, *plan);
}

TEST_F(NcclFaults, CommunicatorsThatAreNotMadeAreGivenUpInTime) {
  kNccl->begin("hang=init");
  const SumStep step{.devices = {gpu_name(3), gpu_name(2)}};
  const auto plan = step.plan();
  const std::string message = failure<errors::DeadlineExceeded>(step, *plan);
  EXPECT_TRUE(says(message, "the sum of GPU:3, GPU:2 by NCCL"));
  EXPECT_TRUE(says(message, "ncclCommInitRankConfig has not ended within 2 s"));
  kNccl->begin("");
  reset();
  expect_sums(step, *plan);
}

TEST_F(NcclFaults, ACallThatStaysUnderWayIsGivenUpInTime) {
  const SumStep step = two();
  const auto plan = step.plan();
  kNccl->begin("hang=call");
  EXPECT_TRUE(says(failure<errors::DeadlineExceeded>(step, *plan),
                   "ncclAllReduce has not ended within 2 s"));
  works_again(step, *plan);
}

TEST_F(NcclFaults, ACallThatDoesNotReturnHoldsNobodyUp) {
  const SumStep step = two();
  const auto plan = step.plan();
  expect_sums(step, *plan);
  kNccl->begin("hang=ncclGroupEnd");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(says(failure<errors::DeadlineExceeded>(step, *plan),
                     "a call of NCCL does not return"));
    reset();
  }
  works_again(step, *plan);
}

TEST_F(NcclFaults, WhatNcclReportsLaterFailsTheSum) {
  const SumStep step = two();
  const auto plan = step.plan();
  expect_sums(step, *plan);
  kNccl->begin("async=2:6");
  expect_sums(step, *plan);
  EXPECT_TRUE(says(failure<errors::Aborted>(step, *plan),
                   "remote process exited or there was a network error (6)"));
  works_again(step, *plan);
}

// Fails each call that the second of two sums makes, and those that make
// communicators.
TEST_F(NcclFaults, OneOfEachCallIsNamed) {
  const SumStep step = two();
  const auto plan = step.plan();
  for (const char* call :
       {"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclGroupStart",
        "ncclGroupEnd", "ncclAllReduce", "ncclCommGetAsyncError"}) {
    for (long at = 1; at <= 4; ++at) {
      // Communicators must be made again.
      kNccl->begin("async=1:6");
      failure<errors::Aborted>(step, *plan);
      reset();
      const std::string fake = fmt::format("fail={}@{}:1", call, at);
      SCOPED_TRACE(fake);
      kNccl->begin(fake.c_str());
      try {
        for (int i = 0; i < 2; ++i) expect_sums(step, *plan);
        EXPECT_LT(kNccl->calls(call), at);
      } catch (const errors::Aborted& e) {
        EXPECT_TRUE(says(e.what(), call));
        EXPECT_TRUE(says(e.what(), "unhandled cuda error (1)"));
        EXPECT_TRUE(says(e.what(), "GPU:0, GPU:1"));
      }
      works_again(step, *plan);
    }
  }
}

// When one device does not reach its sum, later runs must not join it.
TEST_F(NcclFaults, ARunThatWasCutShortLeavesNothingBehind) {
  const SumStep step = two();
  const auto plan = step.plan();
  for (const int failing : {0, 1}) {
    Work work;
    work.what = "Test";
    work.run = [](void*, Stream&) { throw errors::Internal("on purpose"); };
    gpu(failing).compute_stream().launch(work);
    const Tensors args = step.arguments();
    EXPECT_TRUE(says(message_of<errors::Error>([&] {
                       for (const Tensor& t : run_plan(*plan, args)) {
                         on_host(t);
                       }
                     }),
                     failing == 0 ? "on purpose" : "GPU:0"));
    EXPECT_EQ(kNccl->sums(), 0) << "not all have come";
    reset();
    kNccl->begin("");
    expect_sums(step, *plan);
    kNccl->begin("");
  }
}

// The stream of an arrived device failed before the end of its sum, so the next
// device to arrive must not join it.
TEST_F(NcclFaults, WhoWasFollowedBySkippedWorkHasNotCome) {
  const auto stream = [](int i) -> gpu::QueueStream& {
    return static_cast<gpu::QueueStream&>(gpu(i).compute_stream());
  };
  const auto member = [](int i) {
    NcclMember m;
    m.card =
        static_cast<CudaCard*>(&static_cast<gpu::GpuDevice&>(gpu(i)).card());
    m.device = gpu(i).short_name();
    return m;
  };
  NcclMeeting meeting;
  const NcclMeeting::Call call{
      .group = 1, .ranks = 2, .what = "test", .count = 4, .timeout_seconds = 1};
  const uint64_t before = stream(1).skipped();
  meeting.come(call, 1, member(1), stream(1));
  Work work;
  work.what = "Test";
  work.run = [](void*, Stream&) { throw errors::Internal("on purpose"); };
  stream(1).launch(work);
  finish(stream(1).record());
  stream(1).launch(work);
  EXPECT_GT(stream(1).skipped(), before);
  meeting.come(call, 0, member(0), stream(0));
  EXPECT_TRUE(
      says(message_of<errors::Aborted>([&] { meeting.leave(1, 0); }),
           "did not begin for rank 0, since what came before it on rank 1"));
  EXPECT_EQ(kNccl->calls("ncclAllReduce"), 0);
}

// The step's deadline also applies to the sum, so that resetting the devices
// does not wait longer.
TEST_F(NcclFaults, TheDeadlineOfTheStepHolds) {
  SumStep step{.devices = {gpu_name(0), gpu_name(2)}, .timeout_seconds = 2};
  const auto plan = step.plan();
  expect_sums(step, *plan);
  kNccl->begin("hang=sum");
  EXPECT_TRUE(says(failure<errors::DeadlineExceeded>(step, *plan),
                   "has not ended within 2 s"));
  kNccl->begin("");
  reset();
  expect_sums(step, *plan);
}

TEST_F(NcclFaults, TheDeadlineOfAStrategyHolds) {
  using namespace distribute;
  const MirroredStrategy strategy(gpus(2),
                                  {.communication = {.timeout_seconds = 2}});
  const auto x = on_cards({{1, 2}, {30, 40}});
  const auto add = [&] {
    return strategy.run(
        [](const Tensor& v) {
          return get_replica_context()->all_reduce(ReduceOp::kSum, v);
        },
        x);
  };
  kNccl->begin("hang=sum");
  EXPECT_TRUE(says(message_of<errors::DeadlineExceeded>([&] { add(); }),
                   "has not ended within 2 s"));
  kNccl->begin("");
  reset();
  EXPECT_EQ(on_host(add().values()[1]), (std::vector<float>{31, 42}));
}

class NcclDeathTest : public CudaTest {};

void use_cards(const char* nccl, int cards = 2) {
  kFake->begin(fmt::format("devices={}", cards).c_str());
  kNccl->begin(nccl);
  DeviceManager::get();
}

SumStep on_two() { return {.devices = {gpu_name(0), gpu_name(1)}}; }

void never_stopped() {
  use_cards("hang=sum,hang=abort");
  const SumStep step = on_two();
  const auto plan = step.plan();
  for (int i = 0; i < 2; ++i) {
    fresh_process::refuses<errors::Unavailable>(
        [&] {
          for (const Tensor& t : run_plan(*plan, step.arguments())) on_host(t);
        },
        "the device is closed until the process ends");
  }
}

TEST_F(NcclDeathTest, WhatCannotBeStoppedClosesTheDevices) {
  IN_A_FRESH_PROCESS(never_stopped());
}

TEST_F(NcclDeathTest, AProcessLeavesWhileASumHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        use_cards("hang=sum,hang=abort");
        const SumStep step = on_two();
        run_plan(*step.plan(), step.arguments());
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

void parts_of_one_card() {
  kFake->begin("devices=2");
  config::set_logical_device_configuration(
      config::list_physical_devices("GPU")[0],
      {{.memory_limit_mb = 100}, {.memory_limit_mb = 100}});
  const SumStep one{.devices = {gpu_name(0), gpu_name(1)}};
  check(count_ops(*one.plan())["_AllReduceStart"] == 0, "one card");
  const SumStep two{.devices = {gpu_name(0), gpu_name(2)}};
  check(count_ops(*two.plan())["_AllReduceStart"] == 2, "two cards");
}

TEST_F(NcclDeathTest, PartsOfOneCardAddByCopies) {
  IN_A_FRESH_PROCESS(parts_of_one_card());
}

}  // namespace
}  // namespace berth::cuda
