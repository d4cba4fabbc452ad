#include "conformance/strategy/training.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <optional>

#include "backends/sim/sim.h"
#include "berth/data.h"
#include "berth/debugging.h"
#include "berth/device.h"
#include "berth/ops/random.h"
#include "device/device_manager.h"

namespace berth::strategy_suite {

namespace {

std::mutex said_mutex;
std::string said_text;

void append(Values* to, Values from) {
  for (auto& v : from) to->push_back(std::move(v));
}

// Weights and what the optimizer keeps.
Values all_values(const keras::Model& model, const keras::Optimizer& opt) {
  Values all = values_of(model.weights());
  append(&all, values_of(opt.variables()));
  return all;
}

// What training of a row needs, whatever it runs on.
struct Session {
  Session(const Row& r, const Places& places, int slices)
      : row(r),
        spec(model_named(r.model)),
        data(data_for(spec, count_of(r.examples))),
        optimizer(optimizer_named(r.optimizer)),
        model([&] {
          keras::clear_session();  // names, also those of logs, begin anew
          return spec.make(places);
        }()) {
    const bool labels = spec.targets[0].shape.rank() == 0;
    model.compile({.optimizer = optimizer,
                   .metrics = {labels ? "sparse_categorical_accuracy" : "mse"},
                   .slices = slices,
                   .losses = spec.losses});
  }

  Trained run() {
    Trained t;
    if (model.built()) t.start = all_values(model, optimizer);
    row.way == Way::kFit ? fit(&t) : batch_by_batch(&t);
    t.after_all = all_values(model, optimizer);
    t.last_plan = model.train_plan_text("plan");
    for (const auto& d : model.placement().devices) {
      if (d.ops > 0) t.devices.push_back(d.device);
    }
    t.evaluated = model.evaluate(batches());
    const size_t inputs = spec.inputs.size();
    const Tensors x(data.begin(),
                    data.begin() + static_cast<std::ptrdiff_t>(inputs));
    for (const Tensor& y : model.predict(x, {.batch_size = kBatch})) {
      t.outputs.emplace_back("output", y.to_vector<double>());
    }
    return t;
  }

  data::Dataset batches() const {
    return data::Dataset::from_tensor_slices(data).batch(kBatch);
  }

  void after_step(Trained* t) {
    if (t->losses.empty()) {
      t->after_one = all_values(model, optimizer);
      t->plan = model.train_plan_text("plan");
    }
    t->losses.push_back(model.metrics_result().at("loss"));
  }

  void fit(Trained* t) {
    const keras::FitOptions options = {
        .epochs = kEpochs,
        .batch_size = kBatch,
        .verbose = 0,
        .callbacks = {{.on_train_batch_end = [&](keras::Model&,
                                                 int64_t) { after_step(t); }}},
        .shuffle = false};
    if (data.size() == 2) {
      model.fit(data[0], data[1], options);
    } else {
      model.fit(batches(), options);
    }
  }

  void batch_by_batch(Trained* t) {
    const auto middle = static_cast<std::ptrdiff_t>(spec.inputs.size());
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      model.reset_metrics();
      for (const Tensors& b : batches()) {
        model.train_on_batch({b.begin(), b.begin() + middle},
                             {b.begin() + middle, b.end()});
        after_step(t);
      }
    }
  }

  const Row& row;
  const ModelSpec& spec;
  Tensors data;
  keras::Optimizer optimizer;
  keras::Model model;
};

}  // namespace

Values values_of(const std::vector<Variable>& variables) {
  Values all;
  for (const Variable& v : variables) {
    all.emplace_back(v.name(), v.value().to_vector<double>());
  }
  return all;
}

Trained train(const Row& row) {
  seed_devices(row.seed);
  const distribute::Strategy strategy = strategy_of(row);
  random::set_seed(3);
  std::optional<Session> session;
  {
    const auto scope = strategy.scope();
    const std::string kind = row.kind();
    const Places places = row.devices_per_replica == 1 || row.layout > 0
                              ? Places{}
                              : Places{"/" + kind + ":0", "/" + kind + ":1"};
    session.emplace(row, places, 0);
  }
  return session->run();
}

const Trained& on_one_device(const Row& row) {
  static std::map<std::string, Trained> kept;
  const std::string device = device_names(row.devices).front();
  Row plain = {.model = row.model,
               .optimizer = row.optimizer,
               .examples = row.examples,
               .strategy = "plain",
               .devices = device,
               .slices = row.slices};
  const auto [it, fresh] = kept.try_emplace(plain.name());
  if (fresh) {
    random::set_seed(3);
    const auto on = berth::device("/" + device);
    it->second = Session(plain, {}, row.slices).run();
  }
  return it->second;
}

std::string difference(const Values& got, const Values& want,
                       double tolerance) {
  if (got.size() != want.size()) {
    return fmt::format("{} tensors, not {}", got.size(), want.size());
  }
  for (size_t i = 0; i < want.size(); ++i) {
    const auto& [name, a] = got[i];
    const auto& [_, b] = want[i];
    if (a.size() != b.size()) {
      return fmt::format("{} has {} elements, not {}", name, a.size(),
                         b.size());
    }
    double largest = 0;
    for (double x : b) largest = std::max(largest, std::fabs(x));
    for (size_t k = 0; k < b.size(); ++k) {
      const bool same =
          tolerance == kBits
              ? std::bit_cast<uint64_t>(a[k]) == std::bit_cast<uint64_t>(b[k])
              : std::fabs(a[k] - b[k]) <= tolerance * largest;
      if (same) continue;
      return fmt::format("{}[{}] is {:.9g}, not {:.9g} (largest {:.3g})", name,
                         k, a[k], b[k], largest);
    }
  }
  return "";
}

void expect_equal_bits(const Trained& got, const Trained& want) {
  EXPECT_EQ(difference(got.after_one, want.after_one, kBits), "")
      << "after one step";
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_EQ(difference(got.after_all, want.after_all, kBits), "")
      << "after " << want.losses.size() << " steps";
  EXPECT_EQ(got.evaluated, want.evaluated) << "evaluate";
  EXPECT_EQ(difference(got.outputs, want.outputs, kBits), "") << "predict";
}

void seed_devices(uint64_t seed) {
  for (Device* d : DeviceManager::get().devices()) {
    if (d->simulated()) sim::set_seed(*d, seed);
  }
}

void listen() {
  debugging::set_diagnostic_handler([](const debugging::Diagnostic& d) {
    const std::lock_guard lock(said_mutex);
    said_text += d.id + ": " + d.text + "\n";
  });
}

std::string said() {
  const std::lock_guard lock(said_mutex);
  return std::exchange(said_text, {});
}

}  // namespace berth::strategy_suite
