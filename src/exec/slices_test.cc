// Nodes that have slices of a batch are split just there, in any company.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "berth/ops/array.h"
#include "exec/measure_costs.h"
#include "exec/plan.h"
#include "place/cost_store.h"
#include "program/program.h"

namespace berth {
namespace {

using Floats = std::vector<float>;

constexpr const char* kCpu =
    "at \"/job:localhost/replica:0/task:0/device:CPU:0\"";

std::string arg(const char* name, int index, const std::string& shape) {
  return fmt::format(
      "node {} = _Arg() {{dtype = float32, index = {}, shape = shape{}}} -> "
      "float32{} {}\n",
      name, index, shape, shape, kCpu);
}

std::string node(const char* text, const std::string& part) {
  return fmt::format("node {} {} {}\n", text, kCpu, part);
}

std::unique_ptr<Plan> plan_of(const std::string& nodes, int slices = 4) {
  Graph g = parse_graph("berth-graph 1\n" + nodes);
  verify(g);
  return Plan::build(std::move(g), {.slices = slices});
}

std::vector<Floats> run(Plan& plan, const Tensors& args) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : args) in.push_back(&t);
  Tensors out(plan.graph().outputs.size());
  plan.run(in, out);
  std::vector<Floats> values;
  for (const Tensor& t : out) values.push_back(t.to_vector<float>());
  return values;
}

// 0, 1, 2, ... with rounding errors when added.
Tensor ramp(const Shape& shape) {
  Floats v(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = 0.1f * static_cast<float>(i % 97) + 1e-4f * static_cast<float>(i);
  }
  return constant(v, shape);
}

// The sum of one column along the tree over slices [first, end) of `total`,
// each added up from its first row on.
float tree(const Floats& column, int first, int end, int total) {
  const auto batch = static_cast<int>(column.size());
  std::vector<float> sums;
  for (int s = first; s < end; ++s) {
    float sum = 0;
    for (int i = batch * s / total; i < batch * (s + 1) / total; ++i) {
      sum += column[static_cast<size_t>(i)];
    }
    sums.push_back(sum);
  }
  for (size_t width = 1; width < sums.size(); width *= 2) {
    for (size_t i = 0; i + width < sums.size(); i += 2 * width) {
      sums[i] += sums[i + width];
    }
  }
  return sums[0];
}

// How fast cores are measured to be says which regions several of them run;
// what is split, and so the bits, it does not.
TEST(Slices, MeasuredRatesMoveForksButNoCut) {
  const Machine machine = this_machine();
  const DeviceClass kept = machine.class_of(0);
  ASSERT_EQ(kept.type, "CPU");
  const Tensor x = ramp({4096, 64});
  std::string text;
  std::vector<Floats> values;
  for (const double rate : {1.0, 1e15}) {
    DeviceClass c = kept;
    c.flops_per_us = c.bytes_per_us = c.cached_bytes_per_us = rate;
    CostStore::get().add_class(c);
    const auto plan =
        plan_of(arg("x", 0, "[4096,64]") +
                node("y = AddV2(x:0, x:0) -> float32[4096,64]", "") +
                node("z = Sum(y:0) {axis = ints[0]} -> float32[64]", "") +
                "return z:0\n");
    const auto& steps = plan->program().steps;
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].parts, 4);
    EXPECT_EQ(steps[0].forks, rate == 1.0);
    if (text.empty()) text = plan->str();
    EXPECT_EQ(plan->str(), text);
    const std::vector<Floats> now = run(*plan, {x});
    if (values.empty()) values = now;
    EXPECT_EQ(now, values);
  }
  CostStore::get().add_class(kept);
}

// Too small for a fork, and for a cut without slices.
TEST(Slices, ATinySumIsAddedAlongTheTree) {
  const Tensor x = ramp({11, 1});
  const Floats column = x.to_vector<float>();
  const auto whole = plan_of(arg("x", 0, "[11,1]") +
                             node("y = Sum(x:0) {axis = ints[0]} -> float32[1]",
                                  "part 0 slices 0 to 4 of 4 batch 11") +
                             "return y:0\n");
  EXPECT_EQ(run(*whole, {x})[0], Floats{tree(column, 0, 4, 4)});
  // Six slices: the tree is not full.
  const auto six = plan_of(arg("x", 0, "[11,1]") +
                           node("y = Sum(x:0) {axis = ints[0]} -> float32[1]",
                                "part 0 slices 0 to 6 of 6 batch 11") +
                           "return y:0\n");
  EXPECT_EQ(run(*six, {x})[0], Floats{tree(column, 0, 6, 6)});
  EXPECT_NE(six->str().find("slices 6"), std::string::npos) << six->str();
}

// Slices 2 and 3 of 4 of 11 examples have 3 each, slices 1 and 2 have 3 and 3.
TEST(Slices, APartKnowsTheWholeBatch) {
  const Tensor x = ramp({6, 2});
  const auto mean =
      plan_of(arg("x", 0, "[6,2]") +
              node("y = Mean(x:0) {axis = ints[0]} -> float32[2]",
                   "replica 1 part 0 of [11,2] slices 2 to 4 of 4 batch 11") +
              "return y:0\n");
  const auto sum =
      plan_of(arg("x", 0, "[6,2]") +
              node("y = Sum(x:0) {axis = ints[0]} -> float32[2]",
                   "replica 1 part 0 slices 2 to 4 of 4 batch 11") +
              "return y:0\n");
  const Floats got = run(*mean, {x})[0], added = run(*sum, {x})[0];
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], added[i] / 11, 1e-6);
  EXPECT_NE(mean->str().find(" replica 1"), std::string::npos) << mean->str();
  // Without slices, too.
  const auto loose = plan_of(
      arg("x", 0, "[6,2]") +
      node("y = Mean(x:0) {axis = ints[0]} -> float32[2]", "part 0 of [11,2]") +
      "return y:0\n");
  const Floats whole = run(*loose, {x})[0];
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(whole[i], added[i] / 11, 1e-6);
}

TEST(Slices, RandomNumbersAreThoseOfTheWholeBatch) {
  const auto dropout = [](int64_t rows, const std::string& part) {
    return plan_of(
        arg("x", 0, fmt::format("[{},3]", rows)) +
        node(fmt::format("y = Dropout(x:0) {{rate = 0.5, seed = 7}} -> "
                         "float32[{},3], uint8[{},3]",
                         rows, rows)
                 .c_str(),
             part) +
        "return y:0\n");
  };
  const Tensor ones = constant(Floats(33, 1), {11, 3});
  const Floats all = run(*dropout(11, ""), {ones})[0];
  for (const char* slices : {"", " slices 2 to 4 of 4 batch 11"}) {
    const auto part = dropout(6, fmt::format("part 0 origin 15{}", slices));
    const Floats got = run(*part, {constant(Floats(18, 1), {6, 3})})[0];
    EXPECT_EQ(got, Floats(all.begin() + 15, all.end()));
  }
}

// Elementwise ops with other slices, or none, do not read parts of the region.
TEST(Slices, OpsOfOtherSlicesAreNotInTheRegion) {
  const std::string spec = "float32[1024,256]";
  const auto plan =
      plan_of(arg("x", 0, "[1024,256]") +
              node(("a = Exp(x:0) -> " + spec).c_str(),
                   "part 0 slices 0 to 4 of 4 batch 1022") +
              node(("b = Neg(a:0) -> " + spec).c_str(),
                   "part 0 slices 0 to 4 of 4 batch 1022") +
              node(("c = Neg(b:0) -> " + spec).c_str(), "") + "return c:0\n");
  // 1024 rows are not a multiple of 1022 examples: no borders.
  EXPECT_EQ(plan->str().find("op a"), std::string::npos) << plan->str();
  EXPECT_EQ(plan->str().find("op b"), std::string::npos) << plan->str();
  const auto uneven = plan_of(arg("x", 0, "[1022,256]") +
                              node("a = Exp(x:0) -> float32[1022,256]",
                                   "part 0 slices 0 to 4 of 4 batch 1022") +
                              node("b = Neg(a:0) -> float32[1022,256]",
                                   "part 0 slices 0 to 4 of 4 batch 1022") +
                              node("c = Neg(b:0) -> float32[1022,256]", "") +
                              node("d = Neg(c:0) -> float32[1022,256]",
                                   "part 0 slices 0 to 3 of 3 batch 1022") +
                              "return d:0\n");
  const std::string text = uneven->str();
  EXPECT_NE(text.find("op a Exp cut 0 to 0"), std::string::npos) << text;
  EXPECT_NE(text.find("op b Neg cut 0 to 0"), std::string::npos) << text;
  EXPECT_NE(text.find("slices 3"), std::string::npos) << text;
  const Tensor x = ramp({1022, 256});
  const Floats in = x.to_vector<float>(), got = run(*uneven, {x})[0];
  for (size_t i = 0; i < in.size(); i += 1237) {
    EXPECT_NEAR(got[i], -std::exp(in[i]), 1e-5 * std::exp(in[i])) << i;
  }
}

}  // namespace
}  // namespace berth
