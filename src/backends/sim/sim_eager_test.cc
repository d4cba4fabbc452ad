// Eager execution on simulated devices: equal to the CPU, under any order that
// events allow.

#include <gtest/gtest.h>

#include <thread>

#include "backends/sim/sim_testing.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/variable.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::sim {
namespace {

using Floats = std::vector<float>;

Tensor values(const Floats& v, const Shape& shape) {
  return constant(std::span<const float>(v), shape);
}

// Computes a little of everything on `device`.
Floats compute_on(const char* device) {
  const auto on = berth::device(device);
  const Tensor a = values({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = values({2, -1, 0, 3, 1, 5}, {3, 2});
  const Tensor c = math::add(matmul(a, b), constant(0.5f));
  Floats out = c.to_vector<float>();
  for (float f : math::reduce_sum(c, {.axis = {{0}}}).to_vector<float>()) {
    out.push_back(f);
  }
  return out;
}

TEST(SimEager, GivesTheNumbersOfTheCpu) {
  const Clean clean;
  // [[5, 20], [14, 41]] by hand, plus a half.
  const Floats expected = {5.5f, 20.5f, 14.5f, 41.5f, 20, 62};
  EXPECT_EQ(compute_on("/CPU:0"), expected);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    set_seed(gpu(0), seed);
    EXPECT_EQ(compute_on("/GPU:0"), expected);
    EXPECT_EQ(compute_on("/GPU:1"), expected);
  }
}

// Counts `part` in `text`.
size_t times(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

TEST(SimEager, AnIndexOutOfRangeNamesOpAndLineOnceAndHowToReset) {
  const Clean clean;
  const auto on = berth::device("/GPU:0");
  const Tensor x = values({1, 2, 3}, {3});
  const auto expect_told = [](const std::string& m) {
    EXPECT_EQ(times(m, "GatherV2"), 1u) << m;
    EXPECT_EQ(times(m, "sim_eager_test.cc:"), 1u) << m;
    EXPECT_TRUE(says(m, "index 7 at place 0"));
    EXPECT_TRUE(says(m, "config::reset_device_error(\"GPU:0\")"));
  };
  const Tensor bad = gather(x, constant({7}));
  expect_told(
      message_of<errors::InvalidArgument>([&] { bad.to_vector<float>(); }));
  config::reset_device_error("GPU:0");
  const auto traced = function(
      [](const Tensor& t, const Tensor& i) { return gather(t, i) * 2.0; });
  expect_told(message_of<errors::InvalidArgument>(
      [&] { traced(x, constant({7})).to_vector<float>(); }));
  config::reset_device_error("GPU:0");
  EXPECT_EQ(traced(x, constant({2})).to_vector<float>(), Floats{6});
}

TEST(SimEager, AResultWithoutElementsWaitsToo) {
  const Clean clean;
  const auto on = berth::device("/GPU:0");
  const Tensor x = values({}, {3, 0});
  const Tensor bad = gather(x, constant({7}));
  EXPECT_EQ(bad.shape(), Shape({1, 0}));
  EXPECT_THROW(bad.to_vector<float>(), errors::InvalidArgument);
  // Results computed from it on the host or another device fail, too.
  for (const char* where : {"/CPU:0", "/GPU:1"}) {
    const auto there = berth::device(where);
    EXPECT_THROW((bad * 2.0).to_vector<float>(), errors::InvalidArgument)
        << where;
  }
}

TEST(SimEager, TensorsTravelBetweenAllDevices) {
  const Clean clean;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    set_seed(gpu(0), seed);
    Tensor x;
    {
      const auto on = berth::device("/GPU:0");
      x = values({1, 2, 3}, {3});
    }
    for (const char* device :
         {"/GPU:1", "/CPU:0", "/GPU:1", "/GPU:0", "/GPU:1", "/GPU:0"}) {
      const auto on = berth::device(device);
      x = math::add(x, x);
      EXPECT_TRUE(says(x.backing_device(), device + 1));
    }
    EXPECT_EQ(x.to_vector<float>(), (Floats{64, 128, 192})) << seed;
  }
}

TEST(SimEager, AMissingKernelIsAnErrorThatListsWhoHasOne) {
  const auto on = berth::device("/GPU:1");
  const Tensor x = values({1.5f}, {1});
  config::set_soft_device_placement(false);
  const std::string m =
      message_of<errors::Unimplemented>([&] { math::floor(x); });
  config::set_soft_device_placement(true);
  EXPECT_TRUE(says(m, "Floor"));
  EXPECT_TRUE(says(m, "GPU:1"));
  EXPECT_TRUE(says(m, "these devices have one: CPU:0"));
}

TEST(SimEager, AnOpWithoutKernelAndScopeGoesWhereThereIsOne) {
  const Tensor y = math::floor(values({1.5f}, {1}));
  EXPECT_TRUE(says(y.device(), "CPU:0"));
  EXPECT_EQ(y.item<float>(), 1);
}

TEST(SimEager, AFailureReachesTheReaderWithOpAndLine) {
  const Clean clean;
  const auto on = berth::device("/GPU:0");
  const Tensor x = values({1, 2}, {2});
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2}));
  fail_launch(gpu(0), 1);
  const Tensor bad = math::add(x, x);
  const Tensor follower = math::multiply(bad, x);
  const std::string m =
      message_of<errors::Internal>([&] { follower.to_vector<float>(); });
  EXPECT_TRUE(says(m, "failed on GPU:0 (sim_eager_test.cc:"));
  gpu(0).reset_error();
  EXPECT_EQ(math::add(x, x).to_vector<float>(), (Floats{2, 4}));
  EXPECT_THROW(bad.to_vector<float>(), errors::Internal);
  EXPECT_THROW(math::add(bad, x).to_vector<float>(), errors::Internal);
}

TEST(SimEager, QueuedWorkDoesNotKeepALoopFromRunning) {
  const Clean clean;
  const auto on = berth::device("/GPU:0");
  constexpr int kSize = 300'000;
  out_of_memory_at(gpu(0), 40 << 20);
  Tensor x = values(Floats(kSize), {kSize});  // 1.2 MB
  for (int i = 0; i < 100; ++i) x = math::add(x, constant(1.0f));
  EXPECT_EQ(math::reduce_max(x).item<float>(), 100);
}

TEST(SimVariable, SnapshotsKeepTheirValueUnderEverySeed) {
  const Clean clean;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    set_seed(gpu(0), seed);
    const auto on = berth::device("/GPU:0");
    const Variable v(values({1, 2}, {2}));
    const Tensor before = v.value();
    const Tensor doubled = math::add(v, v);
    v.assign_add(values({10, 10}, {2}));
    const Tensor after = v.value();
    v.assign(values({7, 7}, {2}));
    EXPECT_EQ(before.to_vector<float>(), (Floats{1, 2})) << seed;
    EXPECT_EQ(doubled.to_vector<float>(), (Floats{2, 4})) << seed;
    EXPECT_EQ(after.to_vector<float>(), (Floats{11, 12})) << seed;
    EXPECT_EQ(v.value().to_vector<float>(), (Floats{7, 7})) << seed;
  }
}

// `from` holds a variable; `to` reads it while `from` goes on writing it.
void read_elsewhere(const char* from, const char* to) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    set_seed(gpu(0), seed);
    const Variable v(with_device(from, [] { return values({1}, {1}); }));
    Tensor sum = with_device(to, [] { return values({0}, {1}); });
    for (int i = 0; i < 5; ++i) {
      sum = with_device(to, [&] { return math::add(sum, v); });
      v.assign_add(with_device(from, [] { return values({1}, {1}); }));
    }
    EXPECT_EQ(sum.item<float>(), 15) << from << " " << to << " " << seed;
    EXPECT_EQ(v.value().item<float>(), 6);
  }
}

TEST(SimVariable, AWriteWaitsForReadersOnOtherDevices) {
  const Clean clean;
  read_elsewhere("/GPU:0", "/GPU:1");
  read_elsewhere("/CPU:0", "/GPU:1");
  read_elsewhere("/GPU:1", "/CPU:0");
}

TEST(SimVariable, AReadThatIsQueuedDoesNotMakeTheWriterCopy) {
  const Clean clean;
  const auto on = berth::device("/GPU:0");
  const Variable v(values(Floats(1 << 20, 1), {1 << 20}));
  Tensor y = math::add(v, constant(1.0f));
  synchronize(gpu(0).compute_stream().record());
  const size_t before = gpu(0).allocator().info().current_bytes;
  const Tensor delta = values(Floats(1 << 20), {1 << 20});
  y = math::add(v, constant(1.0f));
  v.assign_add(delta);
  synchronize(gpu(0).compute_stream().record());
  // Only the delta is new.
  EXPECT_LE(gpu(0).allocator().info().current_bytes, before + (5 << 20));
}

TEST(SimMemory, ADroppedTensorDoesNotCountThoughItsWorkStillWaits) {
  const Clean clean;
  const auto in_use = [] {
    return config::get_memory_info("/GPU:0").current_bytes;
  };
  const size_t before = in_use();
  const auto on = berth::device("/GPU:0");
  for (int i = 0; i < 20; ++i) {
    {
      const Tensor x = zeros({1 << 20});
      EXPECT_GE(in_use(), before + (4 << 20));
    }
    { const Tensor y = zeros({1 << 20}) + 1.0f; }
    EXPECT_EQ(in_use(), before) << i;
  }
  { const Tensor z = zeros({1 << 20}) + 1.0f; }
  config::reset_memory_stats("/GPU:0");
  EXPECT_LE(config::get_memory_info("/GPU:0").peak_bytes, before + (64 << 10));
}

TEST(SimVariable, AnUpdateThatWasNotLaunchedLeavesItsValue) {
  const Clean clean;
  const auto on = berth::device("/GPU:0");
  const Variable v(values({1, 2}, {2}));
  const Tensor one = values({1, 1}, {2});
  synchronize(gpu(0).compute_stream().record());
  fail_launch(gpu(0), 1);
  v.assign_add(one);
  EXPECT_THROW(v.value().to_vector<float>(), errors::Internal);
  gpu(0).reset_error();
  // A launch that failed has written nothing.
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{1, 2}));
  v.assign_add(one);
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{2, 3}));
}

TEST(SimVariable, ThreadsShareVariablesAcrossDevices) {
  const Clean clean;
  const Variable a(with_device("/GPU:0", [] { return values({0}, {1}); }));
  const Variable b(with_device("/GPU:1", [] { return values({0}, {1}); }));
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const Variable& mine = t == 0 ? a : b;
      const Variable& other = t == 0 ? b : a;
      const char* device = t == 0 ? "/GPU:0" : "/GPU:1";
      const auto on = berth::device(device);
      const Tensor one = values({1}, {1});
      for (int i = 0; i < 200; ++i) {
        const Tensor snapshot = other.value();
        mine.assign_add(one);
        const float seen = math::add(snapshot, one).item<float>();
        EXPECT_GE(seen, 1);
        EXPECT_LE(seen, 201);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(a.value().item<float>(), 200);
  EXPECT_EQ(b.value().item<float>(), 200);
}

TEST(SimVariable, ThreadsReadAndWriteOneVariable) {
  const Clean clean;
  const auto device = "/GPU:0";
  const Variable v(with_device(device, [] { return values({0, 0}, {2}); }));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const auto on = berth::device(t == 2 ? "/GPU:1" : device);
      const Tensor one = values({1, 1}, {2});
      for (int i = 0; i < 200; ++i) {
        if (t == 0) {
          v.assign_add(one);
        } else {
          const Floats f = v.value().to_vector<float>();
          EXPECT_EQ(f[0], f[1]);
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{200, 200}));
}

TEST(SimEager, StringsStayOnTheHost) {
  const Clean clean;
  const Tensor t = constant({"a", "b"});  // whatever the default device
  EXPECT_EQ(math::equal(t, constant("b")).to_vector<bool>(),
            (std::vector<bool>{false, true}));
  const auto on = berth::device("/GPU:0");
  EXPECT_TRUE(says(constant({"a"}).backing_device(), "CPU:0"));
  // With soft placement the host computes it.
  EXPECT_TRUE(says(identity(t).backing_device(), "CPU:0"));
  EXPECT_EQ(math::equal(t, t).to_vector<bool>(),
            (std::vector<bool>{true, true}));
  config::set_soft_device_placement(false);
  EXPECT_THROW(identity(t), errors::Unimplemented);
  EXPECT_THROW(math::equal(t, t), errors::Unimplemented);
  config::set_soft_device_placement(true);
}

TEST(SimEager, StringsOfAFunctionStayOnTheHost) {
  const Clean clean;
  const auto make = [] {
    return function([](const Tensor& t) {
      Tensor same;
      {
        const auto on = berth::device("/CPU:0");
        same = reshape(t, {1, 2});
      }
      const auto on = berth::device("/GPU:0");
      return reshape(same, {2, 1});
    });
  };
  const Tensor t = constant({"a", "b"});
  const Tensor y = make()(t);
  EXPECT_TRUE(says(y.backing_device(), "CPU:0"));
  EXPECT_EQ(y.to_vector<std::string>(), (std::vector<std::string>{"a", "b"}));
  config::set_soft_device_placement(false);
  EXPECT_THROW(make()(t), errors::Error);
  config::set_soft_device_placement(true);
}

TEST(SimEager, ComputesInTheNarrowAndComplexDtypes) {
  const Clean clean;
  const auto on = berth::device("/GPU:0");
  const Tensor z = constant({std::complex<float>(3, 4)});
  EXPECT_EQ(z.backing_device(), z.device());
  EXPECT_EQ(math::abs(z * 2.0).item<float>(), 10.f);
  EXPECT_EQ((constant({bfloat16_t(1.5f)}) + 1.0).item<float>(), 2.5f);
}

}  // namespace
}  // namespace berth::sim
