#include "data/auto_shard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "berth/data_files.h"
#include "data/saving_testing.h"
#include "io/temp_dir_testing.h"

namespace berth::data {
namespace {

using io::testing::TempDir;
using io::testing::write_file;
using Lines = std::vector<std::string>;

// Files of one line each but the last, which has two: "0", ..., "n".
struct Files {
  explicit Files(int n) {
    for (int i = 0; i < n; ++i) {
      names.push_back(dir.path() + fmt::format("/f{}.txt", i));
      write_file(names.back(), i + 1 < n ? fmt::format("{}\n", i)
                                         : fmt::format("{}\n{}\n", i, n));
    }
  }
  TempDir dir;
  Lines names;
};

Lines lines_of(const Dataset& d) {
  Lines all;
  for (const Tensors& e : d) {
    for (std::string& s : strings_of(e[0])) all.push_back(std::move(s));
  }
  return all;
}

// What each of two tasks reads.
std::vector<Lines> parts(const Dataset& d, AutoShardPolicy policy) {
  return {lines_of(part_of_task(d, policy, 2, 0)),
          lines_of(part_of_task(d, policy, 2, 1))};
}

Lines sorted(Lines lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

Dataset lines_in(const Tensors& name) {
  return TextLineDataset(strings_of(name[0])[0]);
}

TEST(AutoShard, FilesGoRoundTheTasks) {
  const Files f(5);
  const std::vector<Lines> wanted{{"0", "2", "4", "5"}, {"1", "3"}};
  const auto names = [&] {
    return list_files({f.dir.path() + "/*.txt"}, {.shuffle = false});
  };
  for (const Dataset& d : {
           Dataset(TextLineDataset(f.names)),
           Dataset(TextLineDataset(names())),
           names().flat_map(lines_in),
           names().interleave(lines_in, {.cycle_length = 1}),
       }) {
    EXPECT_EQ(file_split(d).files, 5);
    EXPECT_EQ(parts(d.batch(2), AutoShardPolicy::kFile), wanted);
    EXPECT_EQ(lines_of(d.batch(2)), (Lines{"0", "1", "2", "3", "4", "5"}));
  }
}

TEST(AutoShard, ShuffledAndRepeatedFilesStayWithTheirTask) {
  const Files f(5);
  const Dataset d = list_files({f.dir.path() + "/*.txt"}, {.seed = 7})
                        .repeat(2)
                        .interleave(lines_in, {.num_parallel_calls = 2})
                        .batch(3)
                        .prefetch(2);
  const auto read = parts(d, AutoShardPolicy::kFile);
  EXPECT_EQ(sorted(read[0]), (Lines{"0", "0", "2", "2", "4", "4", "5", "5"}));
  EXPECT_EQ(sorted(read[1]), (Lines{"1", "1", "3", "3"}));
}

TEST(AutoShard, WhatCannotBeSplitByFileSaysWhy) {
  const Files f(3);
  EXPECT_EQ(file_split(Dataset::range(8)).why_not, "it reads no files");
  const Dataset lines = TextLineDataset(f.names);
  EXPECT_NE(file_split(lines.concatenate(TextLineDataset(f.names)))
                .why_not.find("both read files"),
            std::string::npos);
  const Dataset some =
      list_files({f.dir.path() + "/*.txt"}).filter([](const Tensors&) {
        return true;
      });
  EXPECT_NE(file_split(some.flat_map(lines_in)).why_not.find("not known"),
            std::string::npos);
  // A chain of numbers makes no files.
  EXPECT_EQ(file_split(Dataset::range(3).flat_map([](const Tensors&) {
              return Dataset::range(2);
            })).at,
            nullptr);
}

TEST(AutoShard, BatchesAreCutSoThatAStepHasTheirSize) {
  const auto sizes = [](const Dataset& d, int64_t tasks) {
    Numbers all;
    for (const Tensors& e : part_of_task(d, AutoShardPolicy::kOff, tasks, 1)) {
      all.push_back(e[0].shape()[0]);
    }
    return all;
  };
  EXPECT_EQ(sizes(Dataset::range(10).batch(4), 2), (Numbers{2, 2, 2, 2, 1, 1}));
  // A batch of one example goes to one task.
  EXPECT_EQ(sizes(Dataset::range(5).batch(4), 3), (Numbers{1, 1, 2, 1}));
  EXPECT_EQ(numbers(part_of_task(Dataset::range(10).batch(4),
                                 AutoShardPolicy::kOff, 2, 1)),
            counting(10));
  EXPECT_THROW(sizes(Dataset::range(4), 2), errors::InvalidArgument);
}

TEST(AutoShard, AHintSplitsWhereItStands) {
  const Dataset d =
      Dataset::range(9).shard(SHARD_HINT, SHARD_HINT).shuffle(9, {.seed = 3});
  EXPECT_TRUE(has_hint(d.node()));
  EXPECT_FALSE(has_hint(Dataset::range(9).shard(2, 0).node()));
  Numbers whole = numbers(d),
          mine =
              numbers(part_of_task(d.batch(2), AutoShardPolicy::kHint, 3, 1));
  std::sort(whole.begin(), whole.end());
  std::sort(mine.begin(), mine.end());
  EXPECT_EQ(whole, counting(9));
  EXPECT_EQ(mine, (Numbers{1, 4, 7}));
  EXPECT_EQ(numbers(part_of_task(
                Dataset::range(4).shard(SHARD_HINT, SHARD_HINT).batch(4),
                AutoShardPolicy::kOff, 2, 1)),
            counting(4));
  EXPECT_THROW(Dataset::range(9).shard(SHARD_HINT, 0), errors::InvalidArgument);
}

TEST(AutoShard, OptionsOfTheLastInTheChainHold) {
  const auto with = [](AutoShardPolicy p) {
    return Options{.experimental_distribute = {.auto_shard_policy = p}};
  };
  const auto policy = [](const Dataset& d) {
    return options_of(d).experimental_distribute.auto_shard_policy;
  };
  const Dataset d = Dataset::range(4);
  EXPECT_EQ(policy(d), AutoShardPolicy::kAuto);
  const Dataset off = with_options(d, with(AutoShardPolicy::kOff));
  EXPECT_EQ(policy(off.batch(2)), AutoShardPolicy::kOff);
  const Dataset last =
      off.batch(2).apply(with_options(with(AutoShardPolicy::kData)));
  EXPECT_EQ(policy(last.prefetch(1)), AutoShardPolicy::kData);
  EXPECT_EQ(numbers(last), counting(4));
  EXPECT_EQ(numbers(off.shuffle(4).batch(4)).size(), 4u);
  EXPECT_THROW(with_options(d, with(static_cast<AutoShardPolicy>(9))),
               errors::InvalidArgument);
}

TEST(AutoShard, TasksKeepWhatTheyReadApart) {
  const Files f(4);
  const Dataset memory = Dataset(TextLineDataset(f.names)).cache().batch(2);
  const std::vector<Lines> wanted{{"0", "2"}, {"1", "3", "4"}};
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(parts(memory, AutoShardPolicy::kFile), wanted);
    EXPECT_EQ(lines_of(memory), (Lines{"0", "1", "2", "3", "4"}));
  }
  const Dataset file =
      Dataset(TextLineDataset(f.names)).cache(f.dir.path() + "/kept").batch(2);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(parts(file, AutoShardPolicy::kFile), wanted);
  }
}

TEST(AutoShard, PassesAreSavedAndRestoredAtEveryPosition) {
  const Files f(5);
  expect_restores([&] {
    return part_of_task(Dataset(TextLineDataset(f.names)).batch(3),
                        AutoShardPolicy::kFile, 2, 0);
  });
  expect_restores([&] {
    return part_of_task(list_files({f.dir.path() + "/*.txt"}, {.seed = 7})
                            .flat_map(lines_in)
                            .batch(3),
                        AutoShardPolicy::kFile, 2, 1);
  });
  expect_restores([] {
    return part_of_task(
        Dataset::range(11).shard(SHARD_HINT, SHARD_HINT).batch(3),
        AutoShardPolicy::kHint, 2, 1);
  });
}

}  // namespace
}  // namespace berth::data
