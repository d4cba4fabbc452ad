// map and prefetch, with threads and without.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "base/interrupt.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "data/testing.h"
#include "op/dispatcher.h"

namespace berth::data {
namespace {

// Fails every op that reaches it.
class Refuses : public Dispatcher {
 public:
  Refuses() { push(); }
  ~Refuses() override { pop(); }
  void apply(const OpDef&, std::span<const Tensor* const>, const Attrs*,
             std::span<Tensor>) override {
    throw errors::Internal("an op of the pipeline was recorded");
  }
};

Tensors squared(const Tensors& e) { return {math::multiply(e[0], e[0])}; }

Numbers squares(int64_t n) {
  Numbers all = counting(n);
  for (int64_t& x : all) x *= x;
  return all;
}

Tensors fail_at_five(const Tensors& e) {
  if (e[0].item<int64_t>() == 5) throw std::runtime_error("bad image");
  return e;
}

TEST(Map, AppliesTheFunctionInOrderForAnyNumberOfThreads) {
  for (int64_t threads :
       {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{16}, AUTOTUNE}) {
    const auto d =
        Dataset::range(300).map(squared, {.num_parallel_calls = threads});
    EXPECT_EQ(numbers(d), squares(300)) << threads;
    EXPECT_EQ(numbers(d.batch(7).prefetch(2)), squares(300)) << threads;
    EXPECT_EQ(d.cardinality(), 300);
    EXPECT_EQ(d.element_spec()[0].str(), "int64[]");
  }
}

TEST(Map, HandsOutEveryResultOnceWhenOrderDoesNotMatter) {
  const auto d = Dataset::range(500).map(
      squared, {.num_parallel_calls = 4, .deterministic = false});
  for (int i = 0; i < 5; ++i) {
    const Numbers all = numbers(d);
    EXPECT_EQ(all.size(), 500u);
    const Numbers expected = squares(500);
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()),
              std::set<int64_t>(expected.begin(), expected.end()));
  }
}

TEST(Map, CallsTheFunctionFromSeveralThreadsAtOnce) {
  std::atomic<int> inside{0};
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto d = Dataset::range(2).map(
      [&](const Tensors& e) {
        ++inside;
        while (inside < 2 && std::chrono::steady_clock::now() < limit) {
          std::this_thread::yield();
        }
        return e;
      },
      {.num_parallel_calls = 2});
  EXPECT_EQ(numbers(d), counting(2));
  EXPECT_LT(std::chrono::steady_clock::now(), limit);
}

TEST(Map, RunsEagerlyOnTheHostUnderDispatchersAndScopes) {
  for (int64_t threads : {0, 2}) {
    const auto d =
        Dataset::range(4).map(squared, {.num_parallel_calls = threads});
    Refuses refuses;
    auto it = d.make_iterator();
    int64_t n = 0;
    while (auto e = it.next()) {
      EXPECT_TRUE(has((*e)[0].device(), "CPU:0"));
      ++n;
    }
    EXPECT_EQ(n, 4);
  }
}

TEST(Map, NamesItselfTheLineAndTheElementThatFailed) {
  for (int64_t threads : {0, 1, 3}) {
    for (int64_t ahead : {0, 2}) {
      const auto d = Dataset::range(20)
                         .map(fail_at_five, {.num_parallel_calls = threads})
                         .prefetch(ahead);
      auto it = d.make_iterator();
      for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ((*it.next())[0].item<int64_t>(), i);
      }
      const std::string text = message_of<errors::Unknown>([&] { it.next(); });
      EXPECT_TRUE(has(text, "map (")) << text;
      EXPECT_TRUE(has(text, "threads_test.cc:")) << text;
      EXPECT_TRUE(has(text, "element 5: bad image")) << text;
      EXPECT_THROW(it.next(), errors::Unknown);
    }
  }
}

TEST(Map, RefusesWhatIsNoElement) {
  const auto next = [](MapFunction fn) {
    auto it = Dataset::range(1).map(std::move(fn)).make_iterator();
    return message_of<errors::InvalidArgument>([&] { it.next(); });
  };
  EXPECT_TRUE(has(next([](const Tensors&) { return Tensors{}; }),
                  "returned no tensors"));
  EXPECT_TRUE(has(next([](const Tensors&) { return Tensors{Tensor()}; }),
                  "component 0 is an empty Tensor"));
  EXPECT_THROW(Dataset::range(1).map(nullptr), errors::InvalidArgument);
  EXPECT_THROW(Dataset::range(1).map(squared, {.num_parallel_calls = -2}),
               errors::InvalidArgument);
  EXPECT_THROW(Dataset::range(1).prefetch(-2), errors::InvalidArgument);
}

TEST(Prefetch, KeepsOrderForEveryDepth) {
  for (int64_t depth : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{40},
                        int64_t{1} << 60, AUTOTUNE}) {
    const auto d = Dataset::range(1000).prefetch(depth);
    EXPECT_EQ(numbers(d), counting(1000)) << depth;
    EXPECT_EQ(d.cardinality(), 1000);
    EXPECT_EQ(numbers(d.prefetch(3).repeat(2).batch(9).prefetch(1)).size(),
              2000u);
  }
}

TEST(Prefetch, WorksAtMostItsDepthAheadOfTheReader) {
  std::atomic<int> made{0};
  const auto d = Dataset::range(1000)
                     .map([&](const Tensors& e) {
                       ++made;
                       return e;
                     })
                     .prefetch(4);
  auto it = d.make_iterator();
  for (int read = 1; read <= 50; ++read) {
    ASSERT_TRUE(it.next().has_value());
    EXPECT_LE(made.load(), read + 4 + 1);  // one more waits for room
  }
  // Without a further read it fills its ring.
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (made < 52 && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
  }
  EXPECT_GE(made.load(), 52);
}

// Every way a chain can be left while its threads work, wait or fail.
TEST(Threads, EndWhenTheReaderLeavesAtAnyTime) {
  const std::vector<Dataset> chains = {
      Dataset::range(100000).prefetch(2),
      Dataset::range(100000).repeat().prefetch(AUTOTUNE).prefetch(1),
      Dataset::range(100000).repeat().map(squared, {.num_parallel_calls = 3}),
      Dataset::range(50)
          .map(squared, {.num_parallel_calls = 2, .deterministic = false})
          .prefetch(2)
          .take(4)
          .repeat()
          .prefetch(3),
      Dataset::range(20)
          .map(fail_at_five, {.num_parallel_calls = 3})
          .prefetch(2),
      Dataset::range(20).repeat().shuffle(10).batch(4).prefetch(1 << 20),
  };
  for (const Dataset& d : chains) {
    for (int reads = 0; reads < 8; ++reads) {
      auto it = d.make_iterator();
      for (int i = 0; i < reads; ++i) {
        try {
          it.next();
        } catch (const errors::Unknown&) {
        }
      }
    }
  }
}

TEST(Threads, EndASearchThatNeverEnds) {
  const auto never = [](const Tensors&) { return false; };
  const Dataset forever = Dataset::from_generator(
      [] { return [] { return std::optional(Tensors{constant(1)}); }; },
      {{Shape{}, int32}});
  for (const Dataset& d :
       {forever.filter(never), forever.skip(INT64_MAX),
        forever.take(0).repeat().map(squared), forever.shuffle(INT64_MAX)}) {
    for (int64_t threads : {0, 2}) {
      auto it = d.map(squared, {.num_parallel_calls = threads})
                    .prefetch(2)
                    .make_iterator();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

TEST(Threads, ServeSeveralReadersOfOneDataset) {
  const auto d = Dataset::range(200)
                     .map(squared, {.num_parallel_calls = 2})
                     .batch(16)
                     .prefetch(2);
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] { EXPECT_EQ(numbers(d), squares(200)); });
  }
}

// Interrupts every call of the calling thread until the end of the block.
struct Interrupted {
  Interrupted() {
    set_interrupt_ask(+[]() noexcept { return true; });
  }
  ~Interrupted() {
    set_interrupt_ask(nullptr);
    clear_interrupt();
  }
};

TEST(Threads, AnInterruptWaitsForNoFunctionOfTheUsers) {
  std::promise<void> gate;
  const auto open = gate.get_future().share();
  const auto blocked = [open]() -> std::optional<Tensors> {
    open.wait();
    return std::nullopt;
  };
  auto it = Dataset::from_generator([&] { return blocked; }, {{Shape{}, int32}})
                .prefetch(1)
                .make_iterator();
  {
    const Interrupted interrupted;
    EXPECT_THROW(it.next(), errors::Cancelled);
  }
  EXPECT_THROW(it.next(), errors::Cancelled);  // again, as after any error
  gate.set_value();
}

TEST(Threads, AnInterruptEndsASearchAndIsNoErrorToIgnore) {
  const auto never = [](const Tensors&) { return false; };
  const Dataset forever = Dataset::from_generator(
      [] { return [] { return std::optional(Tensors{constant(1)}); }; },
      {{Shape{}, int32}});
  for (const Dataset& d :
       {forever.filter(never), forever.filter(never).ignore_errors(),
        forever.shuffle(INT64_MAX), forever.skip(INT64_MAX)}) {
    auto it = d.make_iterator();
    const Interrupted interrupted;
    EXPECT_THROW(it.next(), errors::Cancelled);
  }
}

}  // namespace
}  // namespace berth::data
