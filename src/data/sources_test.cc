#include <gtest/gtest.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "data/testing.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::data {
namespace {

using errors::InvalidArgument;

TEST(FromTensorSlices, CutsEveryComponentAlongItsFirstDimension) {
  const auto d = Dataset::from_tensor_slices({iota({3, 2}), iota({3})});
  EXPECT_EQ(d.cardinality(), 3);
  ASSERT_EQ(d.element_spec().size(), 2u);
  EXPECT_EQ(d.element_spec()[0].str(), "int64[2]");
  EXPECT_EQ(d.element_spec()[1].shape.rank(), 0);
  int64_t i = 0;
  for (const Tensors& element : d) {
    EXPECT_EQ(element[0].to_vector<int64_t>(), (Numbers{2 * i, 2 * i + 1}));
    EXPECT_EQ(element[1].item<int64_t>(), i);
    ++i;
  }
  EXPECT_EQ(i, 3);
}

TEST(FromTensorSlices, KeepsTheValuesThatAVariableHad) {
  const Tensor v = make_variable(DeviceManager::get().host(), "v", int64,
                                 Shape{2}, true, Site::here());
  VariableState& state = variable_state(v);
  int64_t* storage = reinterpret_cast<int64_t*>(state.storage->data);
  storage[0] = 3;
  storage[1] = 4;
  const auto d = Dataset::from_tensor_slices({read_variable(v)});
  // Rows that shared the variable's storage could be read while it is written.
  EXPECT_FALSE((*d.make_iterator().next())[0].impl()->block->borrowed);
  {
    std::unique_lock lock(state.mutex);
    prepare_write(state);
    storage[0] = storage[1] = 9;
  }
  EXPECT_EQ(numbers(d), (Numbers{3, 4}));
}

TEST(FromTensorSlices, RefusesWhatHasNoCommonFirstDimension) {
  const auto make = [](const Tensors& t) {
    return message_of<InvalidArgument>([&] { Dataset::from_tensor_slices(t); });
  };
  const std::string unequal = make({iota({3, 2}), iota({4})});
  EXPECT_TRUE(has(unequal,
                  "component 1 has 4 rows (shape [4]), component 0 "
                  "has 3 (shape [3,2])"))
      << unequal;
  EXPECT_TRUE(has(unequal, "sources_test.cc:")) << unequal;
  EXPECT_TRUE(has(make({}), "no components"));
  EXPECT_TRUE(has(make({constant(1)}), "is a scalar"));
  EXPECT_TRUE(has(make({Tensor()}), "is an empty Tensor"));
}

TEST(FromTensorSlices, OfNoRowsIsEmpty) {
  const auto d = Dataset::from_tensor_slices({float_zeros({0, 5})});
  EXPECT_EQ(d.cardinality(), 0);
  EXPECT_FALSE(d.batch(2).make_iterator().next().has_value());
  EXPECT_FALSE(d.shuffle(2).repeat().make_iterator().next().has_value());
}

TEST(Range, CountsLikePython) {
  EXPECT_EQ(numbers(Dataset::range(4)), counting(4));
  EXPECT_EQ(numbers(Dataset::range(2, 9, 3)), (Numbers{2, 5, 8}));
  EXPECT_EQ(numbers(Dataset::range(5, 0, -2)), (Numbers{5, 3, 1}));
  EXPECT_EQ(Dataset::range(5, 5).cardinality(), 0);
  EXPECT_EQ(Dataset::range(5, 2).cardinality(), 0);
  EXPECT_EQ(numbers(Dataset::range(INT64_MAX - 1, INT64_MAX, 7)),
            (Numbers{INT64_MAX - 1}));
  EXPECT_EQ(Dataset::range(INT64_MIN, 0, INT64_MIN).cardinality(), 0);
  EXPECT_EQ(numbers(Dataset::range(0, INT64_MIN, INT64_MIN)), (Numbers{0}));
  EXPECT_THROW(Dataset::range(0, 5, 0), InvalidArgument);
  EXPECT_THROW(Dataset::range(INT64_MIN, INT64_MAX), InvalidArgument);
}

GeneratorFactory count_to(int64_t n) {
  return [n]() -> Generator {
    return [n, i = int64_t{0}]() mutable -> std::optional<Tensors> {
      if (i == n) return std::nullopt;
      return Tensors{constant(i++)};
    };
  };
}

TEST(FromGenerator, StartsAgainForEveryIteration) {
  const auto d = Dataset::from_generator(count_to(3), {{Shape{}, int64}});
  EXPECT_EQ(d.cardinality(), kUnknown);
  EXPECT_EQ(numbers(d), counting(3));
  EXPECT_EQ(numbers(d.repeat(2)), (Numbers{0, 1, 2, 0, 1, 2}));
}

TEST(FromGenerator, RefusesElementsThatDoNotFitItsSpecs) {
  const auto next = [](std::vector<TensorSpec> specs) {
    auto it =
        Dataset::from_generator(count_to(1), std::move(specs)).make_iterator();
    return message_of<InvalidArgument>([&] { it.next(); });
  };
  const std::string dtype = next({{Shape{}, float32}});
  EXPECT_TRUE(has(dtype, "from_generator (")) << dtype;
  EXPECT_TRUE(has(dtype, "element 0: component 0 is int64[]")) << dtype;
  EXPECT_TRUE(has(next({{Shape{3}, int64}}), "expected int64[3]"));
  EXPECT_TRUE(has(next({{Shape{}, int64}, {Shape{}, int64}}),
                  "returned 1 components; expected 2"));
  EXPECT_EQ(next({{Shape{}, int64}}), "");
}

TEST(FromGenerator, AcceptsAnyLengthOfAnUnknownDimension) {
  const auto d = Dataset::from_generator(
      [] {
        return [n = 0]() mutable -> std::optional<Tensors> {
          if (++n > 3) return std::nullopt;
          return Tensors{float_zeros({n})};
        };
      },
      {{Shape{kUnknownDim}, float32}});
  EXPECT_EQ(numbers(d).size(), 6u);  // 1 + 2 + 3
}

TEST(Iterator, SaysTheEndAndAnErrorAgainAndAgain) {
  auto it = Dataset::range(1).make_iterator();
  EXPECT_TRUE(it.next().has_value());
  EXPECT_FALSE(it.next().has_value());
  EXPECT_FALSE(it.next().has_value());
  auto bad = Dataset::range(3)
                 .map([](const Tensors&) -> Tensors {
                   throw errors::DataLoss("torn page");
                 })
                 .make_iterator();
  for (int i = 0; i < 3; ++i) {
    const std::string text = message_of<errors::DataLoss>([&] { bad.next(); });
    EXPECT_TRUE(has(text, "map (")) << text;
    EXPECT_TRUE(has(text, "element 0: torn page")) << text;
  }
}

}  // namespace
}  // namespace berth::data
