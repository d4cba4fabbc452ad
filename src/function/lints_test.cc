// Lints of compiled functions, from programs.

#include <gtest/gtest.h>

#include "base/diagnostics_testing.h"
#include "berth/berth.h"
#include "function/lint_graph.h"
#include "function/sim_testing.h"

namespace berth {
namespace {

TEST(FunctionLints, AVarianceOnTheHostIsNamedOnceForAllShapes) {
  const Heard heard;
  auto spread = function(
      [](const Tensor& x) {
        Tensor centred;
        {
          const auto on = device("/GPU:1");
          centred = math::tanh(x - 1.f);
        }
        const auto on = device("/CPU:0");
        return math::reduce_mean(math::square(centred));
      },
      {.name = "spread"});
  spread(ones({512, 512}));
  spread(ones({1024, 512}));
  const std::string text = heard.text_of("reduce-placement");
  EXPECT_NE(text.find("spread: "), std::string::npos) << text;
  EXPECT_NE(text.find("sends 1 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("would send 4 B"), std::string::npos) << text;
}

TEST(FunctionLints, APictureThatIsMadeFloatsBeforeItIsSentIsNamed) {
  const Heard heard;
  auto features = function([](const Tensor& pixels) {
    Tensor x;
    {
      const auto on = device("/CPU:0");
      x = math::cast(pixels, float32);
    }
    const auto on = device("/GPU:0");
    return math::exp(x * -0.5);
  });
  features(math::cast(ones({400, 400}), uint8));
  EXPECT_NE(heard.text_of("expand-placement").find("would send 156.3 KiB"),
            std::string::npos)
      << heard.text_of("expand-placement");
}

TEST(FunctionLints, AGradientPinnedToAnotherDeviceIsNamed) {
  const auto slope = [](const char* pin) {
    return function([pin](const Tensor& x) {
      GradientTape tape;
      tape.watch(x);
      Tensor y;
      {
        const auto on = device("/GPU:1");
        y = math::reduce_sum(math::sin(x * x));
      }
      return Tensors{y, tape.gradient(y, x, {.device = pin})};
    });
  };
  const Heard heard;
  const Tensor x = ones({300, 300});
  slope("/GPU:0")(x);
  EXPECT_EQ(heard.of("gradient-elsewhere").size(), 1u);
  slope("/GPU:1")(x);
  slope("")(x);
  EXPECT_EQ(heard.of("gradient-elsewhere").size(), 1u);
}

TEST(FunctionLints, AVariableCreatedOnAnotherDeviceThanItsOnlyReaderIsNamed) {
  const auto reader_on = [](const char* home) {
    Variable table;
    {
      const auto on = device(home);
      table = Variable(ones({200, 200}), {.name = "table"});
    }
    auto f = function([table](const Tensor& x) {
      const auto on = device("/GPU:1");
      return matmul(x, table.value());
    });
    f(ones({2, 200}));
  };
  const Heard heard;
  reader_on("/GPU:1");
  EXPECT_EQ(heard.of("variable-elsewhere").size(), 0u);
  reader_on("/GPU:0");
  EXPECT_EQ(heard.of("variable-elsewhere").size(), 1u);
}

TEST(FunctionLints, AnActivationAloneOnAnotherDeviceIsAPingPong) {
  const Heard heard;
  auto f = function([](const Tensor& x) {
    const auto outer = device("/GPU:0");
    const Tensor a = math::exp(x);
    const Tensor b = with_device("/GPU:1", [&] { return nn::relu(a); });
    return math::log(b + 1.f);
  });
  f(ones({256, 256}));
  EXPECT_EQ(heard.of("ping-pong").size(), 1u);
}

TEST(FunctionLints, AModelCutInTwoHasNothingToSay) {
  const Heard heard;
  keras::Layer first = with_device("/GPU:0", [] { return keras::Dense(256); });
  keras::Layer second = with_device("/GPU:1", [] { return keras::Dense(1); });
  auto step = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor y = math::reduce_sum(second(math::tanh(first(x))));
    std::vector<Variable> w = first.trainable_variables();
    for (const Variable& v : second.trainable_variables()) w.push_back(v);
    Tensors results = tape.gradient(y, w);
    results.push_back(y);
    return results;
  });
  step(ones({512, 256}));
  for (const auto& [id, count] : debugging::diagnostic_counts()) {
    EXPECT_EQ(count, 0) << id;
  }
}

TEST(FunctionLints, FiveTracesAreReportedOnce) {
  const Heard heard;
  auto f = function([](const Tensor& x, int n) { return x * n; },
                    {.name = "scaled"});
  for (int n = 0; n < 4; ++n) f(ones({2}), n);
  EXPECT_EQ(heard.of("retrace").size(), 0u);
  for (int n = 4; n < 8; ++n) f(ones({2}), n);
  EXPECT_NE(heard.text_of("retrace").find("\"scaled\" was traced 5 times"),
            std::string::npos);
}

}  // namespace
}  // namespace berth
