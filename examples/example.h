// What the examples share: flags, devices, the plan of a step, training.

#ifndef EXAMPLES_EXAMPLE_H_
#define EXAMPLES_EXAMPLE_H_

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "berth/berth.h"
#include "cli/whole_number.h"

namespace example {

// "CPU:0 (4 cores), ...": the devices of this program.
inline std::string devices_text() {
  std::string s;
  for (const auto& d : berth::config::list_logical_devices()) {
    const size_t at = d.name.rfind("device:");
    s += fmt::format("{}{} ({})", s.empty() ? "" : ", ",
                     at == std::string::npos ? d.name : d.name.substr(at + 7),
                     d.description);
  }
  return s;
}

// The plan of a training step, in four lines.
inline void print_plan(const berth::FunctionPlanInfo& p) {
  const auto mib = [](size_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 0x1p20);
  };
  fmt::print(
      "plan of the step:\n"
      "  ops:     {} as traced, {} after optimisation\n"
      "  regions: {}\n"
      "  memory:  {} at its peak, {} is the least possible\n"
      "  copied:  {} between devices, in {} transfers\n",
      p.ops_traced, p.ops, p.regions, mib(p.peak_bytes), mib(p.bound_bytes),
      mib(p.copied_bytes), p.transfers);
  std::fflush(stdout);
}

struct Options {
  std::string data;
  int epochs = 5;
  int64_t steps = 0;  // in all; 0: as the epochs have
  int64_t seed = 0;
  int64_t batch_size = 32;
  bool json = false;
};

inline void add_flags(CLI::App* app, Options* o) {
  app->add_option("--data", o->data, "folder with the files of the data set");
  app->add_option("--epochs", o->epochs, "times through the training images")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app->add_option("--steps", o->steps, "end after so many steps")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app->add_option("--seed", o->seed, "of weights and order")
      ->check(berth::cli::whole_number<int64_t>())
      ->capture_default_str();
  app->add_option("--batch-size", o->batch_size, "images per step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_flag("--json", o->json, "end with one line of JSON");
}

// Images as floats from 0 to 1 and classes, for training and for the test.
struct Sets {
  berth::Tensor x_train, y_train, x_test, y_test;
  std::string source;
};

// Trains, tells the first and last loss, and tests.
inline int train(berth::keras::Model model, berth::keras::Optimizer optimizer,
                 const Sets& sets, const Options& o) {
  namespace keras = berth::keras;
  model.compile({.optimizer = std::move(optimizer),
                 .loss = keras::losses::SparseCategoricalCrossentropy(
                     {.from_logits = true}),
                 .metrics = {"accuracy"}});
  model.summary();
  int64_t done = 0;
  double first_loss = 0;
  // The plan is known after the first step, and shown before the second.
  const keras::Callback watch{
      .on_train_batch_end = [&](keras::Model& m, int64_t) {
        if (++done == 1) {
          print_plan(m.train_plan_info());
          first_loss = m.metrics_result().at("loss");
        }
        if (done == o.steps) m.stop_training();
      }};
  const keras::History history = model.fit(
      sets.x_train, sets.y_train,
      {.epochs = o.epochs, .batch_size = o.batch_size, .callbacks = {watch}});
  const keras::Logs test =
      model.evaluate(sets.x_test, sets.y_test, {.batch_size = 256});
  const double last_loss = history.history.at("loss").back();
  double seconds = 0;
  for (double s : history.seconds) seconds += s;
  fmt::print(
      "training loss: {:.4f} in the first step, {:.4f} over the last epoch\n"
      "test accuracy: {:.2f} %, loss {:.4f} ({} steps, {:.1f} s)\n",
      first_loss, last_loss, 100 * test.at("accuracy"), test.at("loss"), done,
      seconds);
  if (o.json) {
    const nlohmann::json line = {{"first_loss", first_loss},
                                 {"last_loss", last_loss},
                                 {"test_accuracy", test.at("accuracy")},
                                 {"steps", done},
                                 {"seconds", seconds},
                                 {"data", sets.source}};
    fmt::print("{}\n", line.dump());
  }
  return 0;
}

// Runs `body` after the flags were read; errors end in a line and 1.
inline int main_of(CLI::App* app, int argc, char** argv,
                   const std::function<int()>& body) {
  try {
    app->parse(argc, argv);
    return body();
  } catch (const CLI::ParseError& e) {
    return app->exit(e) == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", app->get_name().c_str(), e.what());
    return 1;
  }
}

}  // namespace example

#endif  // EXAMPLES_EXAMPLE_H_
