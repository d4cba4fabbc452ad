// Registration of ops and what it refuses.

#include "op/op_registry.h"

#include <gtest/gtest.h>

#include <thread>

#include "berth/errors.h"

namespace berth {
namespace {

OpRegistry& registry() { return OpRegistry::get(); }

Tensors no_gradient(const GradCall&) { return {}; }
Tensors no_decomposition(std::span<const Tensor>, const OpDef&, const Attrs*) {
  return {};
}

// What registering says; "" when it is accepted.
template <class Fn>
std::string refusal(Fn&& build) {
  try {
    build();
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(OpRegistry, RefusesAnOpThatSaysNothingOfItsGradient) {
  const std::string m = refusal([] {
    registry().op("TestSilent").input("x").output("y").infer(&infer_same_as_0);
  });
  EXPECT_NE(m.find("cannot register op 'TestSilent'"), m.npos) << m;
  EXPECT_NE(m.find("not_differentiable()"), m.npos) << m;
  EXPECT_EQ(registry().find("TestSilent"), nullptr);
}

TEST(OpRegistry, AcceptsAGradientADecompositionOrSayingThereIsNone) {
  EXPECT_EQ(refusal([] {
              registry()
                  .op("TestGradient")
                  .input("x")
                  .output("y")
                  .infer(&infer_same_as_0)
                  .gradient(&no_gradient);
            }),
            "");
  EXPECT_EQ(refusal([] {
              registry()
                  .op("TestDecomposed")
                  .input("x")
                  .output("y")
                  .infer(&infer_same_as_0)
                  .decompose(&no_decomposition);
            }),
            "");
  EXPECT_EQ(refusal([] {
              registry()
                  .op("TestPlain")
                  .input("x")
                  .output("y")
                  .infer(&infer_same_as_0)
                  .not_differentiable();
            }),
            "");
  EXPECT_TRUE(registry().lookup("TestGradient").differentiable());
  EXPECT_TRUE(registry().lookup("TestDecomposed").differentiable());
  EXPECT_FALSE(registry().lookup("TestPlain").differentiable());
}

TEST(OpRegistry, RefusesAnOpWithoutShapeRule) {
  const std::string m = refusal([] {
    registry().op("TestShapeless").input("x").output("y").not_differentiable();
  });
  EXPECT_NE(m.find("no shape rule"), m.npos) << m;
}

TEST(OpRegistry, RefusesANameThatIsTaken) {
  const OpDef* add = registry().find("AddV2");
  ASSERT_TRUE(add);
  const size_t ops = registry().all().size();
  const std::string m = refusal([] {
    registry()
        .op("AddV2")
        .input("x")
        .output("y")
        .infer(&infer_same_as_0)
        .not_differentiable();
  });
  EXPECT_NE(m.find("the name is taken"), m.npos) << m;
  EXPECT_EQ(registry().find("AddV2"), add);
  EXPECT_EQ(registry().all().size(), ops);
}

TEST(OpRegistry, RefusesInputsInAnOrderThatCallsCannotKeep) {
  std::string m = refusal([] {
    registry()
        .op("TestMiddle")
        .variadic_input("many")
        .input("x")
        .infer(&infer_same_as_0)
        .not_differentiable();
  });
  EXPECT_NE(m.find("only the last input may repeat"), m.npos) << m;
  m = refusal([] {
    registry()
        .op("TestOptional")
        .optional_input("maybe")
        .input("x")
        .infer(&infer_same_as_0)
        .not_differentiable();
  });
  EXPECT_NE(m.find("after an optional input"), m.npos) << m;
}

TEST(OpRegistry, AnErrorWhileDescribingAnOpIsNotOverridden) {
  struct Mine {};
  EXPECT_THROW(
      {
        OpBuilder builder(&registry(), "TestInterrupted");
        builder.input("x");
        throw Mine();
      },
      Mine);
  EXPECT_EQ(registry().find("TestInterrupted"), nullptr);
}

TEST(OpRegistry, AnUnknownNameListsSimilarOnes) {
  try {
    registry().lookup("MatMulX");
    FAIL();
  } catch (const errors::NotFound& e) {
    const std::string m = e.what();
    EXPECT_NE(m.find("there is no op 'MatMulX'"), m.npos) << m;
    EXPECT_NE(m.find(" MatMul"), m.npos) << m;
  }
}

TEST(OpRegistry, IdsArePositions) {
  const auto ops = registry().all();
  ASSERT_GT(ops.size(), 40u);
  for (size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(ops[i]->id(), i);
    EXPECT_EQ(registry().find(ops[i]->name()), ops[i]);
  }
}

TEST(OpRegistry, OneOfManyThreadsRegistersAName) {
  std::vector<std::thread> threads;
  std::atomic<int> accepted{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const std::string name = "TestRace" + std::to_string(i);
        accepted += refusal([&] {
                      registry()
                          .op(name)
                          .input("x")
                          .output("y")
                          .infer(&infer_same_as_0)
                          .not_differentiable();
                    }).empty();
        registry().lookup(name);
        registry().all();
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(accepted, 20);
}

TEST(OpRegistry, ADetachedOpIsKnownToItsHolderOnly) {
  const auto op = OpBuilder(nullptr, "TestDetached").input("x").detach();
  EXPECT_EQ(op->name(), "TestDetached");
  EXPECT_EQ(op->id(), kDetachedOp);
  EXPECT_EQ(registry().find("TestDetached"), nullptr);
}

TEST(OpDef, AttributesHaveDefaultsTypesAndNames) {
  const auto op = OpBuilder(nullptr, "TestAttrs")
                      .attr("axis", int64_t{7})
                      .required_attr("name", std::string())
                      .detach();
  EXPECT_EQ(op->attr<int64_t>(nullptr, "axis"), 7);
  const AttrsRef set({{"axis", int64_t{2}}, {"name", std::string("n")}});
  EXPECT_EQ(op->attr<int64_t>(set.get(), "axis"), 2);
  EXPECT_EQ(op->attr<std::string>(set.get(), "name"), "n");
  auto says = [](auto&& fn, const char* part) {
    const std::string m = refusal(fn);
    EXPECT_NE(m.find(part), m.npos) << m;
  };
  says([&] { op->attr<std::string>(nullptr, "name"); },
       "attribute 'name' is missing");
  says([&] { op->attr<bool>(set.get(), "axis"); }, "another type");
  says([&] { op->attr<bool>(nullptr, "axes"); }, "has no attribute 'axes'");
}

}  // namespace
}  // namespace berth
