#include "berth/tensor.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "berth/berth.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {
namespace {

using Floats = std::vector<float>;

TEST(Shape, PrintsUnknownDimensionsAsQuestionMarks) {
  EXPECT_EQ((Shape{32, -1, 128}).str(), "[32,?,128]");
  EXPECT_EQ(Shape{}.str(), "[]");
  std::ostringstream out;
  out << "of " << Shape{2, -1};
  EXPECT_EQ(out.str(), "of [2,?]");
}

TEST(Shape, KnowsWhatCouldBeEqual) {
  EXPECT_TRUE((Shape{-1, 3}).compatible_with({7, 3}));
  EXPECT_FALSE((Shape{-1, 3}).compatible_with({7, 4}));
  EXPECT_FALSE((Shape{3}).compatible_with({1, 3}));
}

TEST(Shape, RefusesMoreThanEightDimensions) {
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), errors::InvalidArgument);
}

TEST(Shape, RefusesAxesOutOfRange) {
  Shape empty, pair{1, 2};
  EXPECT_THROW(empty.erase(0), errors::InvalidArgument);
  EXPECT_THROW(pair.erase(2), errors::InvalidArgument);
  EXPECT_THROW(pair.erase(-1), errors::InvalidArgument);
  EXPECT_THROW(pair.insert(3, 1), errors::InvalidArgument);
  EXPECT_EQ(pair, (Shape{1, 2}));
}

TEST(Tensor, RefusesMemoryThatCannotHoldIt) {
  static float x[3];
  const auto wrap = [](void* at, Shape shape, DType dtype) {
    return wrap_memory(at, shape, dtype, nullptr);
  };
  EXPECT_EQ(wrap(x, {3}, float32).num_elements(), 3);
  EXPECT_EQ(wrap(nullptr, {0}, float32).num_elements(), 0);
  EXPECT_THROW(wrap(nullptr, {3}, float32), errors::InvalidArgument);
  EXPECT_THROW(wrap(reinterpret_cast<char*>(x) + 1, {2}, float32),
               errors::InvalidArgument);
  EXPECT_THROW(wrap(x, {-1}, float32), errors::InvalidArgument);
  EXPECT_THROW(wrap(x, {1}, resource), errors::InvalidArgument);
  EXPECT_THROW(ones({2}).copy_to(nullptr), errors::InvalidArgument);
}

TEST(Variable, IsNotMadeFromTheHandleOfAnother) {
  const Variable v(ones({2}));
  EXPECT_THROW(Variable{v.handle()}, errors::InvalidArgument);
}

TEST(Tensor, PrintsValuesShapeDtypeAndDevice) {
  const auto on = device("/CPU:0");
  EXPECT_EQ(constant({{1.f, 2.5f}, {3.f, 4.f}}).str(),
            "Tensor(shape=[2,2], dtype=float32, device=CPU:0,\n[[1. , 2.5],\n"
            " [3. , 4. ]])");
  std::ostringstream out;
  out << constant(7);
  EXPECT_EQ(out.str(), "Tensor(shape=[], dtype=int32, device=CPU:0, 7)");
  EXPECT_EQ(Tensor().str(), "Tensor(empty)");
}

TEST(Tensor, ItemNeedsExactlyOneElement) {
  EXPECT_FLOAT_EQ(constant(2.5f).item<float>(), 2.5f);
  EXPECT_EQ(reshape(constant({3.f}), {1, 1}).item<int>(), 3);
  try {
    constant({1.f, 2.f}).item<float>();
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("[2]"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("tensor_test.cc"), std::string::npos);
  }
}

TEST(Tensor, AnEmptyHandleIsAnErrorNotACrash) {
  const Tensor empty;
  EXPECT_THROW(empty.shape(), errors::FailedPrecondition);
  EXPECT_THROW(empty.to_vector<float>(), errors::FailedPrecondition);
  EXPECT_THROW(empty + empty, errors::FailedPrecondition);
  EXPECT_THROW(math::add(constant(1.f), empty), errors::FailedPrecondition);
  EXPECT_THROW(matmul(empty, empty), errors::FailedPrecondition);
}

TEST(Tensor, WrappedMemoryIsSharedAndGivenBackOnce) {
  float values[4] = {1, 2, 3, 4};
  int deleted = 0;
  {
    const Tensor t = wrap_memory(values, {2, 2}, float32, [&] { ++deleted; });
    const Tensor copy = t;
    values[3] = 40;
    EXPECT_EQ(copy.to_vector<float>(), (Floats{1, 2, 3, 40}));
    const auto on = device("/CPU:0");
    EXPECT_EQ((copy * 2.0).to_vector<float>(), (Floats{2, 4, 6, 80}));
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(Variable, SnapshotsKeepTheirValue) {
  const Variable v(constant({1.f, 2.f}), {.name = "v"});
  const Tensor before = v.value();
  const Tensor alias = reshape(v.value(), {2, 1});
  v.assign(constant({5.f, 6.f}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(alias.to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{5, 6}));
}

TEST(Variable, ItsAddressIsFixedForLife) {
  const Variable v(constant({1.f, 2.f}));
  const void* address = variable_state(v.handle()).storage->data;
  for (int i = 0; i < 10; ++i) {
    const Tensor keep = v.value();
    v.assign_add(keep);
    EXPECT_EQ(variable_state(v.handle()).storage->data, address);
  }
  EXPECT_FLOAT_EQ(v.value().to_vector<float>()[0], 1024.f);
}

TEST(Variable, ASnapshotOutlivesItsVariable) {
  Tensor snapshot;
  {
    const Variable v(constant({3.f, 4.f}));
    snapshot = v.value();
  }
  EXPECT_EQ(snapshot.to_vector<float>(), (Floats{3, 4}));
}

TEST(Variable, RefusesOtherShapesAndDtypes) {
  const Variable v(constant({1.f, 2.f}));
  EXPECT_THROW(v.assign(constant({1.f, 2.f, 3.f})), errors::InvalidArgument);
  EXPECT_THROW(v.assign(constant({1, 2})), errors::InvalidArgument);
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{1, 2}));
}

TEST(Variable, ReadersAndWritersInThreadsSeeWholeValues) {
  const Variable v(zeros({1000}));
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      while (!stop) {
        const Tensor now = v.value();
        const Floats x = (now + now).to_vector<float>();
        for (float e : x) torn += e != x[0];
      }
    });
  }
  const Tensor step = ones({1000});
  for (int i = 0; i < 300; ++i) v.assign_add(step);
  stop = true;
  for (auto& t : readers) t.join();
  EXPECT_EQ(torn, 0);
  EXPECT_FLOAT_EQ(v.value().to_vector<float>()[999], 300.f);
}

TEST(Variable, ASnapshotIsReadInOneThreadWhileAnotherWritesTheVariable) {
  for (int round = 0; round < 100; ++round) {
    const Variable v(constant({1.f, 2.f}));
    const Tensor snapshot = v.value();
    std::thread reader([&] {
      for (int i = 0; i < 100; ++i) {
        ASSERT_EQ((snapshot + snapshot).to_vector<float>(), (Floats{2, 4}));
      }
    });
    v.assign(constant({5.f, 6.f}));
    reader.join();
  }
}

}  // namespace
}  // namespace berth
