#include <gtest/gtest.h>

#include <cstring>

#include "berth/errors.h"
#include "data/testing.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"

namespace berth::data {
namespace {

std::vector<int64_t> sizes(const Dataset& d) {
  std::vector<int64_t> all;
  for (const Tensors& element : d) all.push_back(element[0].shape()[0]);
  return all;
}

TEST(Batch, PutsElementsOnTopOfEachOther) {
  for (bool indexed : {true, false}) {
    Dataset d = Dataset::from_tensor_slices({iota({7, 2, 3}), iota({7}, 100)});
    if (!indexed) d = unindexed(d);
    int64_t first = 0;
    for (const Tensors& batch : d.batch(3)) {
      const int64_t n = std::min<int64_t>(3, 7 - first);
      EXPECT_EQ(batch[0].shape(), (Shape{n, 2, 3}));
      EXPECT_EQ(batch[0].to_vector<int64_t>(), counting(6 * n, 6 * first));
      EXPECT_EQ(batch[1].to_vector<int64_t>(), counting(n, 100 + first));
      EXPECT_EQ(batch[0].device(), DeviceManager::get().host().str());
      first += n;
    }
    EXPECT_EQ(first, 7);
  }
}

TEST(Batch, DropsTheRemainderWhenAsked) {
  for (const Dataset& d : {Dataset::range(7), unindexed(Dataset::range(7))}) {
    EXPECT_EQ(sizes(d.batch(3)), (Numbers{3, 3, 1}));
    EXPECT_EQ(sizes(d.batch(3, {.drop_remainder = true})), (Numbers{3, 3}));
    EXPECT_EQ(sizes(d.batch(8, {.drop_remainder = true})), (Numbers{}));
    EXPECT_EQ(sizes(d.batch(INT64_MAX)), (Numbers{7}));
  }
}

TEST(Batch, KnowsItsCardinalityAndSpec) {
  const Dataset d = Dataset::range(7);
  EXPECT_EQ(d.batch(3).cardinality(), 3);
  EXPECT_EQ(d.batch(3, {.drop_remainder = true}).cardinality(), 2);
  EXPECT_EQ(d.batch(7).cardinality(), 1);
  EXPECT_EQ(d.repeat().batch(3).cardinality(), kInfinite);
  EXPECT_EQ(d.batch(3).element_spec()[0].str(), "int64[?]");
  EXPECT_EQ(unindexed(d.batch(3)).element_spec()[0].str(), "int64[?]");
  EXPECT_EQ(d.batch(7).element_spec()[0].str(), "int64[7]");
  EXPECT_EQ(d.repeat().batch(3).element_spec()[0].str(), "int64[3]");
  EXPECT_EQ(d.batch(3).batch(2).element_spec()[0].str(), "int64[?,?]");
}

// Every row size has its own way through gather: 0, 1, 4, 8 and other bytes.
TEST(Batch, GathersRowsOfEverySize) {
  for (DType dtype : {uint8, bool_, int32, float32, int64, float64}) {
    for (int64_t width : {0, 1, 3, 200}) {
      Tensor t =
          make_tensor(DeviceManager::get().host(), dtype, Shape{32, width});
      std::byte* bytes = t.impl()->data();
      for (size_t i = 0; i < t.impl()->size_bytes(); ++i) {
        bytes[i] = static_cast<std::byte>(dtype == bool_ ? i % 3 == 0 : i * 7);
      }
      const auto d =
          Dataset::from_tensor_slices({t, iota({32})}).shuffle(32, {.seed = 9});
      for (const Tensors& batch : d.batch(5)) {
        const size_t row = static_cast<size_t>(width) * size_of(dtype);
        const Numbers at = batch[1].to_vector<int64_t>();
        for (size_t i = 0; i < at.size(); ++i) {
          EXPECT_EQ(std::memcmp(batch[0].impl()->data() + i * row,
                                bytes + static_cast<size_t>(at[i]) * row, row),
                    0);
        }
      }
    }
  }
}

TEST(Batch, TakesTextAsItTakesNumbers) {
  using Words = std::vector<std::string>;
  const Tensor words = constant({"a", "", "ccc", "dd", "e", "f"});
  const auto all =
      Dataset::from_tensor_slices({reshape(words, {3, 2}), iota({3})});
  for (const Dataset& d : {all, unindexed(all)}) {
    auto it = d.batch(2).make_iterator();
    Tensors batch;
    ASSERT_TRUE(it.next(batch));
    EXPECT_EQ(batch[0].shape(), Shape({2, 2}));
    EXPECT_EQ(batch[0].to_vector<std::string>(), (Words{"a", "", "ccc", "dd"}));
    ASSERT_TRUE(it.next(batch));
    EXPECT_EQ(batch[0].to_vector<std::string>(), (Words{"e", "f"}));
    EXPECT_EQ(batch[1].to_vector<int64_t>(), Numbers{2});
    EXPECT_FALSE(it.next(batch));
  }
  const Dataset one = Dataset::from_tensor_slices({words}).skip(3).batch(2);
  EXPECT_EQ((*one.begin())[0].to_vector<std::string>(), (Words{"dd", "e"}));
}

TEST(Batch, TakesNothingFromTheSystemWhenWarm) {
  const auto d = Dataset::from_tensor_slices({float_zeros({3000, 100})})
                     .shuffle(3000)
                     .batch(64)
                     .prefetch(4);
  const auto epoch = [&] {
    for (const Tensors& batch : d) ASSERT_LE(batch[0].shape()[0], 64);
  };
  epoch();
  epoch();
  const uint64_t before =
      DeviceManager::get().host().allocator().info().source_calls;
  for (int i = 0; i < 20; ++i) epoch();
  EXPECT_EQ(DeviceManager::get().host().allocator().info().source_calls,
            before);
}

TEST(Batch, RefusesElementsOfDifferentShapes) {
  auto it = Dataset::range(2, 5)
                .map([](const Tensors& e) -> Tensors {
                  return {float_zeros({e[0].item<int64_t>()})};
                })
                .batch(2)
                .make_iterator();
  const std::string text =
      message_of<errors::InvalidArgument>([&] { it.next(); });
  EXPECT_TRUE(has(text, "batch (")) << text;
  EXPECT_TRUE(has(text, "batch_test.cc:")) << text;
  EXPECT_TRUE(has(text,
                  "component 0 of element 1 is float32[3], in the first "
                  "of its batch it is float32[2]"))
      << text;
  EXPECT_THROW(Dataset::range(2).batch(0), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::data
