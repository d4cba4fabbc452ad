#include "io/written_function.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "berth/errors.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "berth/saved_function.h"
#include "io/safetensors.h"
#include "io/temp_dir_testing.h"

namespace berth {
namespace {

using io::testing::TempDir;

Tensor rising(const Shape& shape, double step = 1) {
  std::vector<float> v(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<float>(step * static_cast<double>(i));
  }
  return constant(std::span<const float>(v), shape);
}

std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }

template <class E, class Fn>
void expect_told(Fn&& fn, const std::string& part) {
  EXPECT_TRUE(says(message_of<E>(fn), part));
}

// y = x w + c, where c is too large for the text; counts its calls.
struct Affine {
  Variable w{rising({3, 100}, 0.25), {.name = "dense/w"}};
  Variable calls{constant(7.f), {.name = "calls", .trainable = false}};
  Tensor c = rising({100}, -1);
  Function<Tensor(Tensor)> f = function([this](Tensor x) -> Tensor {
    calls.assign_add(constant(1.f));
    return linalg::matmul(x, w) + c;
  });
};

TEST(SavedFunction, ComesBackToTheBitWithVariablesOfItsOwn) {
  const TempDir dir;
  const Affine a;
  const Tensor x = rising({2, 3});
  const ConcreteFunction made = get_concrete_function(a.f, x);
  EXPECT_EQ(floats(a.calls)[0], 7) << "tracing runs nothing";
  made.save(dir / "deep/affine");
  const ConcreteFunction f = load_function(dir / "deep/affine.safetensors");
  EXPECT_EQ(f.text(), made.text());
  ASSERT_EQ(f.input_specs().size(), 1u);
  EXPECT_EQ(f.input_specs()[0].shape, (Shape{2, 3}));
  EXPECT_EQ(f.output_specs()[0].shape, (Shape{2, 100}));
  const Tensor expected = a.f(x);
  a.w.assign(zeros({3, 100}));
  EXPECT_EQ(floats(f({x})[0]), floats(expected));
  EXPECT_EQ(floats(expected)[1], 0 * 0 + 1 * 25.25f + 2 * 50.25f - 1);
  ASSERT_EQ(f.variables().size(), 2u);
  for (const Variable& v : f.variables()) {
    const bool counts = v.name() == "calls";
    EXPECT_TRUE(counts || v.name() == "dense/w") << v.name();
    EXPECT_EQ(v.trainable(), !counts);
    EXPECT_EQ(floats(v)[0], counts ? 8 : 0);
  }
  f.save(dir / "again");
  EXPECT_EQ(load_function(dir / "again").text(), made.text());
}

TEST(SavedFunction, TakesAnyLengthWhereItsSignatureDoes) {
  const TempDir dir;
  const auto f = function([](const std::vector<Tensor>& x) {
    return math::reduce_sum(x[0] * x[1], {.axis = {{1}}});
  });
  get_concrete_function(
      f,
      {.name = "dot",
       .input_signature = {{{-1, 3}, float32, {}}, {{-1, 3}, float32, {}}}},
      {rising({1, 3}), rising({1, 3})})
      .save(dir / "dot");
  const ConcreteFunction dot = load_function(dir / "dot");
  EXPECT_EQ(dot.name(), "dot");
  for (const int64_t n : {1, 4}) {
    const Tensor x = rising({n, 3});
    EXPECT_EQ(floats(dot({x, x})[0]), floats(f({x, x})));
  }
  expect_told<errors::InvalidArgument>(
      [&] {
        dot({rising({2, 4}), rising({2, 4})});
      },
      "expected");
  expect_told<errors::InvalidArgument>([&] { dot({}); }, "nothing");
}

TEST(SavedFunction, HasGradientsAndIsInlinedAsFunctionsAre) {
  const TempDir dir;
  const Affine a;
  const Tensor x = rising({2, 3});
  get_concrete_function(a.f, x).save(dir / "f");
  const ConcreteFunction f = load_function(dir / "f");
  Variable w;
  for (const Variable& v : f.variables()) {
    if (v.trainable()) w = v;
  }
  GradientTape tape;
  const Tensor sum = math::reduce_sum(f({x})[0]);
  // d/dw of sum(x w + c): the sum of column i of x, in each element of row i.
  const std::vector<float> g =
      floats(tape.gradient(sum, std::vector<Variable>{w})[0]);
  EXPECT_EQ(g[0], 0 + 3);
  EXPECT_EQ(g[299], 2 + 5);
  const auto twice = function([&](const Tensor& t) { return f({t})[0] * 2; });
  EXPECT_EQ(floats(twice(x))[5], 2 * floats(f({x})[0])[5]);
}

TEST(SavedFunction, KeepsLoops) {
  const TempDir dir;
  const auto f = function([](const Tensor& n) {
    return while_loop([&](const Tensors& s) { return math::less(s[0], n); },
                      [](const Tensors& s) {
                        return Tensors{s[0] + 1, s[1] * 2};
                      },
                      Tensors{constant(0), constant(1)})[1];
  });
  get_concrete_function(f, constant(3)).save(dir / "f");
  EXPECT_EQ(load_function(dir / "f")({constant(10)})[0].to_vector<int>()[0],
            1024);
}

TEST(SavedFunction, WhatIsNoFileOfOneIsRefused) {
  const TempDir dir;
  const Affine a;
  const std::string path = dir / "f.safetensors", bad = dir / "bad.safetensors";
  const ConcreteFunction f = get_concrete_function(a.f, rising({2, 3}));
  f.save(path);
  expect_told<errors::AlreadyExists>(
      [&] { f.save(path, {.overwrite = false}); }, "exists");
  expect_told<errors::InvalidArgument>([&] { f.save(dir / "f.pb"); },
                                       "expected \"folder/name");
  expect_told<errors::NotFound>([&] { load_function(dir / "none"); },
                                "cannot read");
  const std::string whole = io::testing::read_file(path);
  for (size_t n = 0; n < whole.size(); n += 97) {
    io::testing::write_file(bad, whole.substr(0, n));
    EXPECT_THROW(load_function(bad), errors::DataLoss) << n;
  }
  std::string other = whole;
  other.replace(other.find("MatMul"), 6, "MatMuL");
  io::testing::write_file(bad, other);
  expect_told<errors::DataLoss>([&] { load_function(bad); }, "the graph");
  other = whole;
  other[other.size() - 7] ^= 1;
  io::testing::write_file(bad, other);
  expect_told<errors::DataLoss>([&] { load_function(bad); }, "checksum");
}

TEST(SavedFunction, HostileGraphsAndValuesAreRefused) {
  const TempDir dir;
  const std::string bad = dir / "bad.safetensors";
  const auto load = [&](const std::string& text,
                        std::vector<io::TensorToWrite> values) {
    io::write_safetensors(bad, std::move(values), {{"berth.graph", text}},
                          "test");
    load_function(bad);
  };
  const auto head = [](const std::string& shape) {
    return "berth-graph 1\ngraph g\nnode v = VarHandleOp() {dtype = float32, "
           "shape = shape[" +
           shape + "], shared_name = \"v\"} -> resource(float32)[" + shape +
           "]\nnode r = ReadVariableOp(v:0) -> float32[" + shape +
           "]\nreturn r:0\n";
  };
  load(head("2"), {{"variable/v", rising({2})}});
  expect_told<errors::DataLoss>([&] { load(head("2"), {}); }, "no value");
  // A terabyte that the file does not have.
  expect_told<errors::DataLoss>(
      [&] {
        load(head("274877906944"), {{"variable/v", rising({2})}});
      },
      "no value");
  expect_told<errors::InvalidArgument>(
      [&] { io::write_safetensors(bad, {}, {}, "t"), load_function(bad); },
      "no graph");
  expect_told<errors::InvalidArgument>([&] { load("berth-graph 9\n", {}); },
                                       "line 1");
  expect_told<errors::DataLoss>(
      [&] {
        load(head("2"), {{"blob/" + std::string(32, 'a'), rising({2})}});
      },
      "another constant");
  expect_told<errors::Unimplemented>(
      [&] {
        load(
            "berth-graph 1\ngraph g\nop My () -> (y)\nkernel My on CPU\n"
            "node a = My() -> float32[2]\nreturn a:0\n",
            {});
      },
      "My");
}

}  // namespace
}  // namespace berth
