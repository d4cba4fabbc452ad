// A device that fails in the middle of a step, under fit and run and every
// way to add up: the step ends in an error that names the device, within a
// bounded time; each variable is whole or torn, never half updated; after the
// device is reset and the variables restored training goes on as if nothing
// had been.

#include "backends/sim/faults.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>

#include "berth/berth.h"
#include "conformance/strategy/training.h"
#include "device/device_manager.h"

namespace berth::strategy_suite {
namespace {

using distribute::PerReplica;

enum class Fault : uint8_t { kLost, kLaunch, kMemory, kHang };
enum class Trainer : uint8_t { kFit, kRun };

struct Case {
  Row row;
  Trainer loop = Trainer::kFit;
  Fault fault = Fault::kLost;
  int victim = 0;   // GPU:victim
  uint64_t at = 1;  // launch of the step

  std::string name() const {
    static constexpr const char* kFaults[] = {"lost", "launch", "memory",
                                              "hang"};
    return std::string(loop == Trainer::kFit ? "fit_" : "run_") +
           kFaults[static_cast<int>(fault)] + "_of_GPU_" +
           std::to_string(victim) + "_at_" + std::to_string(at) + "_" +
           row.name();
  }
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name();
}

// Ends the process when the test hangs: nothing else could.
class Deadline {
 public:
  explicit Deadline(std::chrono::seconds limit)
      : thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (over_.wait_for(lock, limit, [this] { return done_; })) return;
          std::fprintf(
              stderr, "%s hangs\n",
              testing::UnitTest::GetInstance()->current_test_info()->name());
          std::_Exit(3);
        }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

// A model that trains step by step, by fit or by run.
class Trainee {
 public:
  explicit Trainee(const Case& c)
      : loop_(c.loop),
        spec_(model_named(c.row.model)),
        strategy_(strategy_of(c.row)),
        optimizer_(optimizer_named(c.row.optimizer)) {
    random::set_seed(3);
    const auto scope = strategy_.scope();
    model_.emplace(spec_.make({}));
    model_->compile({.optimizer = optimizer_, .losses = spec_.losses});
    step_.emplace(
        [this](const Tensor& x, const Tensor& y) { return replica_step(x, y); },
        FunctionOptions{.name = "replica_step"});
  }

  // One step, done when this returns.
  void step(int64_t batch = kBatch) {
    const Tensors data = data_for(spec_, batch);
    if (loop_ == Trainer::kFit) {
      model_->train_on_batch(data[0], data[1]).item<float>();
    } else {
      const auto cut = strategy_.experimental_distribute_dataset(
          data::Dataset::from_tensor_slices(data).batch(batch));
      for (const std::vector<PerReplica>& b : cut) {
        const PerReplica loss = strategy_.run(*step_, b[0], b[1]);
        strategy_.reduce(distribute::ReduceOp::kSum, loss).item<float>();
      }
    }
    for (Device* d : DeviceManager::get().devices()) {
      synchronize(d->compute_stream().record());
      synchronize(d->copy_stream().record());
    }
  }

  std::vector<Variable> variables() const {
    std::vector<Variable> all = model_->weights();
    for (const Variable& v : optimizer_.variables()) all.push_back(v);
    return all;
  }

  // Everything that a step writes, as it was.
  void restore(const Values& values) {
    const auto on = device("/CPU:0");
    const auto all = variables();
    ASSERT_EQ(all.size(), values.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const Tensor whole =
          reshape(constant(std::span<const double>(values[i].second),
                           {static_cast<int64_t>(values[i].second.size())}),
                  all[i].shape());
      all[i].assign(math::cast(whole, all[i].dtype()));
    }
    model_->reset_metrics();
  }

 private:
  Tensor replica_step(const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor loss = spec_.losses[0](y, (*model_)(x, true));
    const auto weights = model_->trainable_variables();
    optimizer_.apply_gradients(tape.gradient(loss, weights), weights);
    return loss;
  }

  Trainer loop_;
  const ModelSpec& spec_;
  distribute::Strategy strategy_;
  keras::Optimizer optimizer_;
  std::optional<keras::Model> model_;
  std::optional<Function<Tensor(const Tensor&, const Tensor&)>> step_;
};

Device& gpu(int number) {
  for (Device* d : DeviceManager::get().devices()) {
    if (d->short_name() == "GPU:" + std::to_string(number)) return *d;
  }
  throw errors::NotFound("no such simulated device");
}

// Takes all that a device has left.
std::vector<BlockRef> fill_up(Device& d) {
  sim::out_of_memory_at(d, config::get_memory_info(d.str()).current_bytes);
  std::vector<BlockRef> taken;
  for (size_t bytes = size_t{16} << 20; bytes >= size_t{1} << 16;) {
    try {
      taken.push_back(BlockRef::adopt(d.allocator().allocate(bytes)));
    } catch (const errors::ResourceExhausted&) {
      bytes /= 4;
    }
  }
  return taken;
}

void inject(const Case& c, std::vector<BlockRef>* taken) {
  Device& d = gpu(c.victim);
  switch (c.fault) {
    case Fault::kLost:
      sim::lose_device(d, c.at);
      return;
    case Fault::kLaunch:
      sim::fail_launch(d, c.at);
      return;
    case Fault::kMemory:
      *taken = fill_up(d);
      return;
    case Fault::kHang:
      sim::hang_device(d, c.at);
      return;
  }
}

void repair(const Case& c) {
  sim::clear_faults(gpu(c.victim));
  for (Device* d : DeviceManager::get().devices()) d->reset_error();
}

errors::Code code_of(const Case& c) {
  switch (c.fault) {
    case Fault::kLost:
      return errors::Code::kUnavailable;
    case Fault::kLaunch:
      return errors::Code::kInternal;
    case Fault::kMemory:
      return errors::Code::kResourceExhausted;
    case Fault::kHang:
      return c.row.timeout_seconds > 0 ? errors::Code::kDeadlineExceeded
                                       : errors::Code::kUnavailable;
  }
  return errors::Code::kUnknown;
}

constexpr int kWarm = 2;    // steps before the fault
constexpr int kAfter = 3;   // and after it
constexpr int kUntil = 10;  // within so many it must show

class Faults : public testing::TestWithParam<Case> {
 protected:
  Faults() { said(); }
  ~Faults() override { repair(GetParam()); }
};

// What is not torn is as it was before the step or after it.
void check_whole_or_torn(const std::vector<Variable>& variables,
                         const Values& before, const Values& after) {
  for (size_t i = 0; i < variables.size(); ++i) {
    Values now;
    try {
      now = values_of({variables[i]});
    } catch (const errors::FailedPrecondition& e) {
      EXPECT_NE(std::string(e.what()).find("half-made"), std::string::npos)
          << e.what();
      continue;
    }
    if (difference(now, {before[i]}, 1e-6).empty()) continue;
    EXPECT_EQ(difference(now, {after[i]}, 1e-6), "") << "half updated";
  }
}

TEST_P(Faults, EndInANamedErrorAndTrainingGoesOn) {
  const Case& c = GetParam();
  const Deadline deadline(std::chrono::seconds(60));
  seed_devices(c.row.seed);
  // What happens without faults: the values before each step.
  std::vector<Values> healthy;
  {
    Trainee twin(c);
    for (int i = 0; i < kWarm + kUntil + kAfter; ++i) {
      twin.step();
      healthy.push_back(values_of(twin.variables()));
    }
  }
  Trainee trainee(c);
  for (int i = 0; i < kWarm; ++i) trainee.step();
  std::vector<BlockRef> taken;
  inject(c, &taken);
  int done = kWarm;
  std::optional<errors::Error> error;
  for (; done < kWarm + kUntil; ++done) {
    try {
      // A larger batch needs memory that the device does not have yet.
      trainee.step(c.fault == Fault::kMemory ? 1 << 15 : kBatch);
    } catch (const errors::Error& e) {
      error = e;
      break;
    }
  }
  taken.clear();
  SCOPED_TRACE(said());
  ASSERT_TRUE(error.has_value()) << "nothing failed";
  // Work after a step may hang, too: then the thread that waits for it reports
  // it.
  const bool behind = c.fault == Fault::kHang && c.loop == Trainer::kRun &&
                      error->code() == errors::Code::kUnavailable;
  EXPECT_TRUE(error->code() == code_of(c) || behind) << error->what();
  EXPECT_NE(std::string(error->what()).find(gpu(c.victim).short_name()),
            std::string::npos)
      << error->what();
  repair(c);
  const auto before = static_cast<size_t>(done - 1);
  check_whole_or_torn(trainee.variables(), healthy[before],
                      healthy[before + 1]);
  trainee.restore(healthy[before]);
  for (int i = 0; i < kAfter; ++i) trainee.step();
  EXPECT_EQ(difference(values_of(trainee.variables()), healthy[before + kAfter],
                       1e-5),
            "")
      << "after the restore";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  uint64_t seed = 0;
  for (const Trainer loop : {Trainer::kFit, Trainer::kRun}) {
    for (const char* algorithm : {"auto", "ring", "pairs", "one", "direct"}) {
      for (const Fault fault : {Fault::kLost, Fault::kLaunch}) {
        // Early in the step, in the middle, and in the one after.
        for (const uint64_t at : {1, 5, 9, 14, 23, 37, 60, 90}) {
          all.push_back({{.model = at % 2 ? "dense" : "conv",
                          .optimizer = "adam",
                          .devices = at == 9 ? "GPUx2" : "GPUx3",
                          .algorithm = algorithm,
                          .pack_bytes = at == 23 ? 64 : 0,
                          .seed = seed++ % 4},
                         loop,
                         fault,
                         static_cast<int>(at % 2),
                         at});
        }
      }
      all.push_back({{.devices = "GPUx2", .algorithm = algorithm},
                     loop,
                     Fault::kMemory,
                     1});
    }
    for (const char* algorithm : {"ring", "pairs", "one", "direct"}) {
      for (const uint64_t at : {2, 17, 50}) {
        all.push_back({{.devices = "GPUx3",
                        .algorithm = algorithm,
                        .timeout_seconds = at == 17 ? 0 : 0.2},
                       loop,
                       Fault::kHang,
                       1,
                       at});
      }
    }
    for (const Fault fault : {Fault::kLost, Fault::kLaunch, Fault::kMemory}) {
      all.push_back({{.devices = "CPU:0,GPU:1"}, loop, fault, 1, 5});
      all.push_back(
          {{.strategy = "central", .devices = "GPUx2"}, loop, fault, 1, 7});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Step, Faults, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace berth::strategy_suite
