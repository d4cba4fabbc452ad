#include "data/row_transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "berth/errors.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "data/saving_testing.h"

namespace berth::data {
namespace {

Dataset bytes_and_ids() {
  std::vector<uint8_t> bytes(40);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  return Dataset::from_tensor_slices(
      {constant(bytes, {10, 4}), iota({10}, 100)});
}

void halve(const RowIn& in, RowOut& out, RowRandom&) {
  const auto from = in.get<uint8_t>(0);
  const auto to = out.get<float>(0);
  for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] * 0.5f;
  out.get<int64_t>(1)[0] = in.get<int64_t>(1)[0];
}

const std::vector<TensorSpec> kHalves = {{Shape{4}, float32, "x"},
                                         {Shape{}, int64, "id"}};

TEST(MapRows, WriteIntoTheBatchInAnyOrder) {
  for (const Dataset& d :
       {bytes_and_ids(), bytes_and_ids().shuffle(10, {.seed = 1}).skip(2),
        unindexed(bytes_and_ids())}) {
    const Dataset batches = d.map_rows(halve, kHalves).batch(3);
    int64_t rows = 0;
    for (const Element& e : batches) {
      const auto x = e["x"].to_vector<float>();
      const auto id = e["id"].to_vector<int64_t>();
      for (size_t i = 0; i < id.size(); ++i, ++rows) {
        for (size_t k = 0; k < 4; ++k) {
          const auto byte =
              static_cast<float>(4 * (id[i] - 100)) + static_cast<float>(k);
          EXPECT_EQ(x[4 * i + k], byte / 2);
        }
      }
    }
    EXPECT_EQ(rows, d.cardinality());
  }
  // Shuffle after it moves row numbers, not elements.
  EXPECT_NE(bytes_and_ids().map_rows(halve, kHalves).shuffle(4).node().rows(),
            nullptr);
}

// Element -> the number it drew.
std::map<int64_t, int64_t> draws(const Dataset& d) {
  std::map<int64_t, int64_t> all;
  for (const Tensors& e : d.batch(4)) {
    const auto id = e[0].to_vector<int64_t>();
    const auto drawn = e[1].to_vector<int64_t>();
    for (size_t i = 0; i < id.size(); ++i) all[id[i]] = drawn[i];
  }
  return all;
}

TEST(MapRows, DrawTheNumbersOfTheirElement) {
  const auto map = [](const Dataset& d, uint64_t seed) {
    return d.map_rows(
        [](const RowIn& in, RowOut& out, RowRandom& random) {
          out.get<int64_t>(0)[0] = in.get<int64_t>(0)[0];
          out.get<int64_t>(1)[0] =
              static_cast<int64_t>(random.below(1'000'000'000));
        },
        {{Shape{}, int64}, {Shape{}, int64}}, {.seed = seed});
  };
  const Dataset d = map(Dataset::range(30), 5);
  const auto first = draws(d), second = draws(d);
  EXPECT_EQ(first.size(), 30u);
  EXPECT_NE(first, second);  // each iteration has its own
  EXPECT_EQ(draws(map(Dataset::range(30), 5).shuffle(30)), first);
  EXPECT_EQ(draws(map(unindexed(Dataset::range(30)), 5)), first);
  EXPECT_EQ(draws(map(Dataset::range(30), 5).repeat(2)), second);
  EXPECT_NE(draws(map(Dataset::range(30), 6)), first);
  std::vector<int64_t> numbers;
  for (const auto& [id, number] : first) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

// 12,000 draws: within 5 standard deviations of what they should be.
TEST(MapRows, DrawEvenly) {
  RowRandom random(1, 2);
  double sum = 0, normals = 0, squares = 0;
  std::map<uint64_t, int> counts;
  for (int i = 0; i < 12000; ++i) {
    const float u = random.uniform(2, 4), z = random.normal();
    EXPECT_GE(u, 2);
    EXPECT_LT(u, 4);
    sum += u;
    normals += z;
    squares += double{z} * z;
    ++counts[random.below(3)];
  }
  EXPECT_NEAR(sum / 12000, 3, 0.027);
  EXPECT_NEAR(normals / 12000, 0, 0.046);
  EXPECT_NEAR(squares / 12000, 1, 0.065);
  for (const auto& [value, n] : counts) EXPECT_NEAR(n, 4000, 259) << value;
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_THROW(random.below(0), errors::InvalidArgument);
}

TEST(MapRows, RefuseWhatDoesNotFit) {
  const auto text = [](RowFunction fn) {
    auto it = bytes_and_ids().map_rows(std::move(fn), kHalves).make_iterator();
    return message_of<errors::InvalidArgument>([&] { it.next(); });
  };
  const std::string dtype =
      text([](const RowIn& in, RowOut&, RowRandom&) { in.get<float>(0); });
  EXPECT_TRUE(has(dtype, "map_rows (")) << dtype;
  EXPECT_TRUE(has(dtype,
                  "element 0: component 0 was asked for as float32; it is "
                  "uint8[4]"))
      << dtype;
  EXPECT_TRUE(has(
      text([](const RowIn&, RowOut& out, RowRandom&) { out.get<float>(2); }),
      "component 2 was asked for; the row has 2"));
  EXPECT_TRUE(
      has(message_of<errors::InvalidArgument>([] {
            bytes_and_ids().map_rows(halve, {{Shape{kUnknownDim}, float32}});
          }),
          "a shape that is known"));
}

TEST(Vectorized, CallsTheFunctionWithWholeBatches) {
  std::atomic<int> calls{0};
  const Dataset d = Dataset::range(20)
                        .map(
                            [&](const Tensors& e) {
                              ++calls;
                              return Tensors{e[0] * e[0]};
                            },
                            {.vectorized = true})
                        .shuffle(20, {.seed = 2})
                        .batch(5);
  Numbers all = numbers(d);
  EXPECT_EQ(calls, 4);
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_EQ(all[static_cast<size_t>(i)], i * i);
  // Elements that are not rows: one by one.
  EXPECT_EQ(numbers(unindexed(Dataset::range(3))
                        .map(
                            [](const Tensors& e) {
                              EXPECT_EQ(e[0].shape(), Shape{1});
                              return e;
                            },
                            {.vectorized = true})),
            counting(3));
  auto bad = Dataset::range(6)
                 .map([](const Tensors&) { return Tensors{constant(1)}; },
                      {.vectorized = true})
                 .batch(3)
                 .make_iterator();
  EXPECT_TRUE(has(message_of<errors::InvalidArgument>([&] { bad.next(); }),
                  "for 3 elements; expected as many"));
}

Dataset drawn(int64_t threads) {
  return Dataset::range(40).map(
      [](const Tensors&) { return Tensors{random::uniform({4})}; },
      {.num_parallel_calls = threads});
}

TEST(MapRandom, NumbersFollowTheElementNotTheThread) {
  const auto all = [](int64_t threads) {
    auto it = drawn(threads).make_iterator();
    return rest_of(it);
  };
  const auto alone = all(0);
  expect_same(all(3), alone, "three threads");
  for (size_t i = 1; i < alone.size(); ++i) {
    EXPECT_FALSE(same_bits(alone[i], alone[i - 1]));
  }
}

TEST(MapRandom, IsRestored) {
  expect_restores([] { return drawn(0).repeat(2); }, true, 45);
  expect_restores([] { return drawn(2).prefetch(3); });
  expect_restores([] {
    return bytes_and_ids()
        .map_rows(halve, kHalves)
        .shuffle(7, {.seed = 1})
        .repeat(2)
        .batch(4)
        .prefetch(2);
  });
  expect_restores([] {
    return unindexed(Dataset::range(9))
        .map_rows(
            [](const RowIn&, RowOut& out, RowRandom& random) {
              out.get<float>(0)[0] = random.normal();
            },
            {{Shape{}, float32}}, {.seed = 3});
  });
}

}  // namespace
}  // namespace berth::data
