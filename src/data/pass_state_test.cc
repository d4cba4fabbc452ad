#include "data/pass_state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "berth/errors.h"
#include "data/saving_testing.h"

namespace berth::data {
namespace {

Tensors plus_one(const Tensors& e) {
  return {constant(e[0].item<int64_t>() + 1)};
}

bool no_multiple_of_three(const Tensors& e) {
  return e[0].item<int64_t>() % 3 != 0;
}

GeneratorFactory letters() {
  return []() -> Generator {
    return [i = 0]() mutable -> std::optional<Tensors> {
      if (i == 9) return std::nullopt;
      return Tensors{constant(std::string(static_cast<size_t>(i), 'x') +
                              static_cast<char>(i++))};
    };
  };
}

struct Saved {
  const char* name;
  std::function<Dataset()> make;
  bool seeded = true;
};

const std::vector<Saved> kSaved = {
    {"range", [] { return Dataset::range(3, 20, 4); }},
    {"slices",
     [] {
       return Dataset::from_tensor_slices({iota({5, 3}), iota({5})});
     }},
    {"generator",
     [] {
       return Dataset::from_generator(letters(), {{Shape{}, string_}});
     }},
    {"take", [] { return Dataset::range(9).take(5); }},
    {"skip", [] { return unindexed(Dataset::range(9)).skip(5); }},
    {"filter", [] { return Dataset::range(12).filter(no_multiple_of_three); }},
    {"batch", [] { return Dataset::range(11).batch(3); }},
    {"batch of elements",
     [] { return unindexed(Dataset::range(11)).batch(3); }},
    {"batch of text",
     [] {
       return Dataset::from_generator(letters(), {{Shape{}, string_}})
           .shuffle(4, {.seed = 5})
           .batch(2);
     }},
    {"repeat", [] { return Dataset::range(4).repeat(3); }},
    {"repeat for ever", [] { return Dataset::range(4).repeat(); }},
    {"shuffle of rows",
     [] { return Dataset::range(13).shuffle(5, {.seed = 1}); }},
    {"shuffle of elements",
     [] { return unindexed(Dataset::range(13)).shuffle(20, {.seed = 1}); }},
    {"shuffle without a seed", [] { return Dataset::range(13).shuffle(13); },
     false},
    {"shuffle, repeat",
     [] { return Dataset::range(5).shuffle(5).repeat(4).batch(3); }, false},
    {"one order",
     [] {
       return Dataset::range(5)
           .shuffle(5, {.seed = 3, .reshuffle_each_iteration = false})
           .repeat(3);
     }},
    {"map", [] { return Dataset::range(7).map(plus_one); }},
    {"parallel map",
     [] {
       return Dataset::range(20).map(plus_one, {.num_parallel_calls = 3});
     }},
    {"prefetch", [] { return Dataset::range(20).prefetch(3); }},
    {"autotune",
     [] {
       return Dataset::range(20)
           .map(plus_one, {.num_parallel_calls = AUTOTUNE})
           .prefetch(AUTOTUNE);
     }},
    {"threads over repeated orders",
     [] {
       return Dataset::range(6)
           .shuffle(6)
           .map(plus_one, {.num_parallel_calls = 2})
           .repeat(4)
           .prefetch(5)
           .batch(4)
           .prefetch(2);
     },
     false},
    {"copies",
     [] { return Dataset::range(9).batch(2).prefetch_to_device("/CPU:0", 2); }},
};

TEST(PassState, RestoresEveryTransformAtEveryPosition) {
  for (const Saved& saved : kSaved) {
    SCOPED_TRACE(saved.name);
    expect_restores(saved.make, saved.seeded);
    if (HasFailure()) return;
  }
}

// Results that come in any order are handed out once each.
TEST(PassState, LosesNothingOfAMapWithoutOrder) {
  const auto make = [] {
    return Dataset::range(40).map(
        plus_one, {.num_parallel_calls = 3, .deterministic = false});
  };
  for (size_t at = 0; at <= 40; at += 5) {
    auto it = make().make_iterator();
    Numbers all;
    for (const Tensors& e : rest_of(it, at))
      all.push_back(e[0].item<int64_t>());
    const IteratorState state = it.save();
    auto other = make().make_iterator();
    other.restore(state);
    for (const Tensors& e : rest_of(other)) all.push_back(e[0].item<int64_t>());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, counting(40, 1));
  }
}

TEST(PassState, HandsOnTheErrorThatIsBuffered) {
  std::atomic<bool> thrown{false};
  const auto make = [&](int64_t bad) {
    return Dataset::range(9)
        .map([&, bad](const Tensors& e) -> Tensors {
          if (e[0].item<int64_t>() == bad) {
            thrown = true;
            throw errors::DataLoss("torn page");
          }
          return e;
        })
        .prefetch(8);
  };
  auto it = make(3).make_iterator();
  it.next();
  while (!thrown) std::this_thread::yield();
  const IteratorState state = it.save();
  auto other = make(-1).make_iterator();
  other.restore(state);
  EXPECT_EQ(other.next()->at(0).item<int64_t>(), 1);
  EXPECT_EQ(other.next()->at(0).item<int64_t>(), 2);
  EXPECT_TRUE(has(message_of<errors::DataLoss>([&] { other.next(); }),
                  "element 3: torn page"));
  EXPECT_TRUE(has(message_of<errors::FailedPrecondition>([&] { other.save(); }),
                  "torn page"));
}

TEST(PassState, NamesTheTransformsThatDiffer) {
  auto it = Dataset::range(9).shuffle(3).batch(2).make_iterator();
  const IteratorState state = it.save();
  auto other = Dataset::range(9).batch(2).shuffle(3).make_iterator();
  const std::string text =
      message_of<errors::InvalidArgument>([&] { other.restore(state); });
  EXPECT_TRUE(has(text, "the saved state has batch")) << text;
  EXPECT_TRUE(has(text, "where this pipeline has shuffle (")) << text;
  EXPECT_EQ(rest_of(other).size(), 5u);  // from the beginning
  EXPECT_THROW(Dataset::range(9).take(3).make_iterator().restore(state),
               errors::InvalidArgument);
}

// Whatever a file holds: an error that says so, or a pass that ends.
TEST(PassState, RefusesDamagedStates) {
  const auto make = [] {
    return Dataset::range(9)
        .shuffle(4, {.seed = 1})
        .repeat(2)
        .batch(2)
        .prefetch(2);
  };
  auto it = make().make_iterator();
  it.next();
  const IteratorState good = it.save();
  const auto try_one = [&](const IteratorState& state) {
    auto other = make().make_iterator();
    try {
      other.restore(state);
      EXPECT_LE(rest_of(other, 40).size(), 40u);
    } catch (const errors::InvalidArgument&) {
    } catch (const errors::DataLoss&) {
    }
  };
  for (const char* text :
       {"", "{}", "[1]", "nonsense", "{\"format\":\"berth.iterator\"}"}) {
    auto other = make().make_iterator();
    EXPECT_THROW(other.restore({text, {}}), errors::InvalidArgument) << text;
  }
  const auto all = nlohmann::json::parse(good.text);
  for (size_t i = 0; i < all["items"].size(); ++i) {
    for (const nlohmann::json& put :
         {nlohmann::json(-1), nlohmann::json(INT64_MAX), nlohmann::json(7),
          nlohmann::json("x"), nlohmann::json(nullptr),
          nlohmann::json{{"tensor", 999}}, nlohmann::json{{"tensor", 0}}}) {
      auto changed = all;
      changed["items"][i] = put;
      try_one({changed.dump(), good.tensors});
    }
    auto shorter = all;
    shorter["items"].erase(i);
    try_one({shorter.dump(), good.tensors});
  }
  try_one({good.text, {}});
  for (size_t i = 0; i < good.tensors.size(); ++i) {
    auto tensors = good.tensors;
    tensors[i] = constant(Numbers{-5, int64_t{1} << 40}, {2});
    try_one({good.text, tensors});
    tensors[i] = float_zeros({2, 2});
    try_one({good.text, tensors});
  }
  auto newer = all;
  newer["version"] = 99;
  EXPECT_TRUE(has(message_of<errors::InvalidArgument>([&] {
                    make().make_iterator().restore({newer.dump(), {}});
                  }),
                  "version 99"));
}

}  // namespace
}  // namespace berth::data
