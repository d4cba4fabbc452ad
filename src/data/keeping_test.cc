// ignore_errors, assert_cardinality, cache, snapshot, status, explain and the
// host's budget.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/diagnostics_testing.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "data/host_budget.h"
#include "data/saving_testing.h"

namespace berth::data {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "berthXXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Tensors no_sevens(const Tensors& e) {
  if (e[0].item<int64_t>() % 7 == 0) throw errors::DataLoss("a seven");
  return e;
}

Numbers without_sevens(int64_t n) {
  Numbers all;
  for (int64_t i = 0; i < n; ++i) {
    if (i % 7 != 0) all.push_back(i);
  }
  return all;
}

TEST(IgnoreErrors, LeavesOutTheElementsThatFail) {
  for (int64_t threads : {0, 1, 3}) {
    const auto mapped =
        Dataset::range(40).map(no_sevens, {.num_parallel_calls = threads});
    EXPECT_EQ(numbers(mapped.ignore_errors()), without_sevens(40));
    EXPECT_EQ(numbers(mapped.prefetch(3).batch(4).ignore_errors()),
              without_sevens(40));
    EXPECT_EQ(numbers(mapped.shuffle(1)
                          .filter([](const Tensors&) { return true; })
                          .ignore_errors()),
              without_sevens(40));
  }
}

TEST(IgnoreErrors, CountsAndReports) {
  const Heard heard;
  const auto d =
      Dataset::range(20).map(no_sevens).ignore_errors({.log_warning = true});
  auto it = d.make_iterator();
  rest_of(it);
  const IteratorStatus status = it.status();
  EXPECT_EQ(status.elements, 17);
  EXPECT_EQ(status.errors_ignored, 3);
  EXPECT_TRUE(status.ended);
  EXPECT_TRUE(has(status.last_error, "element 14: a seven"));
  const auto reports = heard.of("element-ignored");
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_TRUE(has(reports[1].text, "ignore_errors ("));
  EXPECT_TRUE(has(reports[1].text, "element 7: a seven"));
  EXPECT_TRUE(has(d.explain(), "3 errors ignored"));
}

TEST(IgnoreErrors, AGeneratorThatThrowsHasEnded) {
  const auto d = Dataset::from_generator(
      [] {
        return [i = int64_t{0}]() mutable -> std::optional<Tensors> {
          if (i == 3) throw errors::DataLoss("torn");
          return Tensors{constant(i++)};
        };
      },
      {{Shape{}, int64}});
  EXPECT_EQ(numbers(d.ignore_errors()), counting(3));
}

TEST(IgnoreErrors, IsRestored) {
  for (int64_t threads : {0, 2}) {
    expect_restores([threads] {
      return Dataset::range(30)
          .map(no_sevens, {.num_parallel_calls = threads})
          .prefetch(4)
          .ignore_errors()
          .batch(3);
    });
  }
}

TEST(AssertCardinality, SaysWhatIsWrong) {
  const auto unknown =
      Dataset::range(9).filter([](const Tensors&) { return true; });
  EXPECT_EQ(unknown.assert_cardinality(9).cardinality(), 9);
  EXPECT_EQ(numbers(unknown.assert_cardinality(9)), counting(9));
  const auto read = [&](int64_t expected) {
    return message_of<errors::FailedPrecondition>(
        [&] { numbers(unknown.assert_cardinality(expected)); });
  };
  EXPECT_TRUE(has(read(10), "ended after 9 elements; expected 10"));
  EXPECT_TRUE(has(read(8), "has at least 9 elements; expected 8"));
  EXPECT_TRUE(has(read(kInfinite), "ended after 9 elements; expected no end"));
  EXPECT_THROW(unknown.assert_cardinality(-7), errors::InvalidArgument);
  expect_restores([] { return Dataset::range(5).assert_cardinality(5); });
}

// Counts how often elements are computed.
Dataset counted(std::atomic<int>* made, int64_t n = 6) {
  return Dataset::range(n)
      .shuffle(n, {.seed = 1})
      .map([made](const Tensors& e) {
        ++*made;
        return e;
      });
}

TEST(Cache, KeepsTheFirstCompleteIteration) {
  const Folder folder;
  for (const std::string& file : {std::string(), folder / "cache"}) {
    std::atomic<int> made{0};
    const auto d = counted(&made).cache(file);
    {
      auto early = d.make_iterator();
      rest_of(early, 3);
    }
    const Numbers first = numbers(d);
    made = 0;
    EXPECT_EQ(numbers(d), first);
    EXPECT_EQ(numbers(d.repeat(2)).size(), 12u);
    EXPECT_EQ(made, 0);
  }
  // Another process finds the file.
  std::atomic<int> made{0};
  EXPECT_EQ(numbers(counted(&made).cache(folder / "cache")).size(), 6u);
  EXPECT_LE(made, 1);  // its specs
  const std::string other = message_of<errors::InvalidArgument>([&] {
    numbers(
        Dataset::from_tensor_slices({iota({3, 2})}).cache(folder / "cache"));
  });
  EXPECT_TRUE(has(other, "holds elements (int64[]); expected those of this"))
      << other;
}

TEST(Cache, HoldsTextAndSeveralComponents) {
  const Folder folder;
  const auto d =
      Dataset::from_tensor_slices(
          Element{{"text",
                   constant(std::vector<std::string>{"", "a\nb", "\xff"}, {3})},
                  {"x", float_zeros({3, 2})}})
          .cache(folder / "c");
  auto a = d.make_iterator();
  const auto first = rest_of(a);
  auto b = d.make_iterator();
  expect_same(rest_of(b), first, "from the file");
  EXPECT_EQ(d.component_names(), (Names{"text", "x"}));
}

TEST(Cache, IsRestored) {
  expect_restores([] { return Dataset::range(5).shuffle(5).cache().repeat(3); },
                  false);
  int n = 0;
  const Folder folder;
  expect_restores([&] {
    return Dataset::range(5).cache(folder / std::to_string(n++)).repeat(3);
  });
}

TEST(Cache, SaysWhyItCannotWrite) {
  const std::string text = message_of<errors::NotFound>(
      [] { numbers(Dataset::range(3).cache("/nonexistent/folder/file")); });
  EXPECT_TRUE(has(text, "cache (")) << text;
  EXPECT_TRUE(has(text, "/nonexistent/folder/file")) << text;
}

TEST(Snapshot, RefusesOrRebuildsDamage) {
  const Folder folder;
  const auto make = [&](bool rebuild) {
    return Dataset::range(8).batch(3).snapshot(folder / "s",
                                               {.rebuild = rebuild});
  };
  EXPECT_EQ(numbers(make(false)), counting(8));
  EXPECT_EQ(numbers(make(false)), counting(8));
  const std::string file = folder / "s/elements.berth";
  const auto size = std::filesystem::file_size(file);
  std::string good(size, 0);
  std::ifstream(file, std::ios::binary).read(good.data(), good.size());
  // Bytes changed, files cut short: an error that says so.
  for (size_t i = 0; i < size; i += 5) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    std::ofstream(file, std::ios::binary) << bad;
    EXPECT_THROW(numbers(make(false)), errors::Error) << i;
    std::ofstream(file, std::ios::binary) << good.substr(0, i);
    EXPECT_THROW(numbers(make(false)), errors::Error) << i;
  }
  std::ofstream(file, std::ios::binary) << good.substr(0, 10);
  EXPECT_EQ(numbers(make(true)), counting(8));
  EXPECT_EQ(std::filesystem::file_size(file), size);
}

TEST(HostBudget, IsOneForAllPipelines) {
  const int cores = CoreClaim::available();
  EXPECT_EQ(CoreClaim::in_use(), 0);
  CoreClaim one(0);
  {
    const CoreClaim told(cores);
    EXPECT_FALSE(one.grow());
    EXPECT_TRUE(CoreClaim::wanted());
  }
  EXPECT_EQ(one.grow(), cores > 1);
  ByteClaim a, b;
  config::set_host_memory_budget(100);
  EXPECT_TRUE(a.try_set(60));
  EXPECT_FALSE(b.try_set(41));
  EXPECT_TRUE(b.try_set(40));
  a.set(10);
  EXPECT_TRUE(b.try_set(90));
  config::set_host_memory_budget(0);
  EXPECT_GT(config::get_host_memory_budget(), size_t{1} << 20);
}

TEST(Explain, SaysWhatWasChosen) {
  const auto d = Dataset::range(200)
                     .shuffle(10)
                     .map([](const Tensors& e) { return e; },
                          {.num_parallel_calls = AUTOTUNE})
                     .batch(4)
                     .prefetch(AUTOTUNE);
  EXPECT_TRUE(has(d.explain(), "AUTOTUNE, not run yet"));
  numbers(d);
  const std::string text = d.explain();
  EXPECT_TRUE(has(text, "host: 0 of ")) << text;
  EXPECT_TRUE(has(text, "prefetch (")) << text;
  EXPECT_TRUE(has(text, " deep of 32 B, 50 elements")) << text;
  EXPECT_TRUE(has(text, "in the function, the reader waited")) << text;
  EXPECT_TRUE(has(text, "shuffle (")) << text;
  EXPECT_TRUE(has(text, "200 elements, by row numbers")) << text;
}

}  // namespace
}  // namespace berth::data
