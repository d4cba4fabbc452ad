// digits: trains a network with two convolutions to read handwritten digits.
//
//   digits                                   MNIST, or digits drawn here
//   digits --data DIR                        MNIST's four files in DIR
//   digits --images FILE --labels FILE --holdout 1500
//                                            one pair of IDX files; the last
//                                            1,500 are the test set
//   digits --devices CPUx2                   two core sets, each with a half of
//                                            every batch; "CPU[0],CPU[1-3]":
//                                            two of different sizes
//   digits --checkpoint DIR --every 100      saves its state every 100 steps;
//                                            killed, and started again with
//                                            --resume as well, it goes on
//   digits --save FILE.safetensors           writes the weights at the end
//
//   digits --strategy parameter-server       workers and parameter servers:
//                                            berth launch --workers 2 --ps 1
//                                            -- digits --strategy
//                                            parameter-server
//   digits --strategy multi-worker           several processes, as TF_CONFIG or
//                                            a launcher says: berth launch
//                                            --workers 2 -- digits --strategy
//                                            multi-worker
//
// With more than one device it trains under a MirroredStrategy.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "backup.h"
#include "berth/berth.h"
#include "cli/whole_number.h"
#include "example.h"

namespace {

using berth::Shape;
using berth::Tensor;
namespace keras = berth::keras;

struct Options {
  std::string data, images, labels;
  int64_t holdout = 0;
  int epochs = 6;
  int64_t seed = 0;
  int64_t batch_size = 32;
  bool json = false;
  bool no_download = false;
  std::string devices, shares = "auto", strategy = "mirrored";
  std::string save;
  example::Backup backup;
};

struct Digits {
  keras::datasets::Split train, test;
  std::string source;
};

Digits load(const Options& o) {
  namespace mnist = keras::datasets::mnist;
  if (o.images.empty()) {
    const mnist::Data d = mnist::load_data({.data_dir = o.data,
                                            .allow_download = !o.no_download,
                                            .draw_if_missing = true});
    return {d.train, d.test, d.source};
  }
  const keras::datasets::Split all = mnist::load_files(o.images, o.labels);
  const int64_t n = all.x.shape()[0];
  if (o.holdout < 1 || o.holdout >= n) {
    throw berth::errors::InvalidArgument(
        fmt::format("--holdout is {}; expected 1 to {}, since {} holds {} "
                    "images",
                    o.holdout, n - 1, o.images, n));
  }
  const int64_t cut = n - o.holdout;
  return {{all.x[{berth::slice(0, cut)}], all.y[{berth::slice(0, cut)}]},
          {all.x[{berth::slice(cut)}], all.y[{berth::slice(cut)}]},
          fmt::format("{}, the last {} held out", o.images, o.holdout)};
}

// Bytes [n, h, w] to floats [n, h, w, 1] from 0 to 1.
Tensor pixels(const Tensor& images) {
  return berth::expand_dims(
      berth::math::cast(images, berth::float32) * (1 / 255.0), -1);
}
Tensor classes(const Tensor& labels) {
  return berth::math::cast(labels, berth::int32);
}

keras::Sequential make_model(int64_t height, int64_t width) {
  return keras::Sequential({
      keras::InputLayer({height, width, 1}),
      keras::Conv2D(32, {3, 3}, {.activation = "relu"}),
      keras::MaxPooling2D({2, 2}),
      keras::Conv2D(64, {3, 3}, {.activation = "relu"}),
      keras::MaxPooling2D({2, 2}),
      keras::Flatten(),
      keras::Dropout(0.25),
      keras::Dense(128, {.activation = "relu"}),
      keras::Dropout(0.3),
      keras::Dense(10),
  });
}

// Equal shares for equal devices; else, or when asked for, shares that follow
// what is measured.
berth::distribute::MirroredStrategy make_strategy(const Options& o) {
  namespace distribute = berth::distribute;
  const distribute::MirroredStrategy equal;
  const auto all = berth::config::list_logical_devices(
      berth::config::list_logical_devices("GPU").empty() ? "CPU" : "GPU");
  const auto cores = [](const berth::config::LogicalDevice& d) {
    return d.description.substr(0, d.description.find(':'));
  };
  bool unequal = false;
  for (const auto& d : all) unequal |= cores(d) != cores(all[0]);
  if (o.shares == "equal" || !unequal || equal.num_replicas_in_sync() == 1) {
    return equal;
  }
  return distribute::MirroredStrategy(
      {.devices_per_replica = 1, .shares = distribute::Auto});
}

// The devices of all tasks, or those of this process.
struct Chosen {
  std::optional<berth::distribute::MultiWorkerMirroredStrategy> tasks;
  // Workers and parameter servers stay in its constructor.
  std::optional<berth::distribute::ParameterServerStrategy> served;
  std::optional<berth::distribute::Strategy> strategy;

  explicit Chosen(const Options& o) {
    if (o.strategy == "multi-worker") {
      strategy = tasks.emplace();
    } else if (o.strategy == "parameter-server") {
      strategy = served.emplace();
    } else {
      strategy = make_strategy(o);
    }
  }
  bool prints() const { return !tasks || tasks->is_chief(); }
};

int train(const Options& o) {
  if (!o.devices.empty()) berth::config::set_device_list(o.devices);
  const Chosen chosen(o);
  const auto& strategy = *chosen.strategy;
  berth::random::set_seed(o.seed);
  const std::string devices = example::devices_text();
  fmt::print("devices: {}\n", devices);
  const Digits digits = load(o);
  const Shape& shape = digits.train.x.shape();
  fmt::print("data: {}\n{} training images, {} test images, {} x {}\n",
             digits.source, shape[0], digits.test.x.shape()[0], shape[1],
             shape[2]);
  const Tensor x_train = pixels(digits.train.x);
  const Tensor y_train = classes(digits.train.y);
  const Tensor x_test = pixels(digits.test.x);
  const Tensor y_test = classes(digits.test.y);

  const int replicas = strategy.num_replicas_in_sync();
  std::optional<berth::distribute::StrategyGuard> scope;
  if (replicas > 1 || chosen.served) {
    scope.emplace(strategy.core(), berth::Site::here());
  }
  auto model = make_model(shape[1], shape[2]);
  model.compile({.optimizer = keras::Adam(1e-3),
                 .loss = keras::losses::SparseCategoricalCrossentropy(
                     {.from_logits = true}),
                 .metrics = {"accuracy"}});
  scope.reset();
  std::fflush(stdout);
  if (chosen.prints()) model.summary();
  if (replicas > 1 && chosen.prints()) {
    std::fflush(stdout);
    fmt::print("{}", strategy.plan(model, o.batch_size).str());
  }

  // The plan is known after the first step, and shown before the second.
  bool shown = false;
  const keras::Callback show_plan{
      .on_train_batch_end = [&](keras::Model& m, int64_t) {
        if (!shown && !chosen.served && chosen.prints()) {
          example::print_plan(m.train_plan_info());
        }
        shown = true;
      }};
  std::vector<keras::Callback> callbacks = example::callbacks_of(o.backup);
  callbacks.push_back(show_plan);
  const keras::History history = model.fit(
      x_train, y_train,
      {.epochs = o.epochs, .batch_size = o.batch_size, .callbacks = callbacks});
  if (!o.save.empty() && chosen.prints()) model.save_weights(o.save);
  const keras::Logs result =
      model.evaluate(x_test, y_test, {.batch_size = 256});
  double seconds = 0;
  for (double s : history.seconds) seconds += s;
  seconds /= static_cast<double>(history.seconds.size());
  fmt::print("test accuracy: {:.2f} %, loss {:.4f} ({:.2f} s per epoch)\n",
             100 * result.at("accuracy"), result.at("loss"), seconds);
  if (chosen.tasks) chosen.tasks->leave();
  if (o.json) {
    const nlohmann::json line = {{"test_accuracy", result.at("accuracy")},
                                 {"loss", result.at("loss")},
                                 {"seconds_per_epoch", seconds},
                                 {"devices", devices},
                                 {"replicas", replicas},
                                 {"data", digits.source}};
    fmt::print("{}\n", line.dump());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Trains a convolutional network to read digits.");
  app.add_option("--data", o.data, "folder with MNIST's four files");
  auto* images = app.add_option("--images", o.images, "IDX file of images");
  auto* labels = app.add_option("--labels", o.labels, "IDX file of labels");
  auto* holdout = app.add_option("--holdout", o.holdout,
                                 "with --images: the last N are the test set");
  images->needs(labels)->needs(holdout);
  labels->needs(images);
  holdout->needs(images);
  app.add_option("--epochs", o.epochs, "times through the training images")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of weights, order and dropout")
      ->check(berth::cli::whole_number<int64_t>())
      ->capture_default_str();
  app.add_option("--batch-size", o.batch_size, "images per step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--devices", o.devices,
                 "device list: CPUx2, CPU[0],CPU[1-3], GPUx2");
  app.add_option("--strategy", o.strategy,
                 "mirrored: this process; multi-worker: all tasks of a "
                 "cluster; parameter-server: its workers and servers")
      ->check(CLI::IsMember({"mirrored", "multi-worker", "parameter-server"}))
      ->capture_default_str();
  app.add_option("--shares", o.shares,
                 "of each batch: equal, or auto: by speed where devices differ")
      ->check(CLI::IsMember({"auto", "equal"}))
      ->capture_default_str();
  example::add_flags(&app, &o.backup);
  app.add_option("--save", o.save, "safetensors file for the weights");
  app.add_flag("--no-download", o.no_download, "never use the network");
  app.add_flag("--json", o.json, "end with one line of JSON");
  try {
    app.parse(argc, argv);
    return train(o);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "digits: %s\n", e.what());
    return 1;
  }
}
