#include "berth/ops/indexing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/variable.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

TEST(Gather, TakesFromTheRowOfItsBatch) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(floats(gather(x, constant({{2, 0}, {1, 1}}),
                          GatherOptions{.axis = 1, .batch_dims = 1})),
            (Floats{2, 0, 4, 4}));
  EXPECT_EQ(gather(x, zeros({2, 4, 5}, int32), GatherOptions{.batch_dims = 1})
                .shape(),
            Shape({2, 4, 5}));
  expect_invalid(
      [&] {
        gather(x, zeros({3, 2}, int32),
               GatherOptions{.axis = 1, .batch_dims = 1});
      },
      "expected equal first 1 axes");
  expect_invalid(
      [&] {
        gather(x, constant({{0}, {3}}), GatherOptions{.batch_dims = 1})
            .to_vector<float>();
      },
      "index 3 at place 1");
}

TEST(GatherNd, TakesElementsAndSlices) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(floats(gather_nd(x, constant({{1, 2}, {0, 1}}))), (Floats{5, 1}));
  EXPECT_EQ(floats(gather_nd(x, constant({{1}}))), (Floats{3, 4, 5}));
  expect_invalid(
      [&] {
        gather_nd(x, constant({{0, 0}, {1, 3}})).to_vector<float>();
      },
      "coordinate 1 of index 1 is 3, out of range for [2,3]; expected one in "
      "[0, 3)");
  expect_invalid([&] { gather_nd(x, zeros({1, 3}, int32)); }, "at most 2");
}

TEST(ScatterNd, AddsAndUpdates) {
  const Tensor at = constant({{3}, {0}, {3}});
  const Tensor u = constant({1.f, 2.f, 4.f});
  EXPECT_EQ(floats(scatter_nd(at, u, {5})), (Floats{2, 0, 0, 5, 0}));
  const Tensor x = ones({5});
  EXPECT_EQ(floats(tensor_scatter_nd_add(x, at, u)), (Floats{3, 1, 1, 6, 1}));
  EXPECT_EQ(floats(tensor_scatter_nd_sub(x, at, u)), (Floats{-1, 1, 1, -4, 1}));
  EXPECT_EQ(floats(tensor_scatter_nd_update(x, at, u)),
            (Floats{2, 1, 1, 4, 1}));
  EXPECT_EQ(floats(tensor_scatter_nd_max(x, at, u)), (Floats{2, 1, 1, 4, 1}));
  EXPECT_EQ(floats(tensor_scatter_nd_min(x, at, -u)),
            (Floats{-2, 1, 1, -4, 1}));
  EXPECT_EQ(floats(x), Floats(5, 1));
  expect_invalid([&] { scatter_nd(at, zeros({2}), {5}); }, "expected [3]");
}

TEST(Variable, ScatterUpdatesChangeOnlyTheirRows) {
  const Variable v(ones({3, 2}));
  const Tensor rows = constant({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  v.scatter_add({rows, constant({2, 0, 2})});
  EXPECT_EQ(floats(v), (Floats{4, 5, 1, 1, 7, 9}));
  v.scatter_update({constant({{9.f, 9.f}}), constant({1})});
  v.scatter_sub({constant({{1.f, 1.f}}), constant({0})});
  v.scatter_mul({constant({{2.f, 3.f}}), constant({2})});
  v.scatter_div({constant({{3.f, 2.f}}), constant({1})});
  EXPECT_EQ(floats(v), (Floats{3, 4, 3, 4.5f, 14, 27}));
  v.scatter_min({constant({{0.f, 9.f}}), constant({0})});
  v.scatter_max({constant({{0.f, 9.f}}), constant({1})});
  EXPECT_EQ(floats(v), (Floats{0, 4, 3, 9, 14, 27}));
  v.scatter_nd_add(constant({{0, 0}}), constant({5.f}));
  v.scatter_nd_sub(constant({{0, 0}}), constant({1.f}));
  v.scatter_nd_update(constant({{2}}), constant({{1.f, 2.f}}));
  EXPECT_EQ(floats(v), (Floats{4, 4, 3, 9, 1, 2}));
}

TEST(Variable, ScatterWithAWrongIndexTearsIt) {
  const Variable v(ones({3}));
  expect_invalid(
      [&] {
        v.scatter_add({constant({1.f, 2.f}), constant({0, 3})});
        floats(v);
      },
      "index 3 at place 1 of the indices is out of range for axis 0 of [3]");
  EXPECT_THROW(floats(v), errors::FailedPrecondition);
  v.assign(ones({3}));
  expect_invalid(
      [&] {
        v.scatter_add({ones({1, 2}), constant({0})});
      },
      "expected [1]");
  expect_invalid(
      [&] {
        v.scatter_add({zeros({1}, int32), constant({0})});
      },
      "int32");
}

TEST(Variable, ScatterUpdatesWorkInTraces) {
  const Variable v(zeros({4}));
  const auto step = function([&](const Tensor& i) {
    v.scatter_add({ones({2}), i});
    return v.value() * 2.0;
  });
  EXPECT_EQ(floats(step(constant({1, 1}))), (Floats{0, 4, 0, 0}));
  EXPECT_EQ(floats(step(constant({3, 1}))), (Floats{0, 6, 0, 2}));
}

TEST(Segments, GroupRowsByIds) {
  const Tensor x = constant({{1.f, 2.f}, {3.f, -4.f}, {5.f, 6.f}});
  const Tensor ids = constant({0, 0, 2});
  EXPECT_EQ(floats(segment_sum(x, ids)), (Floats{4, -2, 0, 0, 5, 6}));
  EXPECT_EQ(floats(segment_mean(x, ids)), (Floats{2, -1, 0, 0, 5, 6}));
  EXPECT_EQ(floats(segment_prod(x, ids)), (Floats{3, -8, 1, 1, 5, 6}));
  EXPECT_EQ(floats(segment_min(x, ids)), (Floats{1, -4, 0, 0, 5, 6}));
  EXPECT_EQ(floats(segment_max(x, ids)), (Floats{3, 2, 0, 0, 5, 6}));
  EXPECT_EQ(segment_sum(x, ids, {.num_segments = 4}).shape(), Shape({4, 2}));
  EXPECT_EQ(floats(unsorted_segment_mean(x, constant({1, -1, 1}), 2)),
            (Floats{0, 0, 3, 4}));
  EXPECT_EQ(unsorted_segment_max(x, ids, 2 + 1).to_vector<float>()[2],
            std::numeric_limits<float>::lowest());
  expect_invalid(
      [&] {
        segment_sum(x, constant({0, 2, 1}));
      },
      "segment id 1 at place 2");
  expect_invalid([&] { unsorted_segment_sum(x, ids, 2).to_vector<float>(); },
                 "segment 2 at place 2 of the ids is out of range");
  expect_invalid([&] { segment_sum(x, constant({0, 1})); }, "the ids are [2]");
}

TEST(Segments, NeedTheirNumberInATrace) {
  const Tensor ids = constant({0, 1, 1});
  const auto without =
      function([&](const Tensor& i) { return segment_sum(ones({3}), i); });
  expect_invalid([&] { without(ids); }, "expected num_segments");
  const auto with = function([&](const Tensor& i) {
    return segment_mean(counted({3}), i, {.num_segments = 2});
  });
  EXPECT_EQ(floats(with(ids)), (Floats{0, 1.5f}));
}

TEST(Bincount, CountsOrAddsWeights) {
  const Tensor x = constant({1, 3, 1, 0});
  EXPECT_EQ(ints(bincount(x)), (Ints{1, 2, 0, 1}));
  EXPECT_EQ(ints(bincount(x, {.minlength = 5})), (Ints{1, 2, 0, 1, 0}));
  EXPECT_EQ(ints(bincount(x, {.maxlength = 2})), (Ints{1, 2}));
  EXPECT_EQ(floats(bincount(x, {.weights = constant({.5f, 1.f, 2.f, 3.f})})),
            (Floats{3, 2.5f, 0, 1}));
  EXPECT_EQ(ints(bincount(zeros({0}, int32))), Ints());
  expect_invalid([] { bincount(constant({-1})); }, "x holds -1");
  EXPECT_EQ(ints(histogram_fixed_width(
                constant({-1.f, 0.f, 1.5f, 2.f, 5.f, 15.f, NAN}), 0, 5, 5)),
            (Ints{2, 1, 1, 0, 2}));
}

TEST(TopK, PutsTheFirstOfEqualsFirst) {
  const TopK t = top_k(constant({{1, 5, 5, 2}, {7, 0, 7, 7}}), 3);
  EXPECT_EQ(ints(t.values), (Ints{5, 5, 2, 7, 7, 7}));
  EXPECT_EQ(ints(t.indices), (Ints{1, 2, 3, 0, 2, 3}));
  expect_invalid([] { top_k(constant({1, 2}), 3); }, "k is 3; expected 0 to 2");
  expect_invalid([] { top_k(constant(1)); }, "scalar");
  const Floats nan = floats(top_k(constant({1.f, NAN, INFINITY}), 3).values);
  EXPECT_TRUE(std::isnan(nan[0]));
  EXPECT_EQ(nan[1], INFINITY);
}

TEST(TopK, GradientGoesToTheChosenPlaces) {
  EXPECT_EQ(floats(adjoint(constant({1.f, 9.f, 4.f}), constant({10.f, 20.f}),
                           [](const Tensor& t) { return top_k(t, 2).values; })),
            (Floats{0, 10, 20}));
}

TEST(InTopK, CountsTiesIn) {
  const Tensor p =
      constant({{.1f, .5f, .5f}, {.9f, .2f, .3f}, {0.f, NAN, 1.f}});
  EXPECT_EQ(ints(in_top_k(constant({2, 2, 2}), p, 1)), (Ints{1, 0, 0}));
  EXPECT_EQ(ints(in_top_k(constant({0, 3, -1}), p, 3)), (Ints{1, 0, 0}));
}

TEST(Sort, IsStableAlongAnyAxis) {
  const Tensor x = constant({{3, 1}, {2, 1}, {3, 0}});
  EXPECT_EQ(ints(sort(x)), (Ints{1, 3, 1, 2, 0, 3}));
  EXPECT_EQ(ints(sort(x, {.axis = 0})), (Ints{2, 0, 3, 1, 3, 1}));
  EXPECT_EQ(ints(argsort(x, {.axis = 0})), (Ints{1, 2, 0, 0, 2, 1}));
  EXPECT_EQ(ints(argsort(x, {.axis = 0, .direction = "DESCENDING"})),
            (Ints{0, 0, 2, 1, 1, 2}));
  expect_invalid([&] { sort(x, {.direction = "UP"}); }, "direction is 'UP'");
  // The smallest integer has no negative.
  EXPECT_EQ(ints(argsort(constant({INT32_MAX, INT32_MIN, 0}))),
            (Ints{1, 2, 0}));
  EXPECT_EQ(floats(adjoint(constant({3.f, 1.f, 2.f}), counted({3}),
                           [](const Tensor& t) { return sort(t); })),
            (Floats{2, 0, 1}));
}

TEST(Search, FindsBothSidesOfEquals) {
  const Tensor sorted = constant({1, 3, 3, 5});
  const Tensor v = constant({0, 3, 6});
  EXPECT_EQ(ints(searchsorted(sorted, v)), (Ints{0, 1, 4}));
  EXPECT_EQ(ints(searchsorted(sorted, v, {.side = "right"})), (Ints{0, 3, 4}));
  EXPECT_EQ(ints(invert_permutation(constant({2, 0, 1}))), (Ints{1, 2, 0}));
  expect_invalid(
      [] {
        ints(invert_permutation(constant({0, 0})));
      },
      "0 appears twice");
  expect_invalid(
      [] {
        ints(invert_permutation(constant({0, 2})));
      },
      "index 2 at place 1");
}

TEST(Where, ListsIndicesOfTrueElements) {
  const Tensor c = math::cast(constant({{1, 0}, {1, 1}}), bool_);
  EXPECT_EQ(ints(where(c)), (Ints{0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(where(zeros({3})).shape(), Shape({0, 1}));
  EXPECT_EQ(where(constant(true)).shape(), Shape({1, 0}));
  // Rows of no elements are rows.
  EXPECT_EQ(boolean_mask(zeros({2, 2, 0}), c).shape(), Shape({3, 0}));
  EXPECT_EQ(
      boolean_mask(zeros({2, 2, 0, 3}), c, {.max_size = 3}).values.shape(),
      Shape({3, 0, 3}));
  EXPECT_EQ(floats(boolean_mask(counted({2, 2, 2}), c)),
            (Floats{0, 1, 4, 5, 6, 7}));
  expect_invalid(
      [&] {
        boolean_mask(zeros({2, 3}), c);
      },
      "the mask is [2,2], x is [2,3]");
}

TEST(Where, InATraceNeedsMaxSizeAndPads) {
  const Tensor c = constant({true, false, true});
  const auto without = function([](const Tensor& x) { return where(x); });
  expect_invalid([&] { without(c); }, "expected max_size");
  const auto with = function([](const Tensor& x) {
    const Padded w = where(x, {.max_size = 3});
    const Padded m = boolean_mask(counted({3, 2}), x, {.max_size = 3});
    return Tensors{w.values, w.count, m.values};
  });
  const Tensors r = with(c);
  EXPECT_EQ(ints(r[0]), (Ints{0, 2, 0}));
  EXPECT_EQ(r[1].item<int>(), 2);
  EXPECT_EQ(floats(r[2]), (Floats{0, 1, 4, 5, 0, 0}));
  expect_invalid([&] { ints(where(c, {.max_size = 1}).values); },
                 "more true elements than max_size, 1");
}

TEST(Unique, KeepsTheOrderOfAppearance) {
  const Unique u = unique_with_counts(constant({4, 2, 4, 9, 2, 4}));
  EXPECT_EQ(ints(u.y), (Ints{4, 2, 9}));
  EXPECT_EQ(ints(u.idx), (Ints{0, 1, 0, 2, 1, 0}));
  EXPECT_EQ(ints(u.count), (Ints{3, 2, 1}));
  EXPECT_EQ(u.size.item<int>(), 3);
  EXPECT_EQ(unique(constant({NAN, NAN, 0.f, -0.f})).y.shape(), Shape({3}));
  // More than a small table holds, with a pattern that is easy to hash badly.
  std::vector<float> many;
  for (int i = 0; i < 9000; ++i) {
    many.push_back(static_cast<float>(i % 3000) * 1024);
  }
  const Unique m = unique_with_counts(constant(many, {9000}));
  EXPECT_EQ(m.y.to_vector<float>(),
            std::vector<float>(many.begin(), many.begin() + 3000));
  EXPECT_EQ(m.count.to_vector<int>(), std::vector<int>(3000, 3));
  const auto at = m.idx.to_vector<int>();
  for (int i = 0; i < 9000; ++i) ASSERT_EQ(at[i], i % 3000);
  const Unique p = unique(constant({4, 2, 4}), {.max_size = 5});
  EXPECT_EQ(ints(p.y), (Ints{4, 2, 0, 0, 0}));
  const auto without = function([](const Tensor& x) { return unique(x).y; });
  expect_invalid([&] { without(constant({1, 2})); }, "expected max_size");
}

TEST(Squeeze, SettlesItsAxesWhereLengthsAreUnknown) {
  ShapesOnly shapes;
  const DispatchGuard guard(&shapes);
  EXPECT_EQ(squeeze(symbol({1, -1, 1, 3})).shape(), Shape({-1, 3}));
}

// Numbers with ties, both zeros and NaNs, in no order.
std::vector<float> unordered(int64_t n, int64_t range) {
  std::vector<float> x(static_cast<size_t>(n));
  uint64_t state = 12345;
  for (float& v : x) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto draw = static_cast<int64_t>((state >> 33) % (2 * range)) - range;
    v = draw == range - 1 ? NAN : static_cast<float>(draw) / 4;
    if (draw == 0 && (state >> 60) % 2 == 0) v = -0.0f;
  }
  return x;
}

// By the words of the header: NaN is the largest, equals keep their order.
std::vector<float> in_order(std::vector<float> x, bool down) {
  const auto less = [](float a, float b) {
    return a != a ? false : (b != b ? true : a < b);
  };
  std::stable_sort(x.begin(), x.end(), [&](float a, float b) {
    return down ? less(b, a) : less(a, b);
  });
  return x;
}

TEST(Sort, ValuesHaveTheBitsOfAStableSort) {
  for (const int64_t n : {1, 5, 95, 97, 1000, 40000}) {
    for (const int64_t range : {3, 1 << 20}) {
      for (const bool down : {false, true}) {
        const std::vector<float> x = unordered(n, range);
        const Tensor sorted = sort(
            constant(x, {n}), {.direction = down ? "DESCENDING" : "ASCENDING"});
        const std::vector<float> got = sorted.to_vector<float>();
        const std::vector<float> expected = in_order(x, down);
        ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size() * 4), 0)
            << n << " in " << range << (down ? " down" : " up");
      }
    }
  }
  const std::vector<int64_t> wide = {INT64_MAX, -1, INT64_MIN, 0, 1};
  EXPECT_EQ(sort(constant(wide, {5})).to_vector<int64_t>(),
            (std::vector<int64_t>{INT64_MIN, -1, 0, 1, INT64_MAX}));
}

}  // namespace
}  // namespace berth::test
