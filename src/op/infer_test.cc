// Shape and split rules, also with unknown dimensions.

#include "op/infer.h"

#include <gtest/gtest.h>

#include "berth/errors.h"
#include "op/op_registry.h"

namespace berth {
namespace {

Shape run(const OpDef& op, const std::vector<Shape>& shapes,
          std::vector<DType> dtypes = {}) {
  std::vector<SpecView> in;
  dtypes.resize(shapes.size(), float32);
  for (size_t i = 0; i < shapes.size(); ++i) {
    in.push_back({dtypes[i], &shapes[i]});
  }
  std::vector<OutSpec> out(1);
  infer_outputs(op, nullptr, in, out);
  return out[0].shape;
}

void expect_error(const OpDef& op, const std::vector<Shape>& shapes,
                  const std::vector<DType>& dtypes, const char* part) {
  try {
    run(op, shapes, dtypes);
    ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const errors::InvalidArgument& e) {
    const std::string m = e.what();
    EXPECT_NE(m.find(part), m.npos) << m;
    EXPECT_EQ(m.find(op.name()), 0u) << m;
  }
}

const OpDef& pair_op() {
  static const auto op = OpBuilder(nullptr, "TestPair")
                             .input("a", kNumberTypes)
                             .input("b", kNumberTypes)
                             .output("y")
                             .infer(&infer_broadcast)
                             .detach();
  return *op;
}

TEST(Infer, BroadcastsAsNumPy) {
  const OpDef& op = pair_op();
  EXPECT_EQ(run(op, {{2, 3}, {2, 3}}), (Shape{2, 3}));
  EXPECT_EQ(run(op, {{2, 3}, {}}), (Shape{2, 3}));
  EXPECT_EQ(run(op, {{3}, {2, 1}}), (Shape{2, 3}));
  EXPECT_EQ(run(op, {{4, 1, 3}, {5, 1}}), (Shape{4, 5, 3}));
  EXPECT_EQ(run(op, {{0}, {1}}), (Shape{0}));
  expect_error(op, {{2, 3}, {2, 4}}, {},
               "shapes [2,3] and [2,4] do not broadcast: 3 against 4; "
               "expected equal dimensions or 1");
  expect_error(op, {{0}, {2}}, {}, "0 against 2");
}

TEST(Infer, UnknownDimensionsPassThrough) {
  const OpDef& op = pair_op();
  EXPECT_EQ(run(op, {{-1, 3}, {3}}), (Shape{-1, 3}));
  // An unknown one beside 5 is 5 or 1.
  EXPECT_EQ(run(op, {{-1, 3}, {5, 3}}), (Shape{5, 3}));
  EXPECT_EQ(run(op, {{-1}, {1}}), (Shape{-1}));
  expect_error(op, {{-1, 3}, {4}}, {}, "3 against 4");
}

TEST(Infer, CountsAndDtypesFollowTheSchema) {
  const OpDef& op = pair_op();
  expect_error(op, {{}}, {}, "1 inputs given; expected 2");
  expect_error(op, {{}, {}, {}}, {}, "3 inputs given; expected 2");
  expect_error(op, {{}, {}}, {float32, bool_},
               "b is bool; expected one of float32");
  expect_error(op, {{}, {}}, {float32, int32},
               "a is float32 but b is int32; expected equal dtypes: write "
               "math::cast");
}

TEST(Infer, OptionalFreeAndRepeatedInputsAreCounted) {
  const auto optional = OpBuilder(nullptr, "TestOptional")
                            .input("x")
                            .free_input("index", kIndexTypes)
                            .optional_input("bias")
                            .output("y")
                            .infer(&infer_same_as_0)
                            .detach();
  EXPECT_EQ(run(*optional, {{2}, {}}, {float32, int32}), (Shape{2}));
  EXPECT_EQ(run(*optional, {{2}, {}, {}}, {float32, int64}), (Shape{2}));
  expect_error(*optional, {{2}}, {}, "1 inputs given; expected 2 to 3");
  expect_error(*optional, {{2}, {}}, {float32, float32}, "index is float32");
  expect_error(*optional, {{2}, {}, {}}, {float32, int32, float64},
               "x is float32 but bias is float64");

  const auto many = OpBuilder(nullptr, "TestMany")
                        .variadic_input("values")
                        .output("y")
                        .infer(&infer_broadcast)
                        .detach();
  EXPECT_EQ(run(*many, {{2}, {2}, {1}, {}}), (Shape{2}));
  expect_error(*many, {}, {}, "0 inputs given; expected 1 or more");
}

TEST(Infer, MergesDimensionsAndChecksRanks) {
  const auto op =
      OpBuilder(nullptr, "TestRules")
          .input("x")
          .input("w")
          .output("y")
          .infer([](InferContext& c) {
            c.expect_rank(0, 2, "[n, c]");
            c.merge_dims(c.shape(0)[1], c.shape(1)[0], "channels differ");
            c.set_output(0, c.dtype(0), c.shape(0));
          })
          .detach();
  EXPECT_EQ(run(*op, {{4, -1}, {3}}), (Shape{4, -1}));
  EXPECT_EQ(run(*op, {{4, 3}, {-1}}), (Shape{4, 3}));
  expect_error(*op, {{4}, {3}}, {}, "x has shape [4]; expected [n, c]");
  expect_error(*op, {{4, 2}, {3}}, {}, "channels differ");
}

TEST(Split, ElementwiseCutsEveryAxisThatIsNotBroadcast) {
  const std::vector<Shape> shapes = {{4, 1, 3}, {5, 1}};
  const std::vector<SpecView> in = {{float32, &shapes[0]},
                                    {float32, &shapes[1]}};
  std::vector<OutSpec> out(1);
  InferContext c(pair_op(), nullptr, in, out);
  infer_broadcast(c);
  const auto rules = split_elementwise(c);
  ASSERT_EQ(rules.size(), 3u);
  using Axes = std::vector<int8_t>;
  EXPECT_EQ(rules[0].inputs, (Axes{0, -1}));
  EXPECT_EQ(rules[1].inputs, (Axes{-1, 0}));
  EXPECT_EQ(rules[2].inputs, (Axes{2, -1}));
  for (int8_t axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(rules[axis].outputs, (Axes{axis}));
  }
}

}  // namespace
}  // namespace berth
