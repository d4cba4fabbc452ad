// Strategies: their devices, shares, scopes and errors.

#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "distribute/data_parallel/shares.h"
#include "distribute/strategy/strategy_core.h"
#include "distribute/strategy/strategy_testing.h"
#include "tensor/variable_state.h"

namespace berth::distribute {
namespace {

using fresh_process::check;
using fresh_process::refuses;
using NamesOfReplicas = std::vector<std::vector<std::string>>;
using Counts = std::vector<int64_t>;

void two_cpus() { two(false); }

std::string full(const std::string& device) {
  return "/job:localhost/replica:0/task:0/device:" + device;
}

TEST(Shares, EvenPartsDifferByOneAndTheLargerComeLast) {
  EXPECT_EQ(even_parts(7, 3), (Counts{2, 2, 3}));
  EXPECT_EQ(even_parts(8, 3), (Counts{2, 3, 3}));
  EXPECT_EQ(even_parts(1, 4), (Counts{0, 0, 0, 1}));
  EXPECT_EQ(even_parts(0, 2), (Counts{0, 0}));
}

TEST(Shares, SlicesFollowWeights) {
  EXPECT_EQ(slices_by_weight({1, 3}, 32), (std::vector<int>{8, 24}));
  EXPECT_EQ(slices_by_weight({1, 1, 1}, 32), (std::vector<int>{11, 11, 10}));
  EXPECT_EQ(slices_by_weight({1, 0}, 4), (std::vector<int>{4, 0}));
  EXPECT_EQ(slices_by_weight({1, 1e9}, 32), (std::vector<int>{1, 31}));
  EXPECT_EQ(slices_by_weight({1, 1, 1e9}, 3), (std::vector<int>{1, 1, 1}));
}

TEST(Shares, ExamplesOfSlicesAddUpToTheBatch) {
  SplitPlan plan;
  plan.replicas = {{"/device:CPU:0"}, {"/device:CPU:1"}};
  plan.slices = 4;
  plan.shares = {1, 3};
  EXPECT_EQ(examples_of(plan, 8), (Counts{2, 6}));
  EXPECT_EQ(examples_of(plan, 2), (Counts{1, 1}));  // two slices
  EXPECT_EQ(examples_of(plan, 7), (Counts{1, 6}));
  plan.shares = {};
  EXPECT_EQ(examples_of(plan, 8), (Counts{4, 4}));
}

TEST(Strategy, MirrorsOnAllCpusWhenThereAreNoGpus) {
  IN_A_FRESH_PROCESS({
    two_cpus();
    const MirroredStrategy s;
    check(s.num_replicas_in_sync() == 2, "two replicas");
    check(s.devices() == NamesOfReplicas{{full("CPU:0")}, {full("CPU:1")}},
          "names");
    check(s.examples(5) == Counts{2, 3}, "examples");
    check(s.name() == "MirroredStrategy", "name");
  });
}

TEST(Strategy, MirrorsOnAllGpusWhenThereAreSome) {
  IN_A_FRESH_PROCESS({
    test::use_gpus(2);
    check(MirroredStrategy().devices() ==
              NamesOfReplicas{{full("GPU:0")}, {full("GPU:1")}},
          "the GPUs");
    // Every way to name a device.
    const MirroredStrategy s({"/physical_device:GPU:1", full("GPU:0")});
    check(s.devices() == NamesOfReplicas{{full("GPU:1")}, {full("GPU:0")}},
          "in order");
    check(MirroredStrategy({"GPU:1", "/CPU:0"}).num_replicas_in_sync() == 2,
          "mixed");
    check(OneDeviceStrategy("gpu:1").devices() ==
              NamesOfReplicas{{full("GPU:1")}},
          "one device");
  });
}

TEST(Strategy, RefusesDevicesThatThereAreNotOrThatComeTwice) {
  SKIP_ON_GPUS_OF_MACHINE("its messages name simulated devices");
  IN_A_FRESH_PROCESS({
    test::use_gpus(2);
    refuses<errors::InvalidArgument>(
        [] {
          MirroredStrategy s({"GPU:0", "GPU:7"});
        },
        "there is no device \"GPU:7\"");
    refuses<errors::InvalidArgument>(
        [] { MirroredStrategy s({"GPU:7"}); },
        "CPU:0, GPU:0 (simulated), GPU:1 (simulated)");
    refuses<errors::InvalidArgument>(
        [] {
          MirroredStrategy s({"/GPU:0", "/physical_device:GPU:0"});
        },
        "expected each device once");
    refuses<errors::InvalidArgument>(
        [] { MirroredStrategy s({"/physical_device:GPU:2"}); },
        "there is no device");
    refuses<errors::InvalidArgument>([] { MirroredStrategy s({""}); },
                                     "there is no device");
  });
}

TEST(Strategy, APhysicalDeviceThatIsCutNeedsAPart) {
  SKIP_ON_GPUS_OF_MACHINE("it configures the devices itself");
  IN_A_FRESH_PROCESS({
    test::use_gpus(2);
    const auto gpus = config::list_physical_devices("GPU");
    config::set_logical_device_configuration(
        gpus[0], {{.memory_limit_mb = 64}, {.memory_limit_mb = 64}});
    refuses<errors::InvalidArgument>(
        [] { MirroredStrategy s({"/physical_device:GPU:0"}); },
        "\"GPU:0\", \"GPU:1\"");
    check(OneDeviceStrategy("/physical_device:GPU:1").devices() ==
              NamesOfReplicas{{full("GPU:2")}},
          "the parts of GPU:0 come first");
  });
}

TEST(Strategy, ReplicasThatSpanDevicesNeedADivisibleNumber) {
  IN_A_FRESH_PROCESS({
    test::use_gpus(4);
    const MirroredStrategy s({.devices_per_replica = 2});
    check(s.devices() == NamesOfReplicas{{full("GPU:0"), full("GPU:1")},
                                         {full("GPU:2"), full("GPU:3")}},
          "pairs");
    for (int n : {0, 3, -1}) {
      refuses<errors::InvalidArgument>(
          [&] { MirroredStrategy bad({.devices_per_replica = n}); },
          "4 devices (GPU:0, GPU:1, GPU:2, GPU:3), devices_per_replica is");
    }
  });
}

TEST(Strategy, ChecksSharesAndSlices) {
  IN_A_FRESH_PROCESS({
    two_cpus();
    const auto with = [](Shares shares, int slices) {
      return MirroredStrategy({.shares = shares, .slices = slices});
    };
    for (const Shares& bad :
         {Shares{1.0}, Shares{1.0, -1.0}, Shares{0.0, 0.0},
          Shares{1.0, std::numeric_limits<double>::infinity()}}) {
      refuses<errors::InvalidArgument>([&] { with(bad, 0); },
                                       "there are 2 replicas");
    }
    for (int n : {1, -4, 33}) {
      refuses<errors::InvalidArgument>([&] { with({}, n); }, "expected 2 to");
    }
    const auto s = with({1.0, 3.0}, 0);
    check(s.core()->slices() == 32, "fine slices");
    check(s.core()->shares() == std::vector<int>{8, 24}, "by weight");
    check(s.examples(64) == Counts{16, 48}, "examples");
    check(with(Auto, 0).core()->slices() == 32, "automatic");
    check(with({}, 0).core()->slices() == 0, "equal");
    // Shares move; the same ones have the same key.
    const uint64_t key = s.core()->shares_key();
    s.core()->set_shares({16, 16});
    check(s.core()->shares_key() != key, "moved");
    check(s.examples(64) == Counts{32, 32}, "moved");
    s.core()->set_shares({8, 24});
    check(s.core()->shares_key() == key, "back");
    for (const std::vector<int>& bad :
         {std::vector<int>{8, 8}, {40, -8}, {32}, {}}) {
      refuses<errors::InvalidArgument>([&] { s.core()->set_shares(bad); },
                                       "32 slices in all");
    }
  });
}

TEST(Strategy, ScopesNestAndKnowTheirStrategy) {
  IN_A_FRESH_PROCESS({
    two_cpus();
    const MirroredStrategy s;
    const OneDeviceStrategy other("CPU:1");
    check(!has_strategy() && !in_cross_replica_context(), "none");
    check(get_strategy().name() == "OneDeviceStrategy", "the default");
    {
      const auto outer = s.scope();
      const auto inner = s.scope();
      check(has_strategy() && in_cross_replica_context(), "open");
      check(get_strategy().core() == s.core(), "this one");
      check(!get_replica_context(), "not in a replica");
      refuses<errors::FailedPrecondition>(
          [&] { const auto wrong = other.scope(); },
          "expected one strategy at a time");
    }
    check(!has_strategy(), "closed");
    const auto now = other.scope();
    check(get_strategy().core() == other.core(), "the other");
  });
}

TEST(Strategy, VariablesLiveWhereTheStrategySays) {
  IN_A_FRESH_PROCESS({
    test::use_gpus(2);
    const auto made_in = [](const Strategy& s) {
      const auto scope = s.scope();
      return Variable(ones({2}));
    };
    const MirroredStrategy mirrored({"GPU:1", "GPU:0"});
    check(made_in(mirrored).device() == full("GPU:1"), "replica 0");
    check(made_in(OneDeviceStrategy("GPU:1")).device() == full("GPU:1"), "one");
    check(made_in(CentralStorageStrategy()).device() == full("CPU:0"), "host");
    check(made_in(CentralStorageStrategy({.devices = {"GPU:1"}})).device() ==
              full("GPU:1"),
          "the only device");
    const Variable v = made_in(mirrored);
    check(variable_state(v.handle()).strategy == mirrored.core().get(),
          "adopted");
    check(variable_state(Variable(ones({2})).handle()).strategy == nullptr,
          "not adopted");
  });
}

TEST(Strategy, DeviceScopesAreOverriddenWithALint) {
  IN_A_FRESH_PROCESS({
    test::use_gpus(2);
    debugging::set_diagnostic_handler([](const debugging::Diagnostic&) {});
    const MirroredStrategy s;
    const auto scope = s.scope();
    for (int i = 0; i < 3; ++i) {
      const auto on = berth::device("/GPU:1");
      check(Variable(ones({2})).device() == full("GPU:0"), "overridden");
    }
    const auto counts = debugging::diagnostic_counts();
    check(counts.at("strategy-scope-ignored") == 3, "counted");
    const auto on = berth::device("/GPU:0");
    check(Variable(ones({2})).device() == full("GPU:0"), "the same");
    check(debugging::diagnostic_counts() == counts, "nothing is ignored");
  });
}

TEST(Strategy, ScopesNameDevicesOfTheReplicaByNumber) {
  IN_A_FRESH_PROCESS({
    test::use_gpus(4);
    const MirroredStrategy s({.devices = {"GPU:2", "GPU:3", "GPU:0", "GPU:1"},
                              .devices_per_replica = 2});
    const auto scope = s.scope();
    const auto home = [](const char* name) {
      const auto on = berth::device(name);
      return Variable(ones({2})).device();
    };
    check(home("/GPU:0") == full("GPU:2"), "first of the replica");
    check(home("/GPU:1") == full("GPU:3"), "second of the replica");
    check(Variable(ones({2})).device() == full("GPU:2"), "no scope");
    refuses<errors::InvalidArgument>([&] { home("/GPU:2"); },
                                     "a replica of the MirroredStrategy has");
  });
}

TEST(InputContext, DividesTheGlobalBatch) {
  const InputContext c{.num_replicas_in_sync = 4};
  EXPECT_EQ(c.get_per_replica_batch_size(64), 16);
  EXPECT_THROW(c.get_per_replica_batch_size(66), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::distribute
