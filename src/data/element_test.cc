#include <gtest/gtest.h>

#include "berth/data_element.h"
#include "berth/errors.h"
#include "data/testing.h"

namespace berth::data {
namespace {

Dataset pairs() {
  return Dataset::from_tensor_slices({{"x", iota({6})}, {"y", iota({6}, 10)}});
}

TEST(Element, FindsComponentsByNameAndByPath) {
  const Element e{{"pair/left", constant(int64_t{1})},
                  {"pair/right", constant(int64_t{2})},
                  {"label", constant(int64_t{3})}};
  EXPECT_EQ(e["label"].item<int64_t>(), 3);
  EXPECT_EQ(e[1].item<int64_t>(), 2);
  EXPECT_EQ(e.at("pair")["left"].item<int64_t>(), 1);
  EXPECT_EQ(e.at("pair").names(), (Names{"left", "right"}));
  EXPECT_TRUE(e.contains("label"));
  EXPECT_FALSE(e.contains("pair"));
  EXPECT_TRUE(has(message_of<errors::NotFound>([&] { e["lable"]; }),
                  "no component 'lable'; expected one of: pair/left, "
                  "pair/right, label"));
  EXPECT_TRUE(has(message_of<errors::NotFound>([] { Element()["x"]; }),
                  "have no names"));
  EXPECT_THROW((Element{{"a", Tensor()}, {"a", Tensor()}}),
               errors::InvalidArgument);
}

TEST(Names, GoThroughEveryTransform) {
  const Names names = {"x", "y"};
  const auto same = [](const Element& e) { return e; };
  for (const Dataset& d : {
           pairs(),
           pairs().shuffle(6).repeat(2).skip(1).take(5),
           pairs().batch(2).prefetch(2),
           pairs().map(same, {.num_parallel_calls = 2}).batch(2),
           pairs().filter(
               [](const Element& e) { return e["x"].item<int64_t>() != 3; }),
           pairs().batch(2).copy_to_device("/CPU:0"),
       }) {
    EXPECT_EQ(d.component_names(), names);
    int64_t n = 0;
    for (const Element& e : d) {
      EXPECT_EQ(e.names(), names);
      const Numbers x = e["x"].to_vector<int64_t>();
      const Numbers y = e["y"].to_vector<int64_t>();
      for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], x[i] + 10);
      ++n;
    }
    EXPECT_GT(n, 0);
  }
}

TEST(Names, AreThoseThatTheFunctionReturns) {
  const auto d = pairs().map([](const Element& e) {
    return Element{
        {"sum", constant(e["x"].item<int64_t>() + e["y"].item<int64_t>())}};
  });
  EXPECT_EQ((*d.make_iterator().next())["sum"].item<int64_t>(), 10);
  EXPECT_EQ(d.component_names(), Names{"sum"});
  // A function of lists gives a list.
  const auto list = pairs().map([](const Tensors& e) { return e; });
  EXPECT_EQ(list.component_names(), Names{});
  EXPECT_EQ(Dataset::range(3).component_names(), Names{});
  const auto none = pairs().take(0).map([](const Element& e) { return e; });
  EXPECT_EQ(none.component_names(), Names{});
}

TEST(Names, OfAGeneratorAreThoseOfItsSpecs) {
  const auto d = Dataset::from_generator(
      [] {
        return [] {
          return std::optional(
              Tensors{constant(int64_t{1}), constant(int64_t{2})});
        };
      },
      {{Shape{}, int64, "a"}, {Shape{}, int64, "b"}});
  EXPECT_EQ(d.component_names(), (Names{"a", "b"}));
  EXPECT_EQ((*d.take(1).make_iterator().next())["b"].item<int64_t>(), 2);
}

TEST(Names, ThatChangeAreRefused) {
  auto it = pairs()
                .map([](const Element& e) {
                  return Element{
                      {e["x"].item<int64_t>() < 2 ? "low" : "high", e["x"]}};
                })
                .make_iterator();
  it.next();
  it.next();
  EXPECT_TRUE(has(message_of<errors::InvalidArgument>([&] { it.next(); }),
                  "element 2: the function returned components (high), for "
                  "another element (low)"));
}

}  // namespace
}  // namespace berth::data
