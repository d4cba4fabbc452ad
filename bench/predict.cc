// How well steps of strategies are predicted before they run: four models on
// one device, on core sets and on simulated accelerators. Each case is a
// process of its own, since devices are configured once: `--model mlp/2x2` is
// one case, no model all of them.

#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench_common.h"
#include "berth/berth.h"
#include "berth/distribute.h"
#include "cases.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kCores = 4;
constexpr const char* kModels[] = {"mlp", "cnn", "norm", "100k"};
constexpr const char* kDevices[] = {"1x4", "2x2", "4x1", "1+3", "sim"};

struct Net {
  std::vector<keras::Layer> layers;
  Shape input;  // of one example
  int64_t batch = 256;
};

Net make_net(const std::string& name) {
  using namespace keras;
  const DenseOptions relu{.activation = "relu"};
  if (name == "mlp") return {{Dense(128, relu), Dense(10)}, Shape({784})};
  if (name == "100k") {
    return {{Dense(280, relu), Dense(280, relu), Dense(10)}, Shape({64})};
  }
  if (name == "norm") {
    return {{Dense(256), BatchNormalization(), Activation("relu"), Dense(256),
             BatchNormalization(), Activation("relu"), Dense(10)},
            Shape({128})};
  }
  if (name == "cnn") {
    return {{Conv2D(16, 3, {.activation = "relu"}), MaxPooling2D(2),
             Conv2D(32, 3, {.activation = "relu"}), MaxPooling2D(2), Flatten(),
             Dense(10)},
            Shape({28, 28, 1}),
            64};
  }
  std::fprintf(stderr, "unknown model \"%s\"\n", name.c_str());
  std::exit(2);
}

std::string joined(const std::vector<int>& cores, size_t begin, size_t end) {
  std::string s;
  for (size_t i = begin; i < end; ++i) {
    s += (s.empty() ? "" : ",") + std::to_string(cores[i]);
  }
  return s;
}

void configure(const std::string& devices) {
  const std::vector<int> c = allowed_cores();
  std::vector<size_t> borders = {0, 4};
  if (devices == "2x2") borders = {0, 2, 4};
  if (devices == "4x1") borders = {0, 1, 2, 3, 4};
  if (devices == "1+3") borders = {0, 1, 4};
  if (devices == "sim") config::set_simulated_devices("GPUx2");
  std::vector<config::LogicalDeviceConfiguration> parts;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    parts.push_back({.cores = joined(c, borders[i], borders[i + 1])});
  }
  config::set_logical_device_configuration({"/physical_device:CPU:0", "CPU"},
                                           parts);
}

Shape with_batch(int64_t batch, const Shape& example) {
  std::vector<int64_t> dims = {batch};
  for (int i = 0; i < example.rank(); ++i) dims.push_back(example[i]);
  return Shape(dims);
}

int run_case(const std::string& name, double seconds) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) {
    std::fprintf(stderr, "a case is a model and devices: mlp/2x2\n");
    return 2;
  }
  const std::string devices = name.substr(slash + 1);
  configure(devices);
  const Net net = make_net(name.substr(0, slash));
  const distribute::MirroredStrategy strategy;
  const auto scope = strategy.scope();
  keras::Sequential model(net.layers);
  model.build(with_batch(-1, net.input));
  model.compile({.optimizer = "adam",
                 .loss = keras::losses::SparseCategoricalCrossentropy(
                     {.from_logits = true})});
  const double before = now_seconds();
  const distribute::StrategyPlan plan = strategy.plan(model, net.batch);
  const double planning = now_seconds() - before;
  const Tensor x = random::normal(with_batch(net.batch, net.input));
  const Tensor y = zeros({net.batch}, int32);
  for (int i = 0; i < 20; ++i) model.train_on_batch(x, y);
  std::vector<double> steps;
  const double begin = now_seconds();
  while (steps.size() < 50 || now_seconds() - begin < seconds) {
    const double start = now_seconds();
    model.train_on_batch(x, y);
    steps.push_back(1e6 * (now_seconds() - start));
  }
  std::sort(steps.begin(), steps.end());
  // What a prediction is: the time when nobody else has the cores.
  double measured = steps[steps.size() / 10], median = steps[steps.size() / 2];
  if (devices == "sim") measured = median = model.placement().measured_step_us;
  Line("predict", kCores)
      .add("case", name)
      .add("predicted_us", plan.step_us)
      .add("measured_us", measured)
      .add("median_us", median)
      .add("error", plan.step_us / measured - 1)
      .add("median_error", plan.step_us / median - 1)
      .add("speed_up", plan.speed_up())
      .add("one_device_us", plan.one_device_us)
      .add("ms_to_plan", 1e3 * planning)
      .print();
  return 0;
}

double median_of(std::vector<double> v) {
  if (v.empty()) return -1;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(kCores)) {
    return skip("predict", kCores, "fewer than 4 cores");
  }
  forget_kept_costs();
  if (!args.model.empty()) return run_case(args.model, args.seconds);
  std::vector<double> errors, median_errors;
  int failed = 0;
  for (const char* devices : kDevices) {
    for (const char* model : kModels) {
      const nlohmann::json line = run_child(
          argv[0], std::string(model) + "/" + devices, args.seconds / 4);
      if (!line.is_object()) {
        ++failed;
        continue;
      }
      errors.push_back(std::abs(line["error"].get<double>()));
      median_errors.push_back(std::abs(line["median_error"].get<double>()));
    }
  }
  Line("predict_all", kCores)
      .add("cases", errors.size())
      .add("failed", failed)
      .add("error", median_of(errors))
      .add("median_error", median_of(median_errors))
      .print();
  return failed > 0;
}
