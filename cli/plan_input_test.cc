// What `berth plan` reads of what programs print.

#include "cli/plan_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "berth/berth.h"
#include "graph/graph_text.h"

namespace berth::cli {
namespace {

namespace k = keras;

// Before any device exists: its kernels stand for those of a GPU.
[[maybe_unused]] const bool kSimulated = setenv("BERTH_SIM", "GPUx1", 1) == 0;

// As another process finds it: it has the blobs of none.
std::string foreign(const std::string& text) {
  return std::regex_replace(text, std::regex("blob [0-9a-f]{16}"),
                            "blob 0123456789abcdef");
}

PlanInput read(const std::string& text) {
  const std::string path = ::testing::TempDir() + "berth_plan_input_" +
                           std::to_string(getpid()) + ".txt";
  std::ofstream(path) << text;
  PlanInput input;
  read_plan_input({.file = path, .devices = "CPUx1,GPUx2"}, input);
  std::filesystem::remove(path);
  return input;
}

struct Exported {
  const char* name;
  std::function<k::Sequential()> model;
};

TEST(PlanInput, ReadsTheTrainingStepsOfModelsThatHaveNotTrained) {
  const std::vector<Exported> all = {
      {"dense",
       [] {
         return k::Sequential(
             {k::InputLayer({20}), k::Dense(8), k::Dropout(0.5), k::Dense(3)});
       }},
      {"convolution",
       [] {
         return k::Sequential({k::InputLayer({8, 8, 2}), k::Conv2D(4, {3, 3}),
                               k::BatchNormalization(), k::MaxPooling2D({2, 2}),
                               k::Flatten(), k::Dense(3)});
       }},
      {"constants",
       [] {
         const Tensor table = random::normal({20, 8});
         return k::Sequential({k::InputLayer({20}),
                               k::Lambda([table](const Tensor& x) {
                                 return linalg::matmul(x, table);
                               }),
                               k::Dense(3)});
       }},
      {"recurrent", [] {
         return k::Sequential({k::InputLayer({5, 4}), k::LSTM(6), k::Dense(3)});
       }}};
  for (const Exported& e : all) {
    SCOPED_TRACE(e.name);
    auto model = e.model();
    model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
    const Tensor before = model.weights()[0].value();
    for (const char* stage : {"trace", "optimize"}) {
      const std::string text = foreign(model.train_plan_text(stage));
      const PlanInput input = read(text);
      EXPECT_GT(input.problem.num_ops(), 10);
      // Constants that are not there keep their names.
      EXPECT_EQ(print(input.graph->text.graph), text);
    }
    EXPECT_EQ(model.weights()[0].value().to_vector<float>(),
              before.to_vector<float>());
  }
}

TEST(PlanInput, ReadsFunctionsWithLoopsAndBranches) {
  const Tensor large = random::normal({100});
  auto f = function([&](const Tensor& x) {
    const auto [k, y] =
        while_loop([&](const Tensor& k, const Tensor&) { return k < 3; },
                   [&](const Tensor& k, const Tensor& v) {
                     return std::tuple(k + 1, v * large);
                   },
                   std::tuple(constant(0), x));
    return cond(
        math::reduce_sum(y) > 0.f, [&] { return y * large; },
        [&] { return y - large; });
  });
  f(large);
  for (const char* stage : {"trace", "optimize"}) {
    EXPECT_GT(read(foreign(f.text(stage))).problem.num_ops(), 0);
  }
}

}  // namespace
}  // namespace berth::cli
