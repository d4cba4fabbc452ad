// Busy time, bytes and order of four programs, recomputed from their traces
// alone, are those of the analysis and of the plans.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/free_ports.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "profiler/analysis.h"
#include "profiler/read_perfetto.h"

namespace berth::profiler {
namespace {

using fresh_process::check;

Timeline through_a_file(const Timeline& t) {
  const std::string path =
      (std::filesystem::temp_directory_path() /
       fmt::format("berth_recorded_programs.{}.pftrace", getpid()))
          .string();
  t.write(path);
  Timeline back = Timeline::read(path);
  std::filesystem::remove(path);
  return back;
}

bool has_device(const TimelineEvent& e) {
  return e.track.find("/device:") != std::string::npos && e.kind != "memory" &&
         e.kind != "slice";
}

// By counting at each border how many ops are open.
double busy_us(const Timeline& t, const Analysis& a,
               const std::string& device) {
  std::map<double, int> borders;
  for (const TimelineEvent& e : t.events()) {
    if (!has_device(e) || e.kind == "copy" || e.kind == "sum") continue;
    const std::string name = e.task.empty() ? e.track : e.task + " " + e.track;
    if (name != device) continue;
    for (const auto& [begin, end] : a.step_spans) {
      const double from = std::max(begin, e.begin_us);
      const double to = std::min(end, e.end_us);
      if (from >= to) continue;
      ++borders[from];
      --borders[to];
    }
  }
  double us = 0, since = 0;
  int open = 0;
  for (const auto& [at, change] : borders) {
    if (open > 0) us += at - since;
    since = at;
    open += change;
  }
  return us;
}

void check_busy(const Timeline& t) {
  const Analysis a = analyze(t);
  check(!a.devices.empty(), "devices");
  for (const DeviceTime& d : a.devices) {
    const double us = busy_us(t, a, d.name);
    check(us > 0 && std::abs(us - d.busy_us) <= 1e-6 * us + 0.01,
          fmt::format("{}: {} us busy, not {}", d.name, us, d.busy_us));
  }
}

// What had to end before has ended before.
void check_order(const Timeline& t) {
  int64_t checked = 0;
  for (const TimelineEvent& e : t.events()) {
    for (const int32_t a : e.after) {
      const TimelineEvent& before = t.events()[a];
      check(before.run == e.run, "one run");
      if (before.simulated != e.simulated) continue;
      check(before.end_us <= e.begin_us + 0.002,
            fmt::format("{} ends at {}, {} begins at {}", before.name,
                        before.end_us, e.name, e.begin_us));
      ++checked;
    }
  }
  check(checked > 0, "something waits for something");
}

// Copies of each run move what the plan says between the same devices; each op
// of the plan ran on its device in each run.
void check_plan(const Timeline& t, const placement::Report& plan) {
  std::map<std::string, int64_t> planned;
  for (const placement::TransferRow& row : plan.transfers) {
    planned[row.from + " -> " + row.to] +=
        row.bytes * std::llround(row.runs_per_step);
  }
  std::map<int64_t, std::map<std::string, int64_t>> moved;  // by run
  std::map<int64_t, std::map<std::string, std::string>> ran;
  for (const TimelineEvent& e : t.events()) {
    if (e.run == 0 || !has_device(e)) continue;
    auto& edges = moved[e.run];
    if (e.kind == "copy") {
      edges[e.detail] += e.bytes;
    } else {
      ran[e.run][e.track] += "," + e.name + ", " + e.detail + ",";
    }
  }
  check(moved.size() > 1, "runs");
  for (const auto& [run, edges] : moved) {
    check(edges == planned, fmt::format("bytes of run {}", run));
  }
  for (const auto& [run, names] : ran) {
    for (const placement::OpRow& op : plan.ops) {
      if (op.collective || op.runs_per_step < 1) continue;
      const auto there = names.find(op.device);
      check(there != names.end() &&
                there->second.find(op.op) != std::string::npos,
            fmt::format("{} on {} in run {}", op.op, op.device, run));
    }
  }
}

keras::Sequential small_model() {
  auto model = keras::Sequential(
      {keras::Dense(64, {.activation = "relu"}), keras::Dense(4)});
  model.compile({.optimizer = "sgd",
                 .loss = keras::losses::SparseCategoricalCrossentropy(
                     {.from_logits = true})});
  return model;
}

void train_small(keras::Model& model) {
  const Tensor x = random::uniform({64, 32});
  const Tensor y = math::cast(math::reduce_sum(x, {.axis = 1}) > 16, int32);
  model.fit(x, y, {.epochs = 1, .batch_size = 16, .verbose = 0});
}

void on_two_core_sets() {
  fresh_process::need_cores(2);
  config::set_device_list("CPUx2");
  const distribute::MirroredStrategy strategy({"/cpu:0", "/cpu:1"});
  const auto scope = strategy.scope();
  auto model = small_model();
  train_small(model);
  start();
  train_small(model);
  const Timeline t = through_a_file(stop());
  check_order(t);
  check_busy(t);
  std::set<std::string> tracks;
  for (const TimelineEvent& e : t.events()) {
    if (e.kind == "MatMul" || e.kind == "region") tracks.insert(e.track);
  }
  check(tracks.size() == 2, "products on both core sets");
  check(std::any_of(t.events().begin(), t.events().end(),
                    [](const TimelineEvent& e) { return e.kind == "sum"; }),
        "sums");
}
TEST(RecordedPrograms, AnMlpOnTwoCoreSets) {
  IN_A_FRESH_PROCESS(on_two_core_sets());
}

TEST(RecordedPrograms, APipelineWithPrefetch) {
  const auto f = function([](const Tensor& x) { return matmul(x, x); },
                          {.name = "train_step"});
  auto data = data::Dataset::range(8)
                  .map([](const Tensors& x) {
                    return Tensors{ones({16, 16}) * math::cast(x[0], float32)};
                  })
                  .prefetch(2);
  f(ones({16, 16}));
  start();
  for (const data::Element& e : data) f(e[0]);
  const Timeline t = through_a_file(stop());
  // 8 elements of three stages and of the loop, each with an end.
  std::map<std::string, int> ended;
  std::vector<std::pair<double, double>> mapped, taken;
  std::vector<double> calls;
  for (const TimelineEvent& e : t.events()) {
    ++ended[e.kind];
    if (e.kind == "stage" && e.name.starts_with("map")) {
      mapped.push_back({e.begin_us, e.end_us});
    }
    if (e.kind == "input") taken.push_back({e.begin_us, e.end_us});
    if (e.kind == "call") calls.push_back(e.begin_us);
  }
  EXPECT_EQ(ended["input"], 9);
  EXPECT_EQ(ended["stage"], 27);
  ASSERT_EQ(calls.size(), 8u);
  ASSERT_EQ(mapped.size(), 9u);
  for (size_t k = 0; k < 8; ++k) {
    EXPECT_LE(mapped[k].second, taken[k].second) << k;  // made, then taken,
    EXPECT_LE(taken[k].second, calls[k]) << k;          // then used
  }
  const Analysis a = analyze(t);
  double input = 0;
  for (const auto& [begin, end] : a.step_spans) {
    for (const auto& [from, to] : taken) {
      input += std::max(0.0, std::min(end, to) - std::max(begin, from));
    }
  }
  EXPECT_NEAR(a.input_us, input / 8, 1e-3);
  check_busy(t);
  check_plan(t, f.placement());
}

void on_two_gpus() {
  config::set_simulated_devices("GPUx2");
  const auto f = function(
      [](const Tensor& x) {
        const auto product = [](const char* where, const Tensor& of) {
          const auto scope = device(where);
          return matmul(of, of);
        };
        return product("/GPU:0", product("/GPU:1", product("/GPU:0", x)));
      },
      {.name = "split"});
  const Tensor x = ones({64, 64});
  f(x).to_vector<float>();
  start();
  for (int k = 0; k < 3; ++k) f(x).to_vector<float>();
  const Timeline t = through_a_file(stop());
  check_order(t);
  check_busy(t);
  check_plan(t, f.placement());
}
TEST(RecordedPrograms, AModelSplitOverSimulatedGpus) {
  IN_A_FRESH_PROCESS(on_two_gpus());
}

// A task of two, which writes its trace to `path`.
void train_task(int task, const std::vector<std::string>& addresses,
                const std::string& path) {
  setenv("TF_CONFIG",
         fmt::format(R"({{"cluster": {{"worker": ["{}", "{}"]}}, )"
                     R"("task": {{"type": "worker", "index": {}}}}})",
                     addresses[0], addresses[1], task)
             .c_str(),
         1);
  const distribute::MultiWorkerMirroredStrategy strategy;
  const auto scope = strategy.scope();
  auto model = small_model();
  start();
  train_small(model);
  stop().write(path);
}

void on_two_tasks() {
  config::set_device_list("CPUx1");
  const auto addresses = free_addresses(2);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      fmt::format("berth_two_tasks.{}", getpid());
  std::filesystem::create_directories(folder);
  const auto path = [&](int task) {
    return (folder / fmt::format("{}.pftrace", task)).string();
  };
  const pid_t child = fork();
  if (child == 0) {
    train_task(1, addresses, path(1));
    std::_Exit(0);
  }
  train_task(0, addresses, path(0));
  int status = -1;
  waitpid(child, &status, 0);
  check(status == 0, "the other task");
  std::vector<TaskEvents> tasks;
  std::map<std::pair<int, std::string>, std::set<int64_t>> bytes;
  for (int task = 0; task < 2; ++task) {
    tasks.push_back(read_events(path(task)));
    tasks.back().task = fmt::format("worker:{}", task);
    for (const TimelineEvent& e : tasks.back().events) {
      if (e.kind == "sum") bytes[{task, e.name}].insert(e.bytes);
    }
  }
  std::filesystem::remove_all(folder);
  check(!bytes.empty(), "sums");
  for (const auto& [sum, sizes] : bytes) {
    check(sizes.size() == 1, sum.second + " is as large in each run");
  }
  // A known difference of their clocks is found, within what is said of it.
  for (const double shift : {0.0, 3.6e9}) {
    std::vector<TaskEvents> shifted = tasks;
    for (TimelineEvent& e : shifted[1].events) {
      e.begin_us += shift;
      e.end_us += shift;
    }
    const std::vector<TaskClock> clocks = clocks_of(shifted);
    check(clocks[1].messages > 0, "sums of both");
    check(std::abs(clocks[1].offset_us + shift) <= clocks[1].error_us + 0.01,
          fmt::format("{} us is {} +- {} us", -shift, clocks[1].offset_us,
                      clocks[1].error_us));
    const Timeline t = joined(std::move(shifted), clocks);
    check_order(t);
    check_busy(t);
    check(analyze(t).lags.size() == 2, "both tasks at their sums");
  }
}
TEST(RecordedPrograms, TwoProcesses) { IN_A_FRESH_PROCESS(on_two_tasks()); }

}  // namespace
}  // namespace berth::profiler
