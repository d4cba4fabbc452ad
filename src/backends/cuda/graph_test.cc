// Recordings of a queue as graphs of the driver. Plans are replayed by one
// launch, and step by step when graphs fail. Runs on the fake driver.

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <thread>

#include "backends/cuda/cuda_queue.h"
#include "backends/cuda/scenario_testing.h"
#include "backends/gpu/queue_stream.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "device/device_manager.h"
#include "exec/arena_pool.h"

namespace berth::cuda {
namespace {

constexpr size_t kPieceBytes = 64;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A queue of a card, and a block of the card's memory.
class Graphs : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    kFake->begin("devices=2");
    pair_.emplace();
    queue_ = pair_->card(0).make_queue();
    block_ = block();
  }
  void TearDown() override {
    block_ = {};
    queue_.reset();
    pair_.reset();
  }

  BlockRef block() {
    return BlockRef::adopt(pair_->device(0).allocator().allocate(kPieceBytes));
  }
  void set(const BlockRef& b, int value) {
    queue_->fill(b->data, value, kPieceBytes);
  }
  int get(const BlockRef& b) {
    unsigned char bytes[kPieceBytes];
    pair_->device(0).copy_to_host(bytes, b->data, kPieceBytes);
    return bytes[kPieceBytes - 1];
  }
  std::unique_ptr<gpu::Recording> record(
      const std::function<void()>& append,
      std::unique_ptr<gpu::Recording> old = nullptr) {
    queue_->begin_recording();
    append();
    return queue_->end_recording(std::move(old));
  }

  std::optional<CardPair> pair_;
  std::unique_ptr<gpu::Queue> queue_;
  BlockRef block_;
};

TEST_F(Graphs, DoWhatWasRecordedEachTimeTheyAreLaunched) {
  ASSERT_TRUE(queue_->can_record());
  const BlockRef copy = block();
  const MemorySpace& here = pair_->device(0).memory();
  set(block_, 1);
  set(copy, 1);
  const uint64_t appended = queue_->appended();
  const auto recording = record([&] {
    set(block_, 2);
    queue_->copy({copy->data, &here, block_->data, &here, kPieceBytes});
  });
  EXPECT_EQ(queue_->appended(), appended);
  EXPECT_EQ(get(block_), 1);
  for (int i = 0; i < 2; ++i) {
    recording->launch(*queue_);
    EXPECT_EQ(get(block_), 2);
    EXPECT_EQ(get(copy), 2);
    set(block_, 3);
    set(copy, 3);
  }
  EXPECT_EQ(kFake->calls("cuGraphLaunch"), 2);
}

TEST_F(Graphs, OfTheSameWorkElsewhereAreChanged) {
  const BlockRef other = block();
  set(block_, 1);
  set(other, 1);
  auto recording = record([&] { set(block_, 2); });
  recording = record([&] { set(other, 3); }, std::move(recording));
  EXPECT_EQ(kFake->calls("cuGraphInstantiate"), 1);
  recording->launch(*queue_);
  EXPECT_EQ(get(block_), 1);
  EXPECT_EQ(get(other), 3);
  // Different work needs a new graph.
  recording = record(
      [&] {
        set(other, 4);
        set(block_, 5);
      },
      std::move(recording));
  EXPECT_EQ(kFake->calls("cuGraphInstantiate"), 2);
  recording->launch(*queue_);
  EXPECT_EQ(get(block_), 5);
}

// A kernel that runs for the first time has code to be loaded, which a capture
// does not allow.
TEST_F(Graphs, HaveKernelsThatHaveNotRunBefore) {
  const auto module = pair_->card(0).module(small_source());
  const auto kernel = module->kernel("scale");
  void* data = block_->data;
  const float by = 2;
  const gpu::KernelArg args[] = {{&data, 0}, {&by, sizeof(by)}};
  const auto recording = record([&] {
    kernel->launch(*queue_, {{1, 1, 1}, 256}, args, 2);
  });
  recording->launch(*queue_);
}

TEST_F(Graphs, LeaveNothingBehind) {
  set(block_, 1);
  record([&] { set(block_, 2); });  // the capturing stream is kept
  const long objects = kFake->objects();
  {
    auto recording = record([&] { set(block_, 2); });
    recording = record([&] { set(block_, 3); }, std::move(recording));
    queue_->begin_recording();
    set(block_, 4);
    queue_->drop_recording();
  }
  EXPECT_EQ(kFake->objects(), objects);
  EXPECT_EQ(get(block_), 1);
}

TEST_F(Graphs, TakeNoHostMemoryThatIsNotPinned) {
  Device& d = pair_->device(0);
  std::vector<char> bytes(kPieceBytes, 7);
  queue_->begin_recording();
  EXPECT_THROW(queue_->copy({block_->data, &d.memory(), bytes.data(),
                             &d.host_memory(), kPieceBytes}),
               errors::Unimplemented);
  queue_->drop_recording();
  queue_->copy(
      {block_->data, &d.memory(), bytes.data(), &d.host_memory(), kPieceBytes});
  EXPECT_EQ(get(block_), 7);
}

TEST_F(Graphs, FailWhenTheThreadAllocatesMeanwhile) {
  queue_->begin_recording();
  set(block_, 2);
  const auto memory = pair_->card(0).memory_source();
  EXPECT_THROW(memory->reserve(4096), errors::Internal);
  try {
    queue_->end_recording(nullptr);
    FAIL();
  } catch (const errors::Internal& e) {
    EXPECT_STREQ(e.what(),
                 "cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED "
                 "(901)");
  }
  std::byte* data = memory->reserve(4096);
  EXPECT_NE(data, nullptr);
  memory->release(data, 4096);
  set(block_, 3);
  EXPECT_EQ(get(block_), 3);
}

TEST_F(Graphs, LetOtherThreadsDoAsTheyLike) {
  set(block_, 1);
  const BlockRef other = block();
  const auto recording = record([&] {
    set(block_, 2);
    std::thread([&] {
      Device& d = pair_->device(0);
      const std::vector<char> bytes(kPieceBytes, 9);
      d.copy_from_host(other->data, bytes.data(), kPieceBytes);
      EXPECT_EQ(get(other), 9);
      const auto memory = pair_->card(0).memory_source();
      std::byte* data = memory->reserve(4096);
      EXPECT_NE(data, nullptr);
      memory->release(data, 4096);
    }).join();
  });
  set(other, 1);
  recording->launch(*queue_);
  EXPECT_EQ(get(block_), 2);
  EXPECT_EQ(get(other), 1);
}

TEST_F(Graphs, AFewBytesOfTheHostAreNotWaitedFor) {
  Device& d = pair_->device(0);
  const uint64_t value = 0x0102030405060708;
  const long before = kFake->calls("cuStreamSynchronize");
  queue_->copy(
      {block_->data, &d.memory(), &value, &d.host_memory(), sizeof value});
  EXPECT_EQ(kFake->calls("cuStreamSynchronize"), before);
  uint64_t back = 0;
  d.copy_to_host(&back, block_->data, sizeof back);
  EXPECT_EQ(back, value);
}

// Plans on /GPU:0 whose ops copy and fill, so that they have results although
// kernels do nothing on the fake driver.
class GraphPlans : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(config::list_physical_devices("GPU").size(), 1u);
  }
  void TearDown() override { unsetenv("BERTH_CUDA_GRAPHS"); }
};

using Floats = std::vector<float>;

// Counts calls that give a GPU work, or allocate.
struct Given {
  long graphs = kFake->calls("cuGraphLaunch");
  long copies = kFake->calls("cuMemcpyDtoDAsync");
  long others = 0;
  Given() {
    for (const char* call :
         {"cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
          "cuMemcpyPeerAsync", "cuMemsetD8Async", "cuMemsetD32Async",
          "cuStreamWaitEvent", "cuStreamSynchronize", "cuStreamBeginCapture",
          "cuGraphInstantiate", "cuGraphExecUpdate", "cuMemAlloc",
          "cuMemHostAlloc", "cuEventCreate"}) {
      others += kFake->calls(call);
    }
  }
  Given since(const Given& before) const {
    Given d = *this;
    d.graphs -= before.graphs;
    d.copies -= before.copies;
    d.others -= before.others;
    return d;
  }
};

constexpr int kWarm = 8;  // runs until everything is recorded

// Returns six numbers from `first` on, on the current device.
Tensor sequence(int first) {
  Floats v;
  for (int i = 0; i < 6; ++i) v.push_back(static_cast<float>(first + i));
  const auto on = device("/CPU:0");
  const Tensor here = constant(v, {6});
  const auto there = device("/GPU:0");
  return identity(here);
}

Floats joined(std::initializer_list<int> firsts) {
  Floats v;
  for (const int first : firsts) {
    for (int i = 0; i < 6; ++i) v.push_back(static_cast<float>(first + i));
  }
  return v;
}

auto join_function() {
  return function(
      [](const Tensor& x, const Tensor& y) {
        const Tensor a = concat({x, y}, 0);
        return Tensors{concat({y, a, concat({a, x}, 0)}, 0), a};
      },
      {});
}

void expect_joined(const Tensors& got, int x, int y) {
  EXPECT_EQ(got[0].to_vector<float>(), joined({y, x, y, x, y, x}));
  EXPECT_EQ(got[1].to_vector<float>(), joined({x, y}));
}

TEST_F(GraphPlans, TakeOneCallPerWarmRun) {
  const auto on = device("/GPU:0");
  const auto f = join_function();
  const Tensor x = sequence(10), y = sequence(20);
  for (int i = 0; i < kWarm; ++i) expect_joined(f(x, y), 10, 20);
  EXPECT_TRUE(has(f.text("plan"), "\nreplay steps ")) << f.text("plan");
  for (int i = 0; i < 3; ++i) {
    const Given before;
    const Tensors results = f(x, y);
    const Given given = Given().since(before);
    EXPECT_EQ(given.graphs, 1);
    EXPECT_EQ(given.copies, 0);
    EXPECT_EQ(given.others, 0);
    expect_joined(results, 10, 20);
  }
}

TEST_F(GraphPlans, CopyWhatLiesElsewhereInEveryRun) {
  const auto on = device("/GPU:0");
  const auto f = join_function();
  std::vector<Tensors> kept;
  for (int i = 0; i < kWarm; ++i) kept.push_back(f(sequence(i), sequence(-i)));
  Given given;
  for (int i = kWarm; i < 3 * kWarm; ++i) {
    const Tensor x = sequence(i), y = sequence(-i);
    // They are there already, so the run waits for no copy.
    EXPECT_EQ(x.to_vector<float>(), joined({i}));
    EXPECT_EQ(y.to_vector<float>(), joined({-i}));
    const Given before;
    kept.push_back(f(x, y));
    given = Given().since(before);
    EXPECT_EQ(given.graphs, 1);
    EXPECT_LE(given.copies, 4);
    EXPECT_EQ(given.others, 0);
  }
  EXPECT_EQ(given.copies, 4);
  for (size_t i = 0; i < kept.size(); ++i) {
    expect_joined(kept[i], static_cast<int>(i), -static_cast<int>(i));
  }
}

TEST_F(GraphPlans, WaitForWhatOtherStreamsBring) {
  kFake->begin("later=3");
  const auto on = device("/GPU:0");
  const auto f = function(
      [](const Tensor& x, const Tensor& y) {
        const Tensor a = concat({x, y, concat({y, x}, 0)}, 0);
        Tensor b;
        {
          const auto host = device("/CPU:0");
          b = reverse(a, {0});
        }
        const Tensor c = concat({b, x}, 0);
        return concat({concat({c, y}, 0), c}, 0);
      },
      {});
  const Tensor x = sequence(1), y = sequence(2);
  const Floats first = f(x, y).to_vector<float>();
  EXPECT_EQ(first[0], 6);  // the last of x
  EXPECT_EQ(first[24], 1);
  for (int i = 0; i < kWarm; ++i) EXPECT_EQ(f(x, y).to_vector<float>(), first);
  const std::string text = f.text("plan");
  EXPECT_TRUE(has(text, "CPU:0 computes it")) << text;
  const long graphs = kFake->calls("cuGraphLaunch");
  const long waits = kFake->calls("cuStreamWaitEvent");
  EXPECT_EQ(f(x, y).to_vector<float>(), first);
  EXPECT_EQ(kFake->calls("cuGraphLaunch") - graphs, 2) << text;
  // The second graph waits for the copy from the host.
  EXPECT_EQ(kFake->calls("cuStreamWaitEvent") - waits, 1) << text;
}

TEST_F(GraphPlans, GoOnStepByStepWhenACaptureFails) {
  for (const std::string call :
       {"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate"}) {
    for (const int code : {1, 2}) {
      const std::string fake = fmt::format("fail={}@1:{}", call, code);
      SCOPED_TRACE(fake);
      kFake->begin(fake.c_str());
      const auto on = device("/GPU:0");
      const auto f = join_function();
      const Tensor x = sequence(1), y = sequence(2);
      for (int i = 0; i < 2 * kWarm; ++i) expect_joined(f(x, y), 1, 2);
      EXPECT_EQ(kFake->failed(), 1);
      EXPECT_EQ(kFake->calls("cuGraphLaunch"), 0);
      const std::string text = f.text("plan");
      EXPECT_TRUE(has(text, "\nno-replay steps ")) << text;
      EXPECT_TRUE(has(text, fmt::format("why \"{}: ", call))) << text;
    }
  }
}

// The kernel of the second step never ran before, since all runs step by step
// ended in the first one.
TEST_F(GraphPlans, LookNothingUpWithinACapture) {
  const auto on = device("/GPU:0");
  const auto f = function(
      [](const Tensor& x) {
        const Tensor a = concat({x, x}, 0);
        return concat({a, math::tanh(math::square(a) - a)}, 0);
      },
      {});
  const Tensor x = sequence(1);
  for (int i = 0; i < 4; ++i) {
    kFake->begin("fail=cuMemcpyDtoDAsync@1:1");
    EXPECT_THROW(f(x).to_vector<float>(), errors::Internal);
    EXPECT_EQ(kFake->calls("cuLaunchKernel"), 0);
    config::reset_device_error("GPU:0");
  }
  kFake->begin("");
  for (int i = 0; i < kWarm; ++i) f(x).to_vector<float>();
  EXPECT_GT(kFake->calls("cuGraphLaunch"), 0);
  EXPECT_EQ(kFake->calls("cuLaunchKernel"), 3);  // within the capture
  EXPECT_FALSE(has(f.text("plan"), "no-replay")) << f.text("plan");
}

TEST_F(GraphPlans, AreMadeAnewWhenTheyCannotBeChanged) {
  kFake->begin("fail=cuGraphExecUpdate@1:910");
  const auto on = device("/GPU:0");
  const auto f = join_function();
  const Tensor x = sequence(1), y = sequence(2);
  for (int i = 0; i < kWarm; ++i) expect_joined(f(x, y), 1, 2);
  std::vector<Tensors> kept;
  for (int i = 0; i < kWarm; ++i) kept.push_back(f(sequence(i), y));
  for (size_t i = 0; i < kept.size(); ++i) {
    expect_joined(kept[i], static_cast<int>(i), 2);
  }
  EXPECT_EQ(kFake->failed(), 1);
  EXPECT_FALSE(has(f.text("plan"), "no-replay")) << f.text("plan");
}

TEST_F(GraphPlans, ManyMayBeOnTheirWay) {
  kFake->begin("later=40");
  const auto on = device("/GPU:0");
  const auto f = join_function();
  const Tensor y = sequence(-1);
  std::vector<Tensors> kept;
  for (int i = 0; i < 5 * kWarm; ++i) kept.push_back(f(sequence(i), y));
  for (size_t i = 0; i < kept.size(); ++i) {
    expect_joined(kept[i], static_cast<int>(i), -1);
  }
  EXPECT_GT(kFake->calls("cuGraphLaunch"), kWarm);
  // Each run in flight has a graph of its own.
  EXPECT_GT(kFake->calls("cuGraphInstantiate"), 1);
}

// Arenas of two plans change places whenever the plans overlap.
TEST_F(GraphPlans, OutliveArenasThatAlternateBetweenThreads) {
  const auto train = join_function(), evaluate = join_function();
  const auto run = [](const auto& f) {
    const auto on = device("/GPU:0");
    const Tensor x = sequence(1), y = sequence(2);
    for (int i = 0; i < 200; ++i) expect_joined(f(x, y), 1, 2);
  };
  std::thread other([&] { run(evaluate); });
  run(train);
  other.join();
  for (const auto& f : {train, evaluate}) {
    EXPECT_TRUE(has(f.text("plan"), "\nreplay steps ")) << f.text("plan");
  }
}

// Two arenas that the test hands to the plans of a GPU, as other threads do
// when their runs end.
class Arenas {
 public:
  Arenas() : gpu_(*DeviceManager::get().find(DeviceName::parse("/GPU:0"))) {
    some_.devices = {&gpu_};
    some_.arena_bytes = {1 << 16};
    ArenaPool::get().take_idle(gpu_);
    for (BlockRef& a : arenas_) a = ArenaPool::get().take(some_, 0, nullptr);
    for (int i = 0; i < 2; ++i) at_[i] = arenas_[i]->data;
  }
  void give(int i) { ArenaPool::get().give_back(gpu_, std::move(arenas_[i])); }
  void take(int i) { arenas_[i] = ArenaPool::get().take(some_, 0, at_[i]); }

 private:
  Device& gpu_;
  Program some_;
  BlockRef arenas_[2];
  const std::byte* at_[2];
};

TEST_F(GraphPlans, GetTheArenaThatTheyWereRecordedWith) {
  const auto on = device("/GPU:0");
  const auto f = join_function();
  const Tensor x = sequence(1), y = sequence(2);
  Arenas arenas;
  long captures = 0;
  for (int i = 0; i < 4 * kWarm; ++i) {
    if (i == kWarm) captures = kFake->calls("cuStreamBeginCapture");
    // Now one, now the other was given back last.
    arenas.give(i % 2);
    arenas.give(1 - i % 2);
    expect_joined(f(x, y), 1, 2);
    arenas.take(0);
    arenas.take(1);
  }
  EXPECT_GT(captures, 0);
  EXPECT_EQ(kFake->calls("cuStreamBeginCapture"), captures);
}

// Recording does not pay while they move, which need not be for ever.
TEST_F(GraphPlans, AreRecordedAgainWhenTheirArenasMoveNoLonger) {
  const auto on = device("/GPU:0");
  const auto f = join_function();
  const Tensor x = sequence(1), y = sequence(2);
  Arenas arenas;
  const auto run = [&](int arena) {
    const long before = kFake->calls("cuGraphLaunch");
    arenas.give(arena);
    expect_joined(f(x, y), 1, 2);
    arenas.take(arena);
    return kFake->calls("cuGraphLaunch") - before;
  };
  for (int i = 0; i < 5 * kWarm; ++i) run(i % 2);
  // What was recorded last is of one of them.
  const long of_0 = run(0), of_1 = run(1);
  EXPECT_EQ(of_0 + of_1, 1);
  long launched = 0;
  for (int i = 0; i < 300; ++i) launched = run(of_0 == 0 ? 0 : 1);
  EXPECT_EQ(launched, 1);
}

// What comes in is read before the call returns, and not waited for.
TEST_F(GraphPlans, InputsOfTheHostAreStaged) {
  sequence(1);
  std::vector<float> many(10000, 3);
  const long waits = kFake->calls("cuStreamSynchronize");
  const auto here = device("/CPU:0");
  Tensor x = constant(many, {10000});
  const auto there = device("/GPU:0");
  const Tensor y = identity(x);
  EXPECT_EQ(kFake->calls("cuStreamSynchronize"), waits);
  EXPECT_EQ(y.to_vector<float>(), many);
}

// The card may read what was staged after the call, so nobody gets it.
TEST_F(GraphPlans, StagedInputsAreKeptUntilTheyAreRead) {
  Device& gpu = *DeviceManager::get().find(DeviceName::parse("/GPU:0"));
  constexpr size_t kBytes = 400000;
  Allocator& pinned = *DeviceManager::get().pinned_pool();
  const auto place = [&] {
    return BlockRef::adopt(pinned.try_allocate(kBytes))->data;
  };
  const std::byte* next = place();
  ASSERT_EQ(place(), next);
  auto& stream = static_cast<gpu::QueueStream&>(gpu.copy_stream());
  CUstream queue = static_cast<CudaQueue&>(stream.queue()).appending();
  kFake->hold(queue, true);
  const std::vector<float> many(kBytes / sizeof(float), 3);
  Tensor y;
  {
    const auto here = device("/CPU:0");
    const Tensor x = constant(many, {kBytes / sizeof(float)});
    const auto there = device("/GPU:0");
    y = identity(x);
  }
  EXPECT_NE(place(), next);
  kFake->hold(queue, false);
  EXPECT_EQ(y.to_vector<float>(), many);
}

TEST_F(GraphPlans, SayWhichOpsTheLaunchThatFailedWasOf) {
  const auto on = device("/GPU:0");
  const auto f = join_function();
  const Tensor x = sequence(1), y = sequence(2);
  for (int i = 0; i < kWarm; ++i) expect_joined(f(x, y), 1, 2);
  kFake->begin("fail=cuGraphLaunch@1:1");
  const Tensors results = f(x, y);
  try {
    results[0].to_vector<float>();
    FAIL();
  } catch (const errors::Internal& e) {
    const std::string what = e.what();
    EXPECT_TRUE(has(what, "ConcatV2 to ConcatV2")) << what;
    EXPECT_TRUE(has(what, "GPU:0")) << what;
    EXPECT_TRUE(has(what, "cuGraphLaunch: CUDA_ERROR_INVALID_VALUE (1)"))
        << what;
  }
  config::reset_device_error("GPU:0");
  expect_joined(f(x, y), 1, 2);
}

TEST_F(GraphPlans, AreLeftOutWhenSwitchedOff) {
  setenv("BERTH_CUDA_GRAPHS", "off", 1);
  const auto on = device("/GPU:0");
  const auto f = join_function();
  const Tensor x = sequence(1), y = sequence(2);
  const long before = kFake->calls("cuStreamBeginCapture");
  for (int i = 0; i < kWarm; ++i) expect_joined(f(x, y), 1, 2);
  EXPECT_EQ(kFake->calls("cuStreamBeginCapture"), before);
  EXPECT_FALSE(has(f.text("plan"), "replay ")) << f.text("plan");
  setenv("BERTH_CUDA_GRAPHS", "maybe", 1);
  EXPECT_THROW(join_function()(x, y), errors::InvalidArgument);
}

// Arguments of 20 MiB each; recording would need memory for one more.
void run_where_memory_is_short() {
  using fresh_process::check;
  kFake->begin("memory=64M");
  const auto on = device("/GPU:0");
  const auto f = function(
      [](const Tensor& x) {
        const Tensor a = slice(x, {0}, {6}), b = slice(x, {6}, {6});
        return concat({a, concat({b, a}, 0)}, 0);
      },
      {});
  const int64_t floats = 20 << 18;
  const Tensor x[] = {zeros({floats}), zeros({floats})};
  for (int i = 0; i < 2 * kWarm; ++i) {
    check(f(x[i % 2]).to_vector<float>() == Floats(18, 0), "the result");
  }
  const std::string text = f.text("plan");
  check(has(text, "no-replay steps") && has(text, "is out of memory"), text);
}

class GraphPlansDeathTest : public CudaTest {};

TEST_F(GraphPlansDeathTest, GoStepByStepWhereMemoryIsShort) {
  IN_A_FRESH_PROCESS(run_where_memory_is_short());
}

}  // namespace
}  // namespace berth::cuda
