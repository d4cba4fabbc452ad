// Transforms that combine, cut and group: what they give, and that a saved
// pass goes on as if nothing had happened.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "data/saving_testing.h"

namespace berth::data {
namespace {

using Words = std::vector<std::string>;

int64_t number(const Tensors& e) { return e[0].item<int64_t>(); }

// n zeros, ones, ... : elements of different lengths.
Dataset lengths(const Numbers& all) {
  const auto n = static_cast<int64_t>(all.size());
  return Dataset::from_tensor_slices({constant(all, Shape{n})})
      .map([](const Tensors& e) -> Tensors {
        return {fill({number(e)}, static_cast<double>(number(e)))};
      });
}

// Element i: i, i + 10, i + 20.
Dataset tens(const Tensors& e) {
  const int64_t i = number(e);
  return Dataset::range(i, i + 30, 10);
}

Tensors squares_of(const Tensors& e) { return {math::multiply(e[0], e[0])}; }

TEST(Zip, PutsComponentsSideBySideAndEndsWithTheShortest) {
  const Dataset a = Dataset::range(5), b = Dataset::range(10, 13);
  const Dataset d = Dataset::zip({a, b});
  EXPECT_EQ(d.cardinality(), 3);
  EXPECT_EQ(d.element_spec().size(), 2u);
  int64_t i = 0;
  for (const Tensors& e : d) {
    ASSERT_EQ(e.size(), 2u);
    EXPECT_EQ(e[0].item<int64_t>(), i);
    EXPECT_EQ(e[1].item<int64_t>(), 10 + i++);
  }
  EXPECT_EQ(i, 3);
  EXPECT_EQ(Dataset::zip({a, b.repeat()}).cardinality(), 5);
  EXPECT_THROW(Dataset::zip({}), errors::InvalidArgument);
}

TEST(Concatenate, GoesOnWithTheOther) {
  const Dataset d = Dataset::range(3).concatenate(Dataset::range(7, 9));
  EXPECT_EQ(numbers(d), (Numbers{0, 1, 2, 7, 8}));
  EXPECT_EQ(d.cardinality(), 5);
  const auto vectors = [](int64_t n) {
    return Dataset::from_tensor_slices({iota({2, n})});
  };
  EXPECT_EQ(vectors(3).concatenate(vectors(4)).element_spec()[0].str(),
            "int64[?]");
  const std::string text = message_of<errors::InvalidArgument>(
      [&] { numbers(vectors(3).concatenate(Dataset::range(2))); });
  EXPECT_TRUE(says(text, "concatenate (")) << text;
  EXPECT_TRUE(says(text, "int64[3]")) << text;
}

TEST(Sample, DrawsByWeight) {
  const Dataset a = Dataset::range(1000).repeat();
  const Dataset b = Dataset::range(1000, 2000).repeat();
  const auto draw = [&](uint64_t seed) {
    return numbers(
        Dataset::sample_from_datasets({a, b}, {.weights = {1, 3}, .seed = seed})
            .take(8000));
  };
  const Numbers got = draw(4);
  const auto of_b = std::count_if(got.begin(), got.end(),
                                  [](int64_t n) { return n >= 1000; });
  // Six deviations of a binomial distribution: sqrt(8000 * 3 / 16) = 38.7.
  EXPECT_NEAR(static_cast<double>(of_b), 6000, 233);
  EXPECT_EQ(got, draw(4));
  EXPECT_NE(got, draw(5));
}

TEST(Sample, GoesOnWithTheOthersOrStops) {
  const Dataset a = Dataset::range(4), b = Dataset::range(10, 16);
  Numbers all = numbers(Dataset::sample_from_datasets({a, b}, {.seed = 1}));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (Numbers{0, 1, 2, 3, 10, 11, 12, 13, 14, 15}));
  // a is drawn a fifth time long before the other ends.
  const Dataset many = Dataset::range(10, 2000);
  EXPECT_LT(numbers(Dataset::sample_from_datasets(
                        {a, many}, {.seed = 1, .stop_on_empty_dataset = true}))
                .size(),
            1000u);
  EXPECT_EQ(numbers(Dataset::sample_from_datasets({a, b}, {.weights = {0, 1}})),
            counting(6, 10));
  EXPECT_THROW(Dataset::sample_from_datasets({a, b}, {.weights = {0, 0}}),
               errors::InvalidArgument);
  EXPECT_THROW(Dataset::sample_from_datasets({a, b}, {.weights = {1}}),
               errors::InvalidArgument);
}

TEST(Choose, FollowsTheChoices) {
  const std::vector<Dataset> from = {Dataset::range(3), Dataset::range(10, 20)};
  const auto choices = [](Numbers n) {
    const auto size = static_cast<int64_t>(n.size());
    return Dataset::from_tensor_slices({constant(n, Shape{size})});
  };
  EXPECT_EQ(numbers(Dataset::choose_from_datasets(
                from, choices({1, 0, 1, 0, 0, 0, 1, 1}))),
            (Numbers{10, 0, 11, 1, 2}));
  EXPECT_EQ(numbers(Dataset::choose_from_datasets(
                from, choices({1, 0, 1, 0, 0, 0, 1, 1}),
                {.stop_on_empty_dataset = false})),
            (Numbers{10, 0, 11, 1, 2, 12, 13}));
  const std::string text = message_of<errors::InvalidArgument>([&] {
    numbers(Dataset::choose_from_datasets(from, choices({0, 2})));
  });
  EXPECT_TRUE(says(text, "choice 1 is")) << text;
}

// The orders of tf.data's documentation.
TEST(Interleave, ReadsACycleInBlocks) {
  const auto of_five = [](const Tensors& e) {
    return Dataset::from_tensors({e[0]}).repeat(6);
  };
  const Numbers expected = {1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3,
                            3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5};
  for (int64_t threads : {0, 1, 3, 8}) {
    EXPECT_EQ(numbers(Dataset::range(1, 6).interleave(
                  of_five, {.cycle_length = 2,
                            .block_length = 4,
                            .num_parallel_calls = threads})),
              expected)
        << threads;
  }
}

TEST(Interleave, GivesEveryElementInAnyOrder) {
  Numbers all = numbers(Dataset::range(50).interleave(
      tens,
      {.cycle_length = 7, .num_parallel_calls = 3, .deterministic = false}));
  std::map<int64_t, int> seen, expected;
  for (const int64_t n : all) ++seen[n];
  for (int64_t i = 0; i < 50; ++i) {
    for (int64_t j = 0; j < 30; j += 10) ++expected[i + j];
  }
  EXPECT_EQ(seen, expected);
}

TEST(Interleave, SkipsEmptyDatasetsAndReportsFailures) {
  const auto some = [](const Tensors& e) {
    return Dataset::range(number(e) % 3 == 0 ? 2 : 0);
  };
  for (int64_t threads : {0, 2}) {
    EXPECT_EQ(numbers(Dataset::range(7).interleave(
                  some, {.cycle_length = 3, .num_parallel_calls = threads})),
              (Numbers{0, 1, 0, 1, 0, 1}))
        << threads;
    auto it = Dataset::range(9)
                  .interleave(
                      [](const Tensors& e) -> Dataset {
                        if (number(e) == 4) {
                          throw errors::NotFound("no such file");
                        }
                        return tens(e);
                      },
                      {.cycle_length = 2, .num_parallel_calls = threads})
                  .make_iterator();
    const std::string text = message_of<errors::NotFound>([&] {
      while (it.next()) continue;
    });
    EXPECT_TRUE(says(text, "interleave (")) << text;
    EXPECT_TRUE(says(text, "element 4: no such file")) << text;
  }
  EXPECT_THROW(Dataset::range(2).interleave(tens, {.cycle_length = 0}),
               errors::InvalidArgument);
}

TEST(Interleave, EndsItsThreadsWhenTheReaderGoesAway) {
  for (int i = 0; i < 20; ++i) {
    auto it =
        Dataset::counter()
            .interleave(tens, {.cycle_length = 4, .num_parallel_calls = 4})
            .make_iterator();
    for (int n = 0; n < i; ++n) it.next();
  }
}

TEST(FlatMap, ReadsOneAfterTheOther) {
  EXPECT_EQ(numbers(Dataset::range(3).flat_map(tens)),
            (Numbers{0, 10, 20, 1, 11, 21, 2, 12, 22}));
  EXPECT_EQ(Dataset::range(3).flat_map(tens).element_spec()[0].str(),
            "int64[]");
}

TEST(Batch, IsPutTogetherByThreads) {
  for (const Dataset& d :
       {Dataset::from_tensor_slices({{"x", iota({50, 3})}, {"y", iota({50})}})
            .shuffle(50, {.seed = 2, .reshuffle_each_iteration = false}),
        Dataset::range(50).map(squares_of)}) {
    std::vector<Tensors> serial, parallel;
    for (const Tensors& e : d.batch(8)) serial.push_back(e);
    const Dataset threaded = d.batch(8, {.num_parallel_calls = 3});
    EXPECT_EQ(threaded.cardinality(), 7);
    EXPECT_EQ(threaded.component_names(), d.component_names());
    ASSERT_EQ(threaded.element_spec().size(), d.element_spec().size());
    for (const Tensors& e : threaded) parallel.push_back(e);
    expect_same(parallel, serial, "batches");
  }
  const auto rows =
      Dataset::from_tensor_slices({iota({50, 3})})
          .batch(8, {.drop_remainder = true, .num_parallel_calls = AUTOTUNE});
  EXPECT_EQ(numbers(rows), counting(144));
  auto it = lengths({1, 1, 2, 1})
                .batch(2, {.num_parallel_calls = 2, .deterministic = false})
                .make_iterator();
  EXPECT_THROW(rest_of(it), errors::InvalidArgument);
}

TEST(PaddedBatch, PadsToTheLongest) {
  auto it = lengths({1, 3, 2}).padded_batch(2).make_iterator();
  auto first = *it.next();
  EXPECT_EQ(first[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(first[0].to_vector<int64_t>(), (Numbers{1, 0, 0, 3, 3, 3}));
  auto second = *it.next();
  EXPECT_EQ(second[0].to_vector<int64_t>(), (Numbers{2, 2}));
  EXPECT_EQ(lengths({1, 2}).padded_batch(2).cardinality(), 1);
}

TEST(PaddedBatch, PadsToShapesWithValues) {
  auto it = lengths({1, 3})
                .padded_batch(2, {.padded_shapes = {Shape{4}},
                                  .padding_values = {constant(7)}})
                .make_iterator();
  EXPECT_EQ((*it.next())[0].to_vector<int64_t>(),
            (Numbers{1, 7, 7, 7, 3, 3, 3, 7}));
  const std::string text = message_of<errors::InvalidArgument>([&] {
    numbers(lengths({1, 3}).padded_batch(2, {.padded_shapes = {Shape{2}}}));
  });
  EXPECT_TRUE(says(text, "component 0 of element 1 is")) << text;
  EXPECT_TRUE(says(text, "padded_shapes [2]")) << text;
}

// A box of 2 x 3 x 2 in one of 3 x 3 x 4, next to that one.
TEST(PaddedBatch, PadsEveryDimension) {
  const auto boxes = Dataset::range(2).map([](const Tensors& e) -> Tensors {
    return {number(e) == 0 ? iota({2, 3, 2}) : iota({3, 3, 4}, 100)};
  });
  const Tensors batch = boxes.padded_batch(2).get_single_element();
  EXPECT_EQ(batch[0].shape(), (Shape{2, 3, 3, 4}));
  const Numbers got = batch[0].to_vector<int64_t>();
  Numbers expected(72, 0);
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t k = 0; k < 2; ++k) {
        expected[static_cast<size_t>((i * 3 + j) * 4 + k)] =
            (i * 3 + j) * 2 + k;
      }
    }
  }
  for (size_t i = 0; i < 36; ++i)
    expected[36 + i] = 100 + static_cast<int64_t>(i);
  EXPECT_EQ(got, expected);
}

TEST(PaddedBatch, TakesText) {
  const auto words = Dataset::range(2).map([](const Tensors& e) -> Tensors {
    return {number(e) == 0 ? constant({"a"}) : constant({"b", "c"})};
  });
  EXPECT_EQ(
      words.padded_batch(2).get_single_element()[0].to_vector<std::string>(),
      (Words{"a", "", "b", "c"}));
  EXPECT_EQ(words.padded_batch(2, {.padding_values = {constant("<pad>")}})
                .get_single_element()[0]
                .to_vector<std::string>(),
            (Words{"a", "<pad>", "b", "c"}));
}

TEST(RaggedBatch, KeepsRowsAndSaysWhereTheyEnd) {
  const auto unknown = [](const Dataset& d) {
    // A dataset of unknown length, as one of a file.
    return Dataset::from_generator(
        [d]() -> Generator {
          auto it = std::make_shared<Iterator>(d.make_iterator());
          return [it] { return it->next(); };
        },
        {{Shape{kUnknownDim}, float32}});
  };
  const Tensors batch =
      unknown(lengths({2, 0, 1})).ragged_batch(3).get_single_element();
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[0].to_vector<int64_t>(), (Numbers{2, 2, 1}));
  EXPECT_EQ(batch[1].to_vector<int64_t>(), (Numbers{0, 2, 2, 3}));
  EXPECT_EQ(
      ragged_to_tensor(batch[0], batch[1], constant(9.f)).to_vector<int64_t>(),
      (Numbers{2, 2, 9, 9, 1, 9}));
  EXPECT_EQ(ragged_to_tensor(iota({0}), constant(Numbers{0}, Shape{1}))
                .shape()
                .rank(),
            2);
}

TEST(RaggedBatch, RefusesSplitsThatAreNone) {
  const Tensor values = iota({3});
  for (const Numbers& splits :
       std::vector<Numbers>{{0, 2}, {1, 3}, {0, 2, 1, 3}, {0, 4}, {0, -1, 3}}) {
    const Shape shape{static_cast<int64_t>(splits.size())};
    EXPECT_THROW(ragged_to_tensor(values, constant(splits, shape)),
                 errors::InvalidArgument);
  }
}

int64_t length(const Tensors& e) { return e[0].shape()[0]; }

TEST(Bucket, BatchesSimilarLengths) {
  // Buckets: below 3, 3 and 4, 5 and more.
  std::vector<Shape> shapes;
  for (const Tensors& batch :
       lengths({1, 5, 3, 2, 4, 7, 1})
           .bucket_by_sequence_length(length, {3, 5}, {2, 2, 2})) {
    shapes.push_back(batch[0].shape());
  }
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 2}, {2, 4}, {2, 7}, {1, 1}}));
}

// A source whose lengths vary says so; a map of it, too.
TEST(Map, KnowsWhichLengthsVary) {
  const auto make = [] {
    return [i = int64_t{0}]() mutable -> std::optional<Tensors> {
      if (++i > 4) return std::nullopt;
      return Tensors{fill({2, i % 3 + 1}, static_cast<double>(i))};
    };
  };
  const Dataset mapped =
      Dataset::from_generator(make, {{Shape{2, -1}, float32}})
          .map([](const Tensors& e) -> Tensors {
            return {e[0] * 2.0, ones({7})};
          });
  const auto& specs = mapped.element_spec();
  EXPECT_EQ(specs[0].shape[0], 2);
  EXPECT_LT(specs[0].shape[1], 0);
  EXPECT_EQ(specs[1].shape[0], 7);
  std::vector<Shape> shapes;
  for (const Tensors& batch : mapped.bucket_by_sequence_length(
           [](const Tensors& e) { return e[0].shape()[1]; }, {3, 6}, {2, 2, 2},
           {.pad_to_bucket_boundary = true})) {
    shapes.push_back(batch[0].shape());
    EXPECT_EQ(batch[1].shape()[1], 7);
  }
  // Lengths are 2, 3, 1, 2.
  EXPECT_TRUE(shapes == (std::vector<Shape>{{2, 2, 2}, {1, 2, 2}, {1, 2, 5}}));
  // What a map of other rows gives may vary: the spec says nothing wrong.
  const auto padded = lengths({1, 2, 3}).padded_batch(3);
  EXPECT_LT(padded.element_spec()[0].shape[1], 0);
  EXPECT_EQ(padded.get_single_element()[0].shape(), (Shape{3, 3}));
}

TEST(Bucket, PadsToItsBoundary) {
  const auto padded = [](const Numbers& all) {
    std::vector<Shape> shapes;
    for (const Tensors& batch : lengths(all).bucket_by_sequence_length(
             length, {3, 6}, {2, 2, 2},
             {.padded_shapes = {Shape{-1}}, .pad_to_bucket_boundary = true})) {
      shapes.push_back(batch[0].shape());
    }
    return shapes;
  };
  EXPECT_EQ(padded({1, 4, 1, 3}), (std::vector<Shape>{{2, 2}, {2, 5}}));
  const std::string text = message_of<errors::InvalidArgument>([&] {
    padded({6, 7});
  });
  EXPECT_TRUE(says(text, "the last boundary, 6")) << text;
  EXPECT_THROW(lengths({1}).bucket_by_sequence_length(length, {3}, {2}),
               errors::InvalidArgument);
}

TEST(Unbatch, CutsBatches) {
  EXPECT_EQ(numbers(Dataset::range(7).batch(3).unbatch()), counting(7));
  EXPECT_EQ(Dataset::range(8).batch(4).unbatch().cardinality(), 8);
  EXPECT_EQ(Dataset::range(7).batch(4).unbatch().cardinality(), kUnknown);
  const auto words =
      Dataset::from_tensors({constant({"a", "b"}), iota({2})}).unbatch();
  Words all;
  for (const Tensors& e : words) all.push_back(e[0].item<std::string>());
  EXPECT_EQ(all, (Words{"a", "b"}));
  EXPECT_THROW(numbers(Dataset::range(2).unbatch()), errors::InvalidArgument);
}

TEST(Rebatch, CutsBatchesAnew) {
  const auto sizes = [](const Dataset& d) {
    Numbers all;
    for (const Tensors& e : d) all.push_back(e[0].shape()[0]);
    return all;
  };
  const Dataset d = Dataset::range(11).batch(4);
  EXPECT_EQ(numbers(d.rebatch({3})), counting(11));
  EXPECT_EQ(sizes(d.rebatch({3})), (Numbers{3, 3, 3, 2}));
  EXPECT_EQ(sizes(d.rebatch({3}, {.drop_remainder = true})),
            (Numbers{3, 3, 3}));
  EXPECT_EQ(sizes(d.rebatch({2, 1, 5})), (Numbers{2, 1, 5, 2, 1}));
  EXPECT_EQ(Dataset::range(12).batch(4).rebatch({2, 1, 5}).cardinality(), 6);
  EXPECT_THROW(d.rebatch({}), errors::InvalidArgument);
}

std::vector<Numbers> windows(int64_t n, int64_t size,
                             const WindowOptions& options) {
  std::vector<Numbers> all;
  const Windows w = Dataset::range(n).window(size, options);
  for (const Tensors& e : w.batch()) all.push_back(e[0].to_vector<int64_t>());
  EXPECT_EQ(w.cardinality(), static_cast<int64_t>(all.size()));
  return all;
}

// The examples of tf.data's documentation.
TEST(Window, CutsOverlapsAndStrides) {
  using All = std::vector<Numbers>;
  EXPECT_EQ(windows(7, 3, {}), (All{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(windows(7, 3, {.drop_remainder = true}),
            (All{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(windows(7, 3, {.shift = 2, .stride = 1, .drop_remainder = true}),
            (All{{0, 1, 2}, {2, 3, 4}, {4, 5, 6}}));
  EXPECT_EQ(windows(7, 3, {.shift = 1, .stride = 2, .drop_remainder = true}),
            (All{{0, 2, 4}, {1, 3, 5}, {2, 4, 6}}));
  EXPECT_EQ(windows(7, 2, {.shift = 4}), (All{{0, 1}, {4, 5}}));
  EXPECT_EQ(windows(9, 2, {.shift = 4}), (All{{0, 1}, {4, 5}, {8}}));
  EXPECT_THROW(Dataset::range(2).window(0), errors::InvalidArgument);
  EXPECT_EQ(numbers(Dataset::range(4).window(2).flat_map(
                [](const Dataset& w) { return w.concatenate(w); })),
            (Numbers{0, 1, 0, 1, 2, 3, 2, 3}));
}

TEST(GroupByWindow, CollectsByKey) {
  const auto parity = [](const Tensors& e) { return number(e) % 2; };
  const auto batch = [](int64_t, const Dataset& w) { return w.batch(10); };
  std::vector<Numbers> all;
  for (const Tensors& e :
       Dataset::range(9).group_by_window(parity, batch, {.window_size = 3})) {
    all.push_back(e[0].to_vector<int64_t>());
  }
  EXPECT_EQ(all, (std::vector<Numbers>{{0, 2, 4}, {1, 3, 5}, {6, 8}, {7}}));
  all.clear();
  for (const Tensors& e : Dataset::range(9).group_by_window(
           parity, batch,
           {.window_size_func = [](int64_t key) { return key + 1; }})) {
    all.push_back(e[0].to_vector<int64_t>());
  }
  EXPECT_EQ(all,
            (std::vector<Numbers>{{0}, {2}, {1, 3}, {4}, {6}, {5, 7}, {8}}));
  EXPECT_THROW(Dataset::range(2).group_by_window(parity, batch, {}),
               errors::InvalidArgument);
}

TEST(Shard, TakesEveryNth) {
  for (const Dataset& d : {Dataset::range(7), unindexed(Dataset::range(7))}) {
    EXPECT_EQ(numbers(d.shard(3, 0)), (Numbers{0, 3, 6}));
    EXPECT_EQ(numbers(d.shard(3, 2)), (Numbers{2, 5}));
    EXPECT_EQ(d.shard(3, 0).cardinality(), 3);
    EXPECT_EQ(d.shard(3, 2).cardinality(), 2);
    EXPECT_EQ(numbers(d.shard(9, 8)), Numbers{});
  }
  EXPECT_THROW(Dataset::range(2).shard(2, 2), errors::InvalidArgument);
  EXPECT_THROW(Dataset::range(2).shard(0, 0), errors::InvalidArgument);
}

TEST(Enumerate, PutsTheNumberFirst) {
  int64_t i = 5;
  for (const Tensors& e : Dataset::range(10, 13).enumerate(5)) {
    EXPECT_EQ(e[0].item<int64_t>(), i);
    EXPECT_EQ(e[1].item<int64_t>(), i++ + 5);
  }
  EXPECT_EQ(i, 8);
  EXPECT_EQ(Dataset::range(2).enumerate().element_spec().size(), 2u);
}

TEST(TakeWhile, EndsWithTheFirstThatFails) {
  EXPECT_EQ(numbers(Dataset::counter().take_while(
                [](const Tensors& e) { return number(e) < 4; })),
            counting(4));
}

TEST(Scan, CarriesItsState) {
  const auto sums = [](const Tensors& state,
                       const Tensors& e) -> std::pair<Tensors, Tensors> {
    const Tensor sum = state[0] + e[0];
    return {{sum}, {sum}};
  };
  EXPECT_EQ(numbers(Dataset::range(6).scan({constant(int64_t{0})}, sums)),
            (Numbers{0, 1, 3, 6, 10, 15}));
}

TEST(Unique, DropsWhatCameBefore) {
  EXPECT_EQ(numbers(Dataset::range(3).repeat(3).unique()), counting(3));
  const auto words =
      Dataset::from_tensor_slices({constant({"a", "b", "a", "", "b", "ab"})});
  Words all;
  for (const Tensors& e : words.unique()) {
    all.push_back(e[0].item<std::string>());
  }
  EXPECT_EQ(all, (Words{"a", "b", "", "ab"}));
}

TEST(RejectionResample, BringsClassesToTheTarget) {
  // Nine of ten are class 0; half and half is asked for.
  const auto rare = [](const Tensors& e) {
    return int64_t{number(e) % 10 == 0};
  };
  for (const std::vector<double>& initial :
       std::vector<std::vector<double>>{{}, {0.9, 0.1}}) {
    int64_t ones = 0, all = 0;
    for (const Tensors& e : Dataset::range(30000).rejection_resample(
             rare, {0.5, 0.5}, {.initial_dist = initial, .seed = 3})) {
      ASSERT_EQ(e[0].item<int64_t>(), e[1].item<int64_t>() % 10 == 0);
      ones += e[0].item<int64_t>();
      ++all;
    }
    // All of the rare class are kept, but for some of the first where its share
    // is estimated; of the other as many, within six deviations: sqrt(3000).
    EXPECT_NEAR(static_cast<double>(ones), 3000, initial.empty() ? 10 : 0);
    EXPECT_NEAR(static_cast<double>(all), 6000, 330);
  }
}

TEST(Sources, CountDrawAndRepeat) {
  EXPECT_EQ(numbers(Dataset::counter(5, -2).take(4)), (Numbers{5, 3, 1, -1}));
  EXPECT_EQ(Dataset::counter().cardinality(), kInfinite);
  const auto drawn = [](uint64_t seed, bool anew) {
    return Dataset::random({.seed = seed, .rerandomize_each_iteration = anew})
        .take(4000);
  };
  const Numbers a = numbers(drawn(1, false));
  EXPECT_EQ(a, numbers(drawn(1, false)));
  EXPECT_NE(a, numbers(drawn(2, false)));
  double mean = 0;
  for (const int64_t n : a) {
    ASSERT_GE(n, 0);
    ASSERT_LT(n, int64_t{1} << 32);
    mean += static_cast<double>(n) / 4000;
  }
  // Six deviations: 2^32 / sqrt(12 * 4000) each.
  EXPECT_NEAR(mean, 0x1p31, 6 * 0x1p32 / 219);
  const Dataset same = drawn(1, false), anew = drawn(1, true);
  EXPECT_EQ(numbers(same), numbers(same));
  EXPECT_NE(numbers(anew), numbers(anew));
  EXPECT_EQ(Dataset::from_tensors({iota({2})}).cardinality(), 1);
}

TEST(Reduce, FoldsAllElements) {
  const Tensors sum = Dataset::range(10).reduce(
      {constant(int64_t{0})},
      [](const Tensors& s, const Tensors& e) -> Tensors {
        return {s[0] + e[0]};
      });
  EXPECT_EQ(number(sum), 45);
  EXPECT_EQ(number(Dataset::range(3, 4).get_single_element()), 3);
  EXPECT_THROW(Dataset::range(2).get_single_element(), errors::InvalidArgument);
  EXPECT_THROW(Dataset::range(0).get_single_element(), errors::InvalidArgument);
  EXPECT_EQ(numbers(Dataset::range(5).apply(
                [](const Dataset& d) { return d.take(2); })),
            counting(2));
}

struct Transformed {
  const char* name;
  std::function<Dataset()> make;
  bool seeded = true;
};

const std::vector<Transformed> kTransformed = {
    {"zip",
     [] {
       return Dataset::zip({Dataset::range(5), Dataset::range(9)});
     }},
    {"concatenate",
     [] {
       return Dataset::range(3).concatenate(
           Dataset::range(5).shuffle(5).repeat(2));
     },
     false},
    {"sample",
     [] {
       return Dataset::sample_from_datasets(
           {Dataset::range(9), Dataset::range(20, 25)}, {.seed = 2});
     }},
    {"sample anew",
     [] {
       return Dataset::sample_from_datasets(
           {Dataset::range(9), Dataset::range(20, 25)},
           {.rerandomize_each_iteration = true});
     },
     false},
    {"choose",
     [] {
       return Dataset::choose_from_datasets(
           {Dataset::range(9), Dataset::range(20, 25)},
           Dataset::range(2).repeat());
     }},
    {"interleave",
     [] {
       return Dataset::range(6).interleave(
           tens, {.cycle_length = 3, .block_length = 2});
     }},
    {"parallel interleave",
     [] {
       return Dataset::range(9).interleave(
           [](const Tensors& e) { return tens(e).prefetch(2); },
           {.cycle_length = 3, .block_length = 2, .num_parallel_calls = 2});
     }},
    {"flat_map", [] { return Dataset::range(5).flat_map(tens); }},
    {"parallel batch",
     [] {
       return unindexed(Dataset::range(20)).batch(3, {.num_parallel_calls = 2});
     }},
    {"parallel batch of rows",
     [] {
       return Dataset::range(20)
           .shuffle(20, {.seed = 1})
           .batch(3, {.num_parallel_calls = 2});
     }},
    {"padded_batch",
     [] {
       return lengths({1, 3, 2, 5, 4}).padded_batch(2);
     }},
    {"ragged_batch",
     [] {
       return lengths({2, 2, 2}).ragged_batch(2);
     }},
    {"bucket",
     [] {
       return lengths({1, 5, 3, 2, 4, 7, 1, 2})
           .bucket_by_sequence_length(length, {3, 5}, {2, 2, 3});
     }},
    {"unbatch", [] { return Dataset::range(11).batch(3).unbatch(); }},
    {"rebatch",
     [] {
       return Dataset::range(11).batch(3).rebatch({2, 1});
     }},
    {"window",
     [] {
       return Dataset::range(11)
           .window(3, {.shift = 2, .stride = 2})
           .flat_map([](const Dataset& w) { return w.batch(2); });
     }},
    {"group_by_window",
     [] {
       return unindexed(Dataset::range(15))
           .group_by_window([](const Tensors& e) { return number(e) % 3; },
                            [](int64_t, const Dataset& w) { return w; },
                            {.window_size = 2});
     }},
    {"shard", [] { return Dataset::range(11).shard(3, 1); }},
    {"enumerate", [] { return Dataset::range(5).enumerate(2); }},
    {"take_while",
     [] {
       return Dataset::range(9).take_while(
           [](const Tensors& e) { return number(e) < 6; });
     }},
    {"scan",
     [] {
       return Dataset::range(6).scan(
           {constant(int64_t{1})},
           [](const Tensors& s,
              const Tensors& e) -> std::pair<Tensors, Tensors> {
             return {{s[0] + e[0]}, {s[0]}};
           });
     }},
    {"unique", [] { return Dataset::range(4).repeat(3).unique(); }},
    {"rejection_resample",
     [] {
       return Dataset::range(40).rejection_resample(
           [](const Tensors& e) { return number(e) % 2; }, {0.2, 0.8},
           {.seed = 8});
     }},
    {"counter", [] { return Dataset::counter(3, 2).take(9); }},
    {"random", [] { return Dataset::random().take(9); }, false},
};

class SavedTransform : public testing::TestWithParam<Transformed> {};
TEST_P(SavedTransform, GoesOnWhereItStood) {
  expect_restores(GetParam().make, GetParam().seeded);
}
INSTANTIATE_TEST_SUITE_P(All, SavedTransform, testing::ValuesIn(kTransformed),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace berth::data
