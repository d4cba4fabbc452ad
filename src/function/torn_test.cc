// What a failed step leaves: variables that it had begun to write are torn,
// all others are as they were.

#include <gtest/gtest.h>

#include "backends/sim/faults.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "function/sim_testing.h"

namespace berth {
namespace {

struct TornCase {
  const char* name;
  const char* device;
};
std::ostream& operator<<(std::ostream& out, const TornCase& c) {
  return out << c.name;
}

class Torn : public testing::TestWithParam<TornCase> {
 protected:
  // A table of three rows, and variables at 1.
  Torn()
      : on_(device(GetParam().device)),
        table_(ones({3, 2})),
        early_(ones({2}), {.name = "early"}),
        late_(ones({2}), {.name = "late"}) {}

  template <class Fn>
  void fails(Fn&& fn) {
    EXPECT_THROW(
        {
          fn();
          for (Device* d : DeviceManager::get().devices()) {
            synchronize(d->compute_stream().record());
          }
        },
        errors::InvalidArgument);
    for (Device* d : DeviceManager::get().devices()) d->reset_error();
  }
  static float value(const Variable& v) {
    return v.value().to_vector<float>()[0];
  }
  static Tensor row(float x) { return fill({2}, x); }

  DeviceGuard on_;
  Variable table_, early_, late_;
};

TEST_P(Torn, NothingIsWhenAnOpFailsThatNeedsNoUpdate) {
  auto step = function([&](const Tensor& i) {
    early_.assign_add(row(1));  // before it, in the program
    const Tensor found = gather(table_, i);
    late_.assign(math::reduce_sum(found, {.axis = 0}));
    table_.assign_sub(found);
    return found;
  });
  step(constant({0, 1, 2}));
  EXPECT_EQ(value(early_), 2);
  EXPECT_EQ(value(late_), 3);
  fails([&] { step(constant({0, 7, 2})); });
  EXPECT_EQ(value(early_), 2);
  EXPECT_EQ(value(late_), 3);
  EXPECT_EQ(value(table_), 0);
  step(constant({0, 1, 2}));  // and goes on
  EXPECT_EQ(value(early_), 3);
}

TEST_P(Torn, WhatWasWrittenBeforeTheOpThatFailedIs) {
  auto step = function([&](const Tensor& i) {
    early_.assign_add(row(1));
    // It needs what was written: the check cannot come first.
    const Tensor at = i + math::cast(early_.value()[0], int32) - 2;
    const Tensor found = gather(table_, at);
    late_.assign(math::reduce_sum(found, {.axis = 0}));
    return found;
  });
  step(constant({0, 1, 2}));
  fails([&] { step(constant({0, 1, 2})); });
  EXPECT_THROW(value(early_), errors::FailedPrecondition);
  EXPECT_EQ(value(late_), 3);
  early_.assign(row(1));
  step(constant({0, 1, 2}));
  EXPECT_EQ(value(early_), 2);
}

TEST_P(Torn, StaysSoUntilARunSucceeds) {
  auto overwrite = function([&](const Tensor& i) {
    const Tensor found = gather(table_, i);
    early_.assign(math::reduce_sum(found, {.axis = 0}));
    return found;
  });
  auto tear = function([&](const Tensor& i) {
    early_.assign_add(row(1));
    return gather(table_, i + math::cast(early_.value()[0], int32));
  });
  fails([&] { tear(constant({7})); });
  EXPECT_THROW(value(early_), errors::FailedPrecondition);
  fails([&] { overwrite(constant({7})); });
  EXPECT_THROW(value(early_), errors::FailedPrecondition);
  overwrite(constant({0, 1}));
  EXPECT_EQ(value(early_), 2);
}

TEST_P(Torn, InALoopIsWhatAnEarlierTurnWrote) {
  // Turn k looks up row k + `from`, then counts.
  auto steps = function([&](const Tensor& from) {
    return while_loop([&](const Tensor& k) { return k < 2; },
                      [&](const Tensor& k) {
                        late_.assign(gather(table_, k + from));
                        return k + 1;
                      },
                      constant(0));
  });
  fails([&] { steps(constant(5)); });
  EXPECT_EQ(value(late_), 1);
  fails([&] { steps(constant(2)); });
  EXPECT_THROW(value(late_), errors::FailedPrecondition);
  EXPECT_EQ(value(early_), 1);
}

TEST_P(Torn, NothingIsWhenAnEagerAssignmentWasSkipped) {
  fails([&] {
    const Tensor found = gather(table_, constant({9}));
    late_.assign(math::reduce_sum(found, {.axis = 0}));
  });
  EXPECT_EQ(value(late_), 1);
}

TEST_P(Torn, NothingIsOfATrainingStepWithABadLabel) {
  keras::Adam adam(0.1);
  auto step = function([&](const Tensor& label) {
    GradientTape tape;
    const Tensor loss = nn::sparse_softmax_cross_entropy_with_logits(
        label, gather(table_, label) * late_.value());
    const std::vector<Variable> weights = {table_, late_};
    adam.apply_gradients(tape.gradient(loss, weights), weights);
    return loss;
  });
  step(constant({0, 1}));
  const std::vector<float> before = table_.value().to_vector<float>();
  fails([&] { step(constant({0, 2})); });  // a row, but no class
  EXPECT_EQ(table_.value().to_vector<float>(), before);
  EXPECT_EQ(adam.iterations().value().item<int64_t>(), 1);
  step(constant({0, 1}));
  EXPECT_EQ(adam.iterations().value().item<int64_t>(), 2);
}

INSTANTIATE_TEST_SUITE_P(On, Torn,
                         testing::Values(TornCase{"CPU", "/CPU:0"},
                                         TornCase{"GPU", "/GPU:0"}),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace berth
