// Attributes: interning, comparison and checks.

#include "op/attrs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "berth/ops/array.h"

namespace berth {
namespace {

using Ints = std::vector<int64_t>;

TEST(Attrs, EqualOnesAreOneObjectWhateverTheirOrder) {
  const AttrsRef a({{"axis", int64_t{3}}, {"keepdims", true}});
  const AttrsRef b({{"keepdims", true}, {"axis", int64_t{3}}});
  EXPECT_EQ(a.get(), b.get());
  EXPECT_TRUE(a == b);
  EXPECT_EQ(AttrsRef::share(a.get()).get(), a.get());
  EXPECT_EQ(std::get<int64_t>(*a.get()->find("axis")), 3);
  EXPECT_EQ(a.get()->find("Axis"), nullptr);
  EXPECT_EQ(AttrsRef(std::vector<Attrs::Pair>{}).get(), nullptr);
}

TEST(Attrs, NameTypeAndEveryBitOfAValueCount) {
  const Tensor t = constant({1.f}), same_numbers = constant({1.f});
  const std::vector<AttrsRef> distinct = {
      AttrsRef({{"a", int64_t{1}}}),
      AttrsRef({{"b", int64_t{1}}}),
      AttrsRef({{"a", int64_t{2}}}),
      AttrsRef({{"a", true}}),
      AttrsRef({{"a", 1.0}}),
      AttrsRef({{"a", std::string("1")}}),
      AttrsRef({{"a", float32}}),
      AttrsRef({{"a", Shape{1}}}),
      AttrsRef({{"a", Ints{1}}}),
      AttrsRef({{"a", Ints{1, 1}}}),
      AttrsRef({{"a", std::vector<double>{1}}}),
      AttrsRef({{"a", std::vector<std::string>{"1"}}}),
      AttrsRef({{"a", t}}),
      AttrsRef({{"a", same_numbers}}),
      AttrsRef({{"a", 0.0}}),
      AttrsRef({{"a", -0.0}}),
      AttrsRef({{"a", std::vector<double>{0.0}}}),
      AttrsRef({{"a", std::vector<double>{-0.0}}}),
      AttrsRef({{"a", std::nan("")}}),
  };
  for (size_t i = 0; i < distinct.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(distinct[i].get(), distinct[j].get()) << i << " " << j;
    }
  }
  // Not-a-number is itself, alone and in a list.
  EXPECT_EQ(AttrsRef({{"a", std::nan("")}}).get(), distinct.back().get());
  const AttrsRef list({{"a", std::vector<double>{std::nan("")}}});
  EXPECT_EQ(AttrsRef({{"a", std::vector<double>{std::nan("")}}}).get(),
            list.get());
}

TEST(Attrs, TheTableForgetsWhatNobodyHolds) {
  const size_t before = interned_attrs();
  {
    std::vector<AttrsRef> held;
    for (int64_t i = 0; i < 1000; ++i) {
      held.emplace_back(std::vector<Attrs::Pair>{{"forgotten", i}});
    }
    const std::vector<AttrsRef> copies = held;
    EXPECT_EQ(interned_attrs(), before + 1000);
    held.clear();
    EXPECT_EQ(interned_attrs(), before + 1000);
  }
  EXPECT_EQ(interned_attrs(), before);
}

TEST(Attrs, ThreadsThatInternAndForgetAgree) {
  const size_t before = interned_attrs();
  const AttrsRef kept({{"shared", int64_t{0}}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<AttrsRef> held(8);
      for (int i = 0; i < 5000; ++i) {
        const int64_t value = random() % 4;
        AttrsRef a({{"shared", value}});
        // The last reference of another thread may just be ending.
        ASSERT_EQ(std::get<int64_t>(*a.get()->find("shared")), value);
        if (value == 0) {
          ASSERT_EQ(a.get(), kept.get());
        }
        held[random() % held.size()] = a;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(interned_attrs(), before + 1);
}

}  // namespace
}  // namespace berth
