// What the messages of refusals say about the user's line.

#include <gtest/gtest.h>

#include <functional>

#include "berth/berth.h"

namespace berth::data {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const errors::Error& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(Messages, NameTheFileWithoutItsFolders) {
  const Dataset numbers = Dataset::range(4);
  const Tensor pair = constant({1.0f, 2.0f}), words = constant({"a"});
  const std::vector<std::function<void()>> calls = {
      [&] { (void)numbers.batch(0); },
      [&] { (void)numbers.shuffle(-7); },
      [&] { (void)numbers.shard(2, 5); },
      [&] { (void)numbers.window(0); },
      [&] { (void)numbers.prefetch(-7); },
      [&] { (void)numbers.map(MapFunction()); },
      [&] { (void)Dataset::from_tensor_slices(Tensors()); },
      [&] { (void)pair.item<float>(); },
      [&] { (void)words.to_vector<float>(); },
      [&] { (void)pair.to_vector<std::string>(); },
      [&] { (void)Tensor().to_vector<float>(); },
      [&] { Variable v(pair, {.shape = Shape{3}}); },
      [&] { (void)image::random_crop(Tensor(), {2}); },
      [&] {
        (void)image::resize(pair, {2, 2});
      },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string text = refusal(calls[i]);
    EXPECT_NE(text.find("messages_test.cc:"), text.npos) << i << text;
    EXPECT_EQ(text.find("/messages_test.cc"), text.npos) << i << text;
  }
}

}  // namespace
}  // namespace berth::data
