// Device scopes reach functions and bodies, eagerly and in traces.

#include <gtest/gtest.h>

#include <optional>

#include "berth/berth.h"
#include "function/sim_testing.h"

namespace berth {
namespace {

using Floats = std::vector<float>;

// "GPU:1": the device of the only op with this name in the placed text; "" if
// there is none.
std::string place_of(const std::string& text, const std::string& op) {
  const size_t call = text.find("= " + op + "(");
  if (call == text.npos) return "";
  const std::string line = text.substr(call, text.find('\n', call) - call);
  const std::string at = " at \"/job:localhost/replica:0/task:0/device:";
  const size_t begin = line.find(at);
  if (begin == line.npos) return "?" + line;
  const size_t end = line.find('"', begin + at.size());
  return line.substr(begin + at.size(), end - begin - at.size());
}

std::string short_device(const Tensor& t) {
  const std::string full = t.device();
  return full.substr(full.rfind("device:") + 7);
}

// Every op of the programs below keeps the name it was traced with.
FunctionOptions plain(const char* name) {
  return {.name = name, .optimize = false};
}

TEST(Scopes, TravelIntoAFunctionAndMergeWithThoseInside) {
  auto f = function(
      [](const Tensor& x) {
        const Tensor y = math::square(x);
        const auto on = device("/GPU:0");
        return math::exp(y) - y;
      },
      plain("f"));
  const Tensor x = constant({0.f, 1.f});
  {
    const auto on = device("/job:localhost/GPU:1");
    f(x);
  }
  EXPECT_EQ(place_of(f.text("place"), "Square"), "GPU:1");
  EXPECT_EQ(place_of(f.text("place"), "Exp"), "GPU:0");
  // Another scope is another trace.
  {
    const auto on = device("/CPU:0");
    f(x);
  }
  EXPECT_EQ(f.num_traces(), 2);
  EXPECT_EQ(place_of(f.text("place"), "Square"), "CPU:0");
  EXPECT_EQ(place_of(f.text("place"), "Exp"), "GPU:0");
}

TEST(Scopes, AreForgottenInsideAFunctionByNoDevice) {
  auto f = function(
      [](const Tensor& x) {
        const auto on = device(no_device);
        return math::square(x);
      },
      plain("f"));
  const auto on = device("/GPU:1");
  f(constant({1.f}));
  EXPECT_EQ(place_of(f.text("place"), "Square"), "GPU:0");
}

TEST(Scopes, TravelIntoAFunctionCalledInATrace) {
  auto inner = function([](const Tensor& x) { return math::square(x); });
  auto f = function(
      [&](const Tensor& x) {
        const auto on = device("/GPU:1");
        return inner(x) + 1.0;
      },
      plain("f"));
  f(constant({1.f}));
  EXPECT_EQ(place_of(f.text("place"), "Square"), "GPU:1");
}

// Both branches, with scopes around the cond and inside a branch.
Tensor branches(const Tensor& take_first, const Tensor& x,
                std::string* ran = nullptr) {
  const auto on = device("/GPU:1");
  return cond(
      take_first,
      [&] {
        const Tensor y = math::square(x);
        if (ran) *ran = short_device(y);
        return y;
      },
      [&] {
        const auto inner = device("/CPU:0");
        const Tensor y = math::exp(x);
        if (ran) *ran = short_device(y);
        return y;
      });
}

TEST(Scopes, TravelIntoBranches) {
  std::string ran;
  const Tensor x = constant({2.f});
  branches(constant(true), x, &ran);
  EXPECT_EQ(ran, "GPU:1");
  branches(constant(false), x, &ran);
  EXPECT_EQ(ran, "CPU:0");
  auto f =
      function([](const Tensor& p, const Tensor& x) { return branches(p, x); },
               plain("f"));
  EXPECT_EQ(f(constant(true), x).to_vector<float>(), (Floats{4}));
  EXPECT_EQ(place_of(f.text("place"), "Square"), "GPU:1");
  EXPECT_EQ(place_of(f.text("place"), "Exp"), "CPU:0");
}

Tensor loop(const Tensor& x, std::string* ran = nullptr) {
  const auto on = device("/GPU:1");
  const auto [i, y] =
      while_loop([](const Tensor& i,
                    const Tensor&) { return math::less(i, constant(2.f)); },
                 [&](const Tensor& i, const Tensor& y) {
                   const Tensor next = math::square(y);
                   if (ran) *ran = short_device(next);
                   const auto inner = device("/CPU:0");
                   return std::tuple(i + 1.0, math::negative(next));
                 },
                 std::tuple(constant(0.f), x));
  return y;
}

TEST(Scopes, TravelIntoLoops) {
  std::string ran;
  const Tensor x = constant({2.f});
  // 2 -> -4 -> -16
  EXPECT_EQ(loop(x, &ran).to_vector<float>(), (Floats{-16}));
  EXPECT_EQ(ran, "GPU:1");
  auto f = function([](const Tensor& x) { return loop(x); }, plain("f"));
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{-16}));
  EXPECT_EQ(place_of(f.text("place"), "Square"), "GPU:1");
  EXPECT_EQ(place_of(f.text("place"), "Neg"), "CPU:0");
}

TEST(Scopes, ClosingInAnyOrderInATraceLeavesTheOthers) {
  auto f = function(
      [](const Tensor& x) {
        std::optional<DeviceGuard> a, b;
        a.emplace("/GPU:1", Site::here());
        b.emplace("/CPU:0", Site::here());
        a.reset();
        const Tensor y = math::square(x);
        b.reset();
        return math::exp(y);
      },
      plain("f"));
  f(constant({1.f}));
  EXPECT_EQ(place_of(f.text("place"), "Square"), "CPU:0");
  EXPECT_EQ(place_of(f.text("place"), "Exp"), "GPU:0");
}

TEST(Scopes, PinGradientsOfATraceWhenOpenedAfterTheTape) {
  const auto gradient_in = [](const char* where) {
    auto f = function(
        [where](const Tensor& x) {
          const auto outer = device("/GPU:0");
          GradientTape tape;
          tape.watch(x);
          const Tensor y = nn::relu(x);
          std::optional<DeviceGuard> on;
          if (*where) on.emplace(where, Site::here());
          return tape.gradient(y, x);
        },
        plain("f"));
    f(constant({1.f}));
    return place_of(f.text("place"), "ReluGrad");
  };
  EXPECT_EQ(gradient_in(""), "GPU:0");
  EXPECT_EQ(gradient_in("/GPU:1"), "GPU:1");
}

}  // namespace
}  // namespace berth
