#include <gtest/gtest.h>

#include "berth/config.h"
#include "berth/data.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "data/testing.h"

namespace berth::data {
namespace {

TEST(CopyToDevice, ElementsAreThereAndInOrder) {
  const Tensor x = constant({1.f, 2.f, 3.f, 4.f, 5.f});
  for (const int64_t ahead : {int64_t{0}, int64_t{1}, int64_t{3}, AUTOTUNE}) {
    const auto set = Dataset::from_tensor_slices({x}).batch(2);
    std::vector<float> seen;
    for (const Tensors& e : set.prefetch_to_device("/CPU:0", ahead)) {
      EXPECT_NE(e[0].device().find("CPU:0"), std::string::npos);
      for (const float v : e[0].to_vector<float>()) seen.push_back(v);
    }
    EXPECT_EQ(seen, (std::vector<float>{1, 2, 3, 4, 5})) << ahead;
  }
}

TEST(CopyToDevice, NamesTheLineAndTheDevicesThereAre) {
  const auto set = Dataset::range(3);
  try {
    set.prefetch_to_device("/GPU:7");
    ADD_FAILURE() << "no error";
  } catch (const errors::InvalidArgument& e) {
    const std::string m = e.what();
    for (const char* part : {"copy_to_device_test.cc:", "GPU:7", "CPU:0"}) {
      EXPECT_NE(m.find(part), std::string::npos) << m;
    }
  }
}

}  // namespace
}  // namespace berth::data
