// Mirrors of variables in plans: which op updates them, and when.

#include "tensor/mirrors.h"

#include <gtest/gtest.h>

#include <thread>

#include "backends/sim/faults.h"
#include "backends/sim/sim.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "exec/arena_pool.h"
#include "exec/plan.h"
#include "function/compile.h"
#include "function/graph_callable.h"
#include "function/sim_testing.h"
#include "graph/tracer.h"
#include "op/dispatcher.h"
#include "place/schedule.h"
#include "tensor/tensor_impl.h"

namespace berth {
namespace {

Device& gpu(int i) {
  return DeviceManager::get().lookup(
      DeviceName::parse("/GPU:" + std::to_string(i)));
}

Variable variable_on(const char* where, float value, int64_t n = 4) {
  const auto on = device(where);
  return Variable(fill({n}, value), {.name = "v"});
}

Tensor read_op(const Tensor& handle) {
  const Tensor* in[] = {&handle};
  Tensor out;
  apply(op_named("ReadVariableOp"), in, nullptr, {&out, 1});
  return out;
}

void write_op(const char* op, const Tensor& handle, const Tensor& value) {
  const Tensor* in[] = {&handle, &value};
  apply(op_named(op), in, nullptr, {});
}

template <class Fn>
std::unique_ptr<Plan> compile(Fn&& fn) {
  Tracer tracer("step");
  const Tensor x = tracer.add_arg({{4}, float32, "x"});
  tracer.start();
  const Tensors results = fn(x);
  Graph graph = tracer.finish(results);
  place_all(graph, real_devices(), true);
  return Plan::build(std::move(graph), {});
}

Tensors run(Plan& plan, float x, size_t outputs = 1) {
  Tensors out(outputs);
  // On the host: a stream that waits for the argument waits for nothing else.
  const Tensor arg = with_device("/CPU:0", [&] { return fill({4}, x); });
  const Tensor* in[] = {&arg};
  plan.run(in, out);
  return out;
}

float first(const Tensor& t) { return t.to_vector<float>()[0]; }

uint64_t version(const Tensor& handle) {
  return variable_state(handle).version;
}

// Work in flight holds what it uses.
void finish_all() {
  for (int i = 0; i < 2; ++i) {
    Stream& stream = gpu(i).compute_stream();
    stream.synchronize(stream.record());
  }
}

// Ends all faults and errors when the test ends.
struct Clean {
  ~Clean() {
    for (int i = 0; i < 2; ++i) {
      if (gpu(i).simulated()) sim::clear_faults(gpu(i));
      gpu(i).reset_error();
    }
    seed_gpus(0);
  }
};

TEST(Mirrors, AreTheHomeWhereItsMemoryIs) {
  const Variable v = variable_on("/GPU:0", 1);
  EXPECT_EQ(mirror_of(v.handle(), gpu(0)).impl(), v.handle().impl());
  EXPECT_TRUE(mirrors_of(v.handle()).empty());
  EXPECT_FALSE(home_of(v.handle()).defined());
}

TEST(Mirrors, AreVariablesOfTheirOwnMadeOncePerDevice) {
  const Variable v = variable_on("/GPU:0", 1);
  const Tensor m = mirror_of(v.handle(), gpu(1));
  EXPECT_EQ(variable_state(m).name,
            variable_state(v.handle()).name + "/replica_1");
  EXPECT_EQ(variable_state(m).device, &gpu(1));
  EXPECT_EQ(mirror_of(v.handle(), gpu(1)).impl(), m.impl());
  EXPECT_EQ(home_of(m).impl(), v.handle().impl());
  // For a mirror, it returns the home's other mirror, or the home.
  EXPECT_EQ(mirror_of(m, gpu(0)).impl(), v.handle().impl());
  ASSERT_EQ(mirrors_of(v.handle()).size(), 1u);
  EXPECT_EQ(mirrors_of(v.handle())[0].impl(), m.impl());
}

TEST(Mirrors, OfOneHomeAndDeviceAreOneWhoeverAsksFirst) {
  const Variable v = variable_on("/GPU:0", 1);
  std::vector<Tensor> made(8);
  std::vector<std::thread> threads;
  for (Tensor& t : made) {
    threads.emplace_back([&] { t = mirror_of(v.handle(), gpu(1)); });
  }
  for (std::thread& t : threads) t.join();
  for (const Tensor& t : made) EXPECT_EQ(t.impl(), made[0].impl());
}

TEST(Mirrors, EndWithTheirHome) {
  const auto in_use = [] { return gpu(1).allocator().info().current_bytes; };
  finish_all();
  const auto before = in_use();
  {
    const Variable v = variable_on("/GPU:0", 1, 1 << 20);
    mirror_of(v.handle(), gpu(1));
    finish_all();
    EXPECT_GE(in_use(), before + (4 << 20));
  }
  EXPECT_EQ(in_use(), before);
  Tensor kept;
  {
    const Variable v = variable_on("/GPU:0", 1);
    kept = mirror_of(v.handle(), gpu(1));
    finish_all();
  }
  EXPECT_FALSE(home_of(kept).defined());
}

TEST(Mirrors, RespectTheMemoryOfTheirDevice) {
  SKIP_ON_GPUS_OF_MACHINE("it makes a device fail");
  const Clean clean;
  const Variable v = variable_on("/GPU:0", 1, 8 << 20);
  ArenaPool::get().take_idle(gpu(1));  // else they make room
  gpu(1).allocator().empty_cache();
  sim::out_of_memory_at(gpu(1), 1 << 20);
  EXPECT_THROW(mirror_of(v.handle(), gpu(1)), errors::ResourceExhausted);
  EXPECT_TRUE(mirrors_of(v.handle()).empty());
  sim::clear_faults(gpu(1));
  EXPECT_TRUE(mirror_of(v.handle(), gpu(1)).defined());
}

// A plan that reads only the mirror.
std::unique_ptr<Plan> reader(const Tensor& mirror) {
  return compile([&](const Tensor& x) {
    const auto on = device("/GPU:1");
    return Tensors{read_op(mirror) * x};
  });
}

TEST(MirrorsInPlans, AreBroughtUpToDateWhenTheHomeWasWritten) {
  const Clean clean;
  const Variable v = variable_on("/GPU:0", 3);
  const Tensor m = mirror_of(v.handle(), gpu(1));
  const auto plan = reader(m);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    seed_gpus(seed);
    // Back to back, without reading results.
    std::vector<Tensor> results;
    for (int i = 1; i <= 4; ++i) {
      v.assign(fill({4}, static_cast<float>(i)));
      results.push_back(run(*plan, 10)[0]);
      results.push_back(run(*plan, 100)[0]);
    }
    for (int i = 1; i <= 4; ++i) {
      EXPECT_EQ(first(results[2 * i - 2]), 10.0f * i) << "seed " << seed;
      EXPECT_EQ(first(results[2 * i - 1]), 100.0f * i) << "seed " << seed;
    }
  }
}

TEST(MirrorsInPlans, OfAHomeOnTheHostAreBroughtUpToDate) {
  const Clean clean;
  const Variable v = variable_on("/CPU:0", 3);
  const auto plan = reader(mirror_of(v.handle(), gpu(1)));
  EXPECT_EQ(first(run(*plan, 2)[0]), 6);
  v.assign(fill({4}, 5.0f));
  EXPECT_EQ(first(run(*plan, 2)[0]), 10);
}

TEST(MirrorsInPlans, OnTheHostAreBroughtUpToDate) {
  const Clean clean;
  const Variable v = variable_on("/GPU:0", 3);
  const Tensor m = mirror_of(v.handle(), DeviceManager::get().host());
  const auto plan = compile([&](const Tensor& x) {
    const auto on = device("/CPU:0");
    return Tensors{read_op(m) * x};
  });
  EXPECT_EQ(first(run(*plan, 2)[0]), 6);
  v.assign(fill({4}, 5.0f));
  EXPECT_EQ(first(run(*plan, 2)[0]), 10);
}

TEST(MirrorsInPlans, ThatAreFreshAreLeftAlone) {
  const Variable v = variable_on("/GPU:0", 3);
  const Tensor m = mirror_of(v.handle(), gpu(1));
  const auto plan = reader(m);
  run(*plan, 1);
  const uint64_t filled = version(m);
  for (int i = 0; i < 5; ++i) run(*plan, 1);
  EXPECT_EQ(version(m), filled);
}

// Adds x to both home and mirror; returns both.
std::unique_ptr<Plan> both(const Variable& v, const Tensor& mirror) {
  return compile([&](const Tensor& x) {
    Tensors out;
    for (const auto& [where, h] :
         {std::pair{"/GPU:0", v.handle()}, std::pair{"/GPU:1", mirror}}) {
      const auto on = device(where);
      write_op("AssignAddVariableOp", h, x);
      out.push_back(read_op(h) * 1.5f);
    }
    return out;
  });
}

TEST(MirrorsInPlans, WrittenWithTheirHomeStayFresh) {
  const Clean clean;
  const Variable v = variable_on("/GPU:0", 0);
  const Tensor m = mirror_of(v.handle(), gpu(1));
  const auto plan = both(v, m);
  run(*plan, 1, 2);
  const uint64_t filled = version(m);
  for (int i = 2; i <= 5; ++i) {
    const Tensors out = run(*plan, 1, 2);
    EXPECT_EQ(first(out[0]), 1.5f * i);
    EXPECT_EQ(first(out[1]), 1.5f * i);
  }
  EXPECT_EQ(version(m), filled + 4);  // nothing beyond its own writes
  // Another plan also finds the mirror up to date.
  const auto other = reader(m);
  EXPECT_EQ(first(run(*other, 1)[0]), 5);
  EXPECT_EQ(version(m), filled + 4);
  // Writing only the home makes it stale.
  v.assign_add(fill({4}, 1.0f));
  EXPECT_EQ(first(run(*other, 1)[0]), 6);
  EXPECT_EQ(version(m), filled + 5);
}

TEST(MirrorsInPlans, AreTornWithTheirHome) {
  SKIP_ON_GPUS_OF_MACHINE("it makes a device fail");
  const Clean clean;
  const Variable v = variable_on("/GPU:0", 0);
  const Tensor m = mirror_of(v.handle(), gpu(1));
  const auto plan = both(v, m);
  run(*plan, 1, 2);
  sim::lose_device(gpu(1), 1);
  EXPECT_THROW(first(run(*plan, 1, 2)[1]), errors::Unavailable);
  // GPU:0 has done its part; the step as a whole has failed.
  EXPECT_THROW(v.value(), errors::FailedPrecondition);
  EXPECT_THROW(run(*plan, 1, 2), errors::FailedPrecondition);
  sim::clear_faults(gpu(1));
  for (int i = 0; i < 2; ++i) gpu(i).reset_error();
  EXPECT_THROW(run(*plan, 1, 2), errors::FailedPrecondition);
  v.assign(fill({4}, 7.0f));
  const Tensors out = run(*plan, 1, 2);
  EXPECT_EQ(first(out[0]), 12);
  EXPECT_EQ(first(out[1]), 12);
}

TEST(MirrorsInPlans, AreTornWithTheirHomeAlsoWhenItsDeviceDidItsPart) {
  SKIP_ON_GPUS_OF_MACHINE("it makes a device fail");
  const Clean clean;
  const Variable v = variable_on("/GPU:0", 0);
  const Tensor m = mirror_of(v.handle(), gpu(1));
  // Nothing is sent between the devices.
  const auto plan = compile([&](const Tensor& x) {
    for (const auto& [where, h] :
         {std::pair{"/GPU:0", v.handle()}, std::pair{"/GPU:1", m}}) {
      const auto on = device(where);
      write_op("AssignAddVariableOp", h, fill({4}, 1.0f));
    }
    const auto on = device("/CPU:0");
    return Tensors{x + 1.0f};
  });
  run(*plan, 1);
  sim::fail_launch(gpu(1), 1);
  run(*plan, 1);
  Stream& other = gpu(1).compute_stream();
  EXPECT_THROW(other.synchronize(other.record()), errors::Internal);
  gpu(0).compute_stream().synchronize(gpu(0).compute_stream().record());
  EXPECT_THROW(v.value(), errors::FailedPrecondition);
}

TEST(MirrorsInPlans, KeepTheirHomeAlive) {
  std::unique_ptr<Plan> plan;
  {
    const Variable v = variable_on("/GPU:0", 3);
    plan = reader(mirror_of(v.handle(), gpu(1)));
  }
  EXPECT_EQ(first(run(*plan, 2)[0]), 6);
}

TEST(MirrorsInPlans, MayBeReadByManyThreadsWhileTheHomeIsWritten) {
  const Variable v = variable_on("/GPU:0", 1);
  const auto plan = reader(mirror_of(v.handle(), gpu(1)));
  std::vector<std::thread> threads;
  std::atomic<bool> wrong{false};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        if (t == 0) {
          v.assign(fill({4}, static_cast<float>(i % 2 + 1)));
        } else {
          const std::vector<float> r = run(*plan, 1)[0].to_vector<float>();
          // One version or the other, never a mixture.
          if (r != std::vector<float>(4, 1) && r != std::vector<float>(4, 2)) {
            wrong = true;
          }
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(wrong);
}

}  // namespace
}  // namespace berth
