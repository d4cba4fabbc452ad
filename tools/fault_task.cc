// fault_task: one task of the clusters of tools/fault_suite and of the suite
// "resume" of tools/differential. It trains a small network for a few steps
// with backups, and prints a line at each of them.
//
//   fault_task FOLDER [KEY=VALUE...]
//
// strategy=multi|none|mirrored|central|server, data=own (each task makes its
// own) or shard (a dataset, shared by policy DATA),
// policy=raise|restore|shrink|elastic; min=N (tasks that are enough), backups=0
// (none), notice=FILE (whose appearance is one), saw=1 (says the examples of
// each step); every=N (steps between backups; 0:
// epochs), keep=2 (backups), preempt=1 (SIGTERM saves), width=N (of the
// network), pause=SECONDS (after each step), dead=SECONDS (without a
// heartbeat), timeout=SECONDS (of joining and of forming again), throws=N
// (after N steps), slices=N, compile_slices=N (of compile(); 0: bits depend on
// the number of tasks). The last line is "done HASH", of the bits of all
// weights, or "error CODE TEXT".

#include <fmt/format.h>
#include <sys/prctl.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "berth/berth.h"

namespace {

using namespace berth;

constexpr int kEpochs = 2, kExamples = 60, kFeatures = 12, kBatch = 10;

struct Options {
  std::map<std::string, std::string> values;

  double number(const std::string& key, double otherwise) const {
    const auto found = values.find(key);
    return found == values.end() ? otherwise : std::atof(found->second.c_str());
  }
  std::string word(const std::string& key) const {
    const auto found = values.find(key);
    return found == values.end() ? "" : found->second;
  }
  bool has_policy(const std::string& name) const {
    return word("policy") == name;
  }
};

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::pair<Tensor, Tensor> examples() {
  std::vector<float> x;
  std::vector<int32_t> y;
  for (int i = 0; i < kExamples; ++i) {
    for (int f = 0; f < kFeatures; ++f) {
      x.push_back(std::sin(static_cast<float>(i * kFeatures + f)));
    }
    y.push_back(i * 7 % 3);
  }
  return {constant(std::span<const float>(x), Shape{kExamples, kFeatures}),
          constant(std::span<const int32_t>(y), Shape{kExamples})};
}

keras::Sequential compiled(const distribute::Strategy& strategy, int width,
                           int slices) {
  const auto scope = strategy.scope();
  keras::Sequential model({
      keras::InputLayer({kFeatures}),
      keras::Dense(width, {.activation = "relu"}),
      keras::Dropout(0.25),
      keras::Dense(3, {.activation = "softmax"}),
  });
  model.compile({.optimizer = "adam",
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"},
                 .slices = slices});
  return model;
}

bool thrown = false;  // once per process

// "saw EPOCH BATCH: 3 1 4", the examples of a step by their numbers.
std::string seen_by(const keras::FitLoop& loop, int64_t batch) {
  std::string line = fmt::format("saw {} {}:", loop.epoch(), batch);
  const Tensor x = loop.element()[0];
  const auto values = x.to_vector<float>();
  for (size_t at = 0; at < values.size(); at += kFeatures) {
    for (int i = 0; i < kExamples; ++i) {
      if (values[at] == std::sin(static_cast<float>(i * kFeatures))) {
        line += fmt::format(" {}", i);
      }
    }
  }
  return line;
}

void say_counts(const keras::History& h) {
  if (!h.tasks) return;
  for (const auto& e : h.tasks->epochs) {
    say(fmt::format("examples {} {} {}", e.once, e.twice, e.never));
  }
}

void fit(keras::Sequential& model, const std::string& folder,
         const Options& o) {
  const auto [x, y] = examples();
  const auto pause = std::chrono::duration<double>(o.number("pause", 0.005));
  int steps = 0;
  const int throws = static_cast<int>(o.number("throws", 0));
  const keras::Callback tells{
      .on_train_batch_end = [&](keras::Model& m, int64_t batch) {
        say(fmt::format("step {}", ++steps));
        if (o.number("saw", 0) > 0) say(seen_by(*m.fit_loop(), batch));
        if (steps == throws && !std::exchange(thrown, true)) {
          throw errors::Internal("thrown on purpose");
        }
        std::this_thread::sleep_for(pause);
      }};
  using keras::callbacks::SaveFreq;
  const int every = static_cast<int>(o.number("every", 1));
  keras::FitOptions options{
      .epochs = kEpochs,
      .batch_size = kBatch,
      .verbose = 0,
      .callbacks = {
          keras::callbacks::BackupAndRestore(
              folder,
              {.save_freq = every > 0 ? SaveFreq(every) : SaveFreq("epoch"),
               .double_checkpoint = o.number("keep", 1) > 1,
               .delete_checkpoint = false,
               .save_before_preemption = o.number("preempt", 0) > 0}),
          tells}};
  if (o.number("backups", 1) == 0) options.callbacks = {tells};
  say("fit");
  if (o.word("data") == "shard") {
    options.batch_size = keras::FitOptions().batch_size;
    const auto shared = data::with_options(
        data::Dataset::from_tensor_slices({x, y})
            .shuffle(kExamples, {.seed = 5})
            .batch(kBatch),
        {.experimental_distribute = {.auto_shard_policy =
                                         data::AutoShardPolicy::kData}});
    return say_counts(model.fit(shared, options));
  }
  if (o.word("data") != "own") return say_counts(model.fit(x, y, options));
  options.batch_size = keras::FitOptions().batch_size;
  const keras::utils::experimental::DatasetCreator creator(
      [x = x, y = y](const distribute::InputContext& c) {
        return data::Dataset::from_tensor_slices({x, y})
            .shard(c.num_input_pipelines, c.input_pipeline_id)
            .shuffle(kExamples, {.seed = 5})
            .batch(kBatch / c.num_input_pipelines);
      });
  model.fit(creator, options);
}

// FNV-1a of all bits.
uint64_t hash_of(const keras::Sequential& model) {
  uint64_t hash = 14695981039346656037u;
  for (const Tensor& w : model.get_weights()) {
    for (const float v : w.to_vector<float>()) {
      uint32_t bits;
      static_assert(sizeof(bits) == sizeof(v));
      std::memcpy(&bits, &v, sizeof(bits));
      hash = (hash ^ bits) * 1099511628211u;
    }
  }
  return hash;
}

void train(const distribute::Strategy& strategy, const std::string& folder,
           const Options& o,
           const distribute::MultiWorkerMirroredStrategy* tasks = nullptr) {
  say("joined");
  random::set_seed(3);
  auto model = compiled(strategy, static_cast<int>(o.number("width", 16)),
                        static_cast<int>(o.number("compile_slices", 0)));
  const double timeout = o.number("timeout", 60);
  if (tasks != nullptr && o.has_policy("restore")) {
    tasks->wait_and_restore([&] { fit(model, folder, o); }, timeout);
  } else if (tasks != nullptr && o.has_policy("shrink")) {
    tasks->shrink_and_restore([&] { fit(model, folder, o); }, timeout);
  } else if (tasks != nullptr && o.has_policy("elastic")) {
    tasks->elastic([&] { fit(model, folder, o); },
                   {.min = static_cast<int>(o.number("min", 1)),
                    .timeout_seconds = timeout,
                    .termination_config = {.notice_file = o.word("notice")}});
  } else {
    fit(model, folder, o);
  }
  const uint64_t hash = hash_of(model);
  say("trained");
  if (tasks != nullptr) tasks->leave();
  say(fmt::format("done {:016x}", hash));
}

void run_task(const std::string& folder, const Options& o) {
  const std::string kind = o.word("strategy");
  const distribute::StrategyOptions options{
      .slices = static_cast<int>(o.number("slices", 0))};
  if (kind == "none") {
    return train(distribute::get_strategy(), folder, o);
  }
  if (kind == "mirrored") {
    return train(distribute::MirroredStrategy(options), folder, o);
  }
  if (kind == "central") {
    return train(distribute::CentralStorageStrategy(options), folder, o);
  }
  const auto resolver = distribute::cluster_resolver::from_environment();
  const double timeout = o.number("timeout", 60);
  if (kind == "server") {
    return train(distribute::ParameterServerStrategy(
                     resolver, {.join_timeout_seconds = timeout}),
                 folder, o);
  }
  const distribute::MultiWorkerMirroredStrategy tasks(
      resolver, options,
      {.join_timeout_seconds = timeout,
       .heartbeat_seconds = 0.2,
       .dead_after_seconds = o.number("dead", 10),
       .call_timeout_seconds = o.number("call", 60),
       .min_tasks =
           o.has_policy("elastic") ? static_cast<int>(o.number("min", 1)) : 0});
  train(tasks, folder, o, &tasks);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: fault_task FOLDER [KEY=VALUE...]\n");
    return 2;
  }
  Options o;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    o.values[word.substr(0, equals)] =
        equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  say("started");
  try {
    run_task(argv[1], o);
    return 0;
  } catch (const errors::Error& e) {
    say(fmt::format("error {} {}", errors::code_name(e.code()), e.what()));
  } catch (const std::exception& e) {
    say(fmt::format("error OTHER {}", e.what()));
  }
  return 1;
}
