// Saving and resuming models.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "berth/train.h"
#include "io/safetensors.h"
#include "io/temp_dir_testing.h"
#include "keras/callbacks/file_pattern.h"
#include "keras/training/strategy_testing.h"
#include "tensor/variable_state.h"

namespace berth::keras {
namespace {

using io::testing::exists;
using io::testing::read_file;
using io::testing::TempDir;
using io::testing::write_file;

template <class E>
void expect_error(const std::function<void()>& fn, const std::string& part) {
  try {
    fn();
    ADD_FAILURE() << "nothing was thrown; expected " << part;
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

Tensor images(int64_t n) { return numbers({n, 6, 6, 1}); }
Tensor digits_of(int64_t n) {
  std::vector<int32_t> y(static_cast<size_t>(n));
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<int32_t>(i * 7 % 3);
  return constant(std::span<const int32_t>(y), {n});
}

Sequential small_mlp(bool built = true) {
  std::vector<Layer> layers;
  if (built) layers.push_back(InputLayer({6, 6, 1}));
  for (const Layer& l : std::vector<Layer>{
           Flatten(), Dense(8, {.activation = "relu"}), Dropout(0.4),
           Dense(5, {.name = "middle"}), Dropout(0.2), Dense(3)}) {
    layers.push_back(l);
  }
  return Sequential(layers);
}

Sequential small_cnn() {
  return Sequential({InputLayer({6, 6, 1}),
                     Conv2D(4, 3, {.activation = "relu"}), BatchNormalization(),
                     Dropout(0.3), Flatten(), Dense(3)});
}

Sequential small_lstm(bool unroll) {
  return Sequential(
      {InputLayer({6, 6, 1}), Reshape({6, 6}),
       LSTM(5, {.dropout = 0.2,
                .recurrent_dropout = 0.3,
                .return_sequences = true}),
       LSTM(4, {.dropout = 0.1, .recurrent_dropout = 0.1, .unroll = unroll}),
       Dense(3)});
}

void compile_small(Model& model, int slices = 0) {
  model.compile(
      {.optimizer = Adam(0.01),
       .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
       .metrics = {"accuracy"},
       .slices = slices});
}

std::vector<float> weight_floats(const Model& model) {
  std::vector<float> all;
  for (const Tensor& t : model.get_weights()) {
    for (const float v : t.to_vector<float>()) all.push_back(v);
  }
  return all;
}

TEST(SaveWeights, NamesLayersWithinTheModel) {
  const TempDir dir;
  for (int i = 0; i < 2; ++i) {  // the second one's layers are called dense_2
    Sequential model = small_mlp();
    model.save_weights(dir / "w.safetensors");
    std::vector<std::string> names;
    const io::SafetensorsFile file(dir / "w.safetensors", "test");
    for (const auto& t : file.tensors()) names.push_back(t.name);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, (std::vector<std::string>{
                         "dense/bias", "dense/kernel", "dense_1/bias",
                         "dense_1/kernel", "middle/bias", "middle/kernel"}));
  }
}

TEST(SaveWeights, NamesPartsOfPartsAndSharedLayersOnce) {
  const TempDir dir;
  Dense shared(4, {.name = "both"});
  const KerasTensor in = Input({4});
  Sequential inner({InputLayer({4}), Dense(4), Dense(4)}, {.name = "inner"});
  Model model(in, shared(inner(shared(in))));
  model.save_weights(dir / "w");
  const io::SafetensorsFile file(dir / "w.safetensors", "test");
  EXPECT_EQ(file.tensors().size(), 6u);
  for (const char* name : {"both/kernel", "both/bias", "inner/dense/kernel",
                           "inner/dense_1/bias"}) {
    EXPECT_GE(file.find(name), 0) << name;
  }
}

TEST(SaveWeights, AnotherModelComputesTheSame) {
  const TempDir dir;
  Sequential one = small_cnn();
  compile_small(one);
  one.fit(images(16), digits_of(16), {.verbose = 0});
  one.save_weights(dir / "w");
  Sequential two = small_cnn();
  two.load_weights(dir / "w");
  EXPECT_EQ(weight_floats(two), weight_floats(one));
  for (const Variable& v : two.weights()) {
    mark_torn(variable_state(v.handle()), "a test");
  }
  two.load_weights(dir / "w.safetensors");
  EXPECT_EQ(weight_floats(two), weight_floats(one));
}

TEST(SaveWeights, RefusesOtherFormatsWithTheCallThatIsMeant) {
  Sequential model = small_mlp();
  const TempDir dir;
  for (const char* name : {"m.h5", "m.keras", "m.ckpt"}) {
    expect_error<errors::InvalidArgument>(
        [&] { model.save_weights(dir / name); }, dir / "m.safetensors\"");
    expect_error<errors::InvalidArgument>(
        [&] { callbacks::ModelCheckpoint(dir / name); }, "m.safetensors");
  }
  expect_error<errors::InvalidArgument>(
      [&] { model.save_weights(dir / "m", {.format = "tf"}); },
      "no format \"tf\"");
  EXPECT_FALSE(exists(dir / "m.safetensors"));
}

TEST(SaveWeights, RefusesWhatDoesNotFitAndLoadsNothing) {
  const TempDir dir;
  small_mlp().save_weights(dir / "w");
  Sequential other({InputLayer({6, 6, 1}), Flatten(), Dense(9), Dense(5),
                    Dense(3, {.name = "more"})});
  const std::vector<float> before = weight_floats(other);
  expect_error<errors::InvalidArgument>(
      [&] { other.load_weights(dir / "w"); },
      "\"dense/kernel\" is F32 [36,8] in the file and float32 [36,9]");
  expect_error<errors::InvalidArgument>([&] { other.load_weights(dir / "w"); },
                                        "checkpoints_test.cc");
  EXPECT_EQ(weight_floats(other), before);
  other.load_weights(dir / "w", {.skip_mismatch = true});
  expect_error<errors::NotFound>([&] { other.load_weights(dir / "none"); },
                                 "none.safetensors");
  expect_error<errors::AlreadyExists>(
      [&] { other.save_weights(dir / "w", {.overwrite = false}); }, "exists");
  Sequential unbuilt = small_mlp(false);
  expect_error<errors::FailedPrecondition>(
      [&] { unbuilt.save_weights(dir / "w"); }, "not made yet");
  expect_error<errors::FailedPrecondition>(
      [&] { unbuilt.load_weights(dir / "w"); }, "model.build");
  write_file(dir / "w.safetensors",
             read_file(dir / "w.safetensors").substr(0, 700));
  expect_error<errors::DataLoss>([&] { small_mlp().load_weights(dir / "w"); },
                                 "truncated");
}

TEST(FilePattern, PutsValuesInAsPythonDoes) {
  const auto fill = [](const std::string& pattern) {
    return fill_pattern(pattern, {{"epoch", 3}, {"batch", 12}},
                        {{"loss", 0.125}, {"val_loss", 12.3456}}, "test");
  };
  EXPECT_EQ(fill("{epoch:02d}-{val_loss:.2f}"), "03-12.35");
  EXPECT_EQ(fill("a/{epoch}_{batch:04d}{{x}}"), "a/3_0012{x}");
  EXPECT_EQ(fill("{loss:.1e}|{loss:8.3f}|{loss}"), "1.2e-01|   0.125|0.125");
  EXPECT_EQ(fill("plain"), "plain");
  expect_error<errors::InvalidArgument>([&] { fill("{acc}"); },
                                        "batch epoch loss val_loss");
  expect_error<errors::InvalidArgument>([&] { fill("{loss:02d}"); },
                                        "no format");
  expect_error<errors::InvalidArgument>([&] { fill("{epoch"); }, "match");
  expect_error<errors::InvalidArgument>([&] { fill("epoch}"); }, "match");
}

// Article 003, example 3.
TEST(ModelCheckpoint, SavesTheFilesOfTheArticle) {
  const TempDir dir;
  Sequential model = small_mlp();
  compile_small(model);
  const std::string checkpoint_prefix =
      dir / "training_checkpoints/ckpt_{epoch}";
  const Callback checkpoint_callback = callbacks::ModelCheckpoint(
      checkpoint_prefix, {.save_weights_only = true, .save_freq = "epoch"});
  model.fit(images(16), digits_of(16),
            {.epochs = 2, .verbose = 0, .callbacks = {checkpoint_callback}});
  EXPECT_TRUE(exists(dir / "training_checkpoints/ckpt_1.safetensors"));
  Sequential again = small_mlp();
  again.load_weights(dir / "training_checkpoints/ckpt_2");
  EXPECT_EQ(weight_floats(again), weight_floats(model));
}

TEST(ModelCheckpoint, SavesTheBestAlone) {
  const TempDir dir;
  Sequential model = small_mlp();
  compile_small(model);
  // What val_loss will be, epoch after epoch.
  const std::vector<double> losses = {3, 4, 2, 2, 1};
  struct Fake final : CallbackBase {
    explicit Fake(std::vector<double> v) : values(std::move(v)) {}
    void on_epoch_end(Model&, int epoch, Logs& logs) override {
      logs["val_loss"] = values[static_cast<size_t>(epoch)];
      logs["val_acc"] = -values[static_cast<size_t>(epoch)];
    }
    std::vector<double> values;
  };
  const auto files = [&](callbacks::ModelCheckpointOptions o) {
    o.save_best_only = true;
    o.save_weights_only = true;
    const TempDir folder;
    model.fit(
        images(8), digits_of(8),
        {.epochs = 5,
         .verbose = 0,
         .callbacks = {make_callback<Fake>(losses),
                       callbacks::ModelCheckpoint(folder / "{epoch}", o)}});
    std::string found;
    for (int e = 1; e <= 5; ++e) {
      const std::string digit = std::to_string(e);
      if (exists(folder / (digit + ".safetensors"))) found += digit;
    }
    return found;
  };
  EXPECT_EQ(files({}), "135");
  EXPECT_EQ(files({.monitor = "val_acc"}), "135");
  EXPECT_EQ(files({.mode = "max"}), "12");
  EXPECT_EQ(files({.monitor = "val_acc", .mode = "min"}), "12");
  EXPECT_EQ(files({.initial_value_threshold = 2.5}), "35");
  expect_error<errors::InvalidArgument>([&] { files({.monitor = "auc"}); },
                                        "val_acc");
  expect_error<errors::InvalidArgument>([&] { files({.mode = "best"}); },
                                        "auto, min or max");
}

TEST(ModelCheckpoint, SavesEverySoManyBatchesAndWholeModels) {
  const TempDir dir;
  Sequential model = small_mlp();
  compile_small(model);
  model.fit(images(40), digits_of(40),
            {.epochs = 2,
             .batch_size = 8,
             .verbose = 0,
             .callbacks = {callbacks::ModelCheckpoint(dir / "{epoch}-{batch}",
                                                      {.save_freq = 4})}});
  EXPECT_TRUE(exists(dir / "1-4.safetensors"));
  EXPECT_TRUE(exists(dir / "2-3.safetensors"));
  EXPECT_FALSE(exists(dir / "2-4.safetensors"));
  const Model whole = load_model(dir / "2-3");
  EXPECT_EQ(whole.optimizer().iterations().value().item<int64_t>(), 8);
  Sequential again = small_mlp();
  again.load_weights(dir / "2-3.safetensors");
  expect_error<errors::InvalidArgument>([&] { callbacks::SaveFreq("step"); },
                                        "\"epoch\"");
  expect_error<errors::InvalidArgument>([&] { callbacks::SaveFreq(0); },
                                        "at least 1");
}

TEST(Checkpoint, ModelsGoOnEqualToTheBitInAnotherObject) {
  const TempDir dir;
  const Tensor x = images(20), y = digits_of(20);
  for (const bool built : {true, false}) {
    random::set_seed(3);
    Sequential one = small_mlp();
    compile_small(one);
    const auto steps = [&](Model& m, int n) {
      for (int i = 0; i < n; ++i) m.train_on_batch(x, y);
    };
    steps(one, 3);
    train::Checkpoint saved(
        {{"model", one}, {"random", train::random_state()}});
    const std::string path = saved.save(dir / "ckpt");
    steps(one, 4);
    random::set_seed(8);
    Sequential two = small_mlp(built);
    compile_small(two);
    const auto status =
        train::Checkpoint({{"model", two}, {"random", train::random_state()}})
            .restore(path);
    status.assert_consumed();
    EXPECT_EQ(status.deferred().empty(), built);
    steps(two, 4);
    EXPECT_EQ(weight_floats(two), weight_floats(one)) << built;
    EXPECT_EQ(two.metrics_result(), one.metrics_result());
  }
}

TEST(Checkpoint, OptimizersAndMetricsStandAloneToo) {
  const TempDir dir;
  for (const char* name : {"sgd", "adam", "adamw", "rmsprop", "adagrad"}) {
    Variable a(ones({2, 3}), {.name = "a"}), b(ones({4}), {.name = "b"});
    const auto step = [](Optimizer& o, std::vector<Variable> v) {
      o.apply_gradients({v[0].value() * 0.5, v[1].value() * 0.25}, v);
    };
    Optimizer one(name);
    Metric mean = metrics::Mean();
    step(one, {a, b});
    mean.update_state(constant({1.f, 2.f}));
    const std::string path =
        train::Checkpoint({{"a", a}, {"b", b}, {"o", one}, {"mean", mean}})
            .save(dir / name);
    step(one, {a, b});
    Variable a2(ones({2, 3}), {.name = "x"}), b2(ones({4}), {.name = "y"});
    Optimizer two(name);
    Metric mean2 = metrics::Mean();
    train::Checkpoint({{"a", a2}, {"b", b2}, {"o", two}, {"mean", mean2}})
        .restore(path)
        .assert_consumed();
    step(two, {a2, b2});
    EXPECT_EQ(a2.value().to_vector<float>(), a.value().to_vector<float>());
    EXPECT_EQ(b2.value().to_vector<float>(), b.value().to_vector<float>());
    EXPECT_EQ(mean2.result(), 1.5);
  }
}

TEST(Checkpoint, IteratorsGoOnInTheMiddle) {
  const TempDir dir;
  const auto dataset =
      data::Dataset::range(40).shuffle(40, {.seed = 4}).batch(3).prefetch(2);
  auto it = dataset.make_iterator();
  for (int i = 0; i < 5; ++i) it.next();
  const std::string path = train::Checkpoint({{"data", it}}).save(dir / "ckpt");
  const auto rest = [](data::Iterator& i) {
    std::vector<int64_t> all;
    while (const auto element = i.next()) {
      for (const int64_t v : (*element)[0].to_vector<int64_t>()) {
        all.push_back(v);
      }
    }
    return all;
  };
  auto other = data::Dataset::range(40)
                   .shuffle(40, {.seed = 4})
                   .batch(3)
                   .prefetch(2)
                   .make_iterator();
  train::Checkpoint({{"data", other}}).restore(path).assert_consumed();
  EXPECT_EQ(rest(other), rest(it));
}

// ------------------------------------------------------------- resuming

struct Killed {};

// Ends a fit by an exception after so many steps in all.
Callback die_after(int steps) {
  auto left = std::make_shared<int>(steps);
  return {.on_train_batch_end = [left](Model&, int64_t) {
    if (--*left < 0) throw Killed();
  }};
}

struct Job {
  std::function<Sequential()> make;
  int slices = 0;
  std::function<std::shared_ptr<void>()> scope = [] {
    return std::shared_ptr<void>();
  };
};

// One process's life, until it is killed or done: weights, history.
std::pair<std::vector<float>, History> live(const Job& job,
                                            const std::vector<Callback>& list) {
  random::set_seed(11);
  clear_session();
  const auto scope = job.scope();
  Sequential model = job.make();
  compile_small(model, job.slices);
  // Five batches, the last one short.
  const History h = model.fit(images(36), digits_of(36),
                              {.epochs = 3,
                               .batch_size = 8,
                               .verbose = 0,
                               .callbacks = list,
                               .validation_data = {images(8), digits_of(8)}});
  return {weight_floats(model), h};
}

// Kills the job after each number of steps in turn; every life goes on from
// what the one before saved.
void expect_same_when_killed(const Job& job, callbacks::SaveFreq freq,
                             const std::vector<int>& lives) {
  const TempDir dir;
  const auto whole = live(job, {});
  int killed = 0;
  for (const int steps : lives) {
    try {
      live(job, {callbacks::BackupAndRestore(
                     dir.path() + "/b",
                     {.save_freq = freq, .delete_checkpoint = false}),
                 die_after(steps)});
    } catch (const Killed&) {
      ++killed;
    }
  }
  EXPECT_EQ(killed, static_cast<int>(lives.size()));
  const auto last = live(job, {callbacks::BackupAndRestore(
                                  dir.path() + "/b", {.save_freq = freq})});
  EXPECT_EQ(last.first, whole.first);
  EXPECT_EQ(last.second.epoch, whole.second.epoch);
  EXPECT_EQ(last.second.history, whole.second.history);
  EXPECT_FALSE(exists(dir.path() + "/b"));
}

TEST(BackupAndRestore, ResumesAnMlpInTheMiddleOfAnEpoch) {
  // Ends: mid-epoch, before the short batch, after an epoch, at once.
  expect_same_when_killed({[] { return small_mlp(); }}, 1, {2, 1, 3, 0, 4});
}

TEST(BackupAndRestore, ResumesAModelThatIsNotBuilt) {
  expect_same_when_killed({[] { return small_mlp(false); }}, 2, {3, 4, 2});
}

TEST(BackupAndRestore, ResumesACnnWithDropoutAndBatchNorm) {
  expect_same_when_killed({small_cnn}, 3, {4, 6});
}

TEST(BackupAndRestore, ResumesAnLstmWithItsDropout) {
  expect_same_when_killed({[] { return small_lstm(false); }}, 2, {4, 5});
  expect_same_when_killed({[] { return small_lstm(true); }}, 1, {7});
}

TEST(BackupAndRestore, ResumesFromEpochs) {
  expect_same_when_killed({small_cnn}, "epoch", {3, 7, 6});
}

TEST(BackupAndRestore, ResumesUnderAMirroredStrategySlow) {
  IN_A_FRESH_PROCESS({
    const auto names = cpus(2);
    const distribute::MirroredStrategy strategy({.devices = names});
    Job job;
    job.make = small_cnn;
    job.slices = 4;
    job.scope = [&] {
      return std::static_pointer_cast<void>(
          std::make_shared<distribute::StrategyGuard>(strategy.core(),
                                                      Site::here()));
    };
    std::vector<int> lives;
    lives.push_back(2);
    lives.push_back(4);
    expect_same_when_killed(job, 1, lives);
    fresh_process::check(!::testing::Test::HasFailure(), "the same");
  });
}

TEST(BackupAndRestore, RestoresOtherCallbacksAndTheStepsOfAnEpoch) {
  const TempDir dir;
  struct Counter final : CallbackBase {
    explicit Counter(std::shared_ptr<int> n) : CallbackBase("counter"), n_(n) {}
    void on_epoch_end(Model&, int, Logs&) override { ++*n_; }
    CallbackState get_state() const override {
      return {{{"n", *n_}}, {{"text", "x"}}, {{"t", ones({2})}}};
    }
    void set_state(const CallbackState& s) override {
      *n_ = static_cast<int>(s.numbers.at("n"));
      EXPECT_EQ(s.texts.at("text"), "x");
      EXPECT_EQ(s.tensors.at("t").to_vector<float>(),
                (std::vector<float>{1, 1}));
    }
    std::shared_ptr<int> n_;
  };
  // One pass of 14 batches, five to an epoch.
  const auto run = [&](std::vector<Callback> list) {
    random::set_seed(2);
    clear_session();
    Sequential model = small_mlp();
    compile_small(model);
    const auto dataset =
        data::Dataset::from_tensor_slices({images(28), digits_of(28)})
            .shuffle(28, {.seed = 6})
            .batch(4)
            .repeat(2);
    model.fit(dataset, {.epochs = 4,
                        .verbose = 0,
                        .callbacks = std::move(list),
                        .steps_per_epoch = 5});
    return weight_floats(model);
  };
  const auto whole = run({});
  for (const bool first : {true, false}) {
    const auto with = [&](Callback more) {
      auto n = std::make_shared<int>(0);
      const Callback counter = make_callback<Counter>(n);
      const Callback backup =
          callbacks::BackupAndRestore(dir / "b", {.save_freq = "epoch"});
      const auto weights = run(first ? std::vector{backup, counter, more}
                                     : std::vector{counter, backup, more});
      EXPECT_EQ(*n, 4);
      return weights;
    };
    EXPECT_THROW(with(die_after(7)), Killed);
    EXPECT_THROW(with(die_after(8)), Killed);
    EXPECT_EQ(with({}), whole);
  }
}

TEST(BackupAndRestore, ARunThatFailedGoesOnInTheSameProcess) {
  const auto fresh = [] {
    random::set_seed(1);
    Sequential model = small_mlp();
    compile_small(model);
    return model;
  };
  Sequential whole = fresh();
  whole.fit(images(24), digits_of(24),
            {.epochs = 2, .batch_size = 8, .verbose = 0});
  // In the first epoch, and in the second from its beginning: fit draws another
  // seed in this process, and the order is still that of the first one.
  for (const bool second : {false, true}) {
    const TempDir dir;
    Sequential model = fresh();
    callbacks::BackupAndRestoreOptions saves{.save_freq = 1};
    if (second) saves.save_freq = "epoch";
    const FitOptions options{
        .epochs = 2,
        .batch_size = 8,
        .verbose = 0,
        .callbacks = {callbacks::BackupAndRestore(dir / "b", saves)}};
    FitOptions failing = options;
    failing.callbacks.push_back(die_after(second ? 4 : 1));
    EXPECT_THROW(model.fit(images(24), digits_of(24), failing), Killed);
    for (const Variable& v : model.weights()) {
      mark_torn(variable_state(v.handle()), "a failed step");
    }
    const History h = model.fit(images(24), digits_of(24), options);
    EXPECT_EQ(h.epoch, (std::vector<int>{0, 1}));
    EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 6);
    EXPECT_EQ(weight_floats(model), weight_floats(whole)) << second;
  }
}

TEST(BackupAndRestore, RefusesOtherCallbacksThanWereSaved) {
  const TempDir dir;
  Sequential model = small_mlp();
  compile_small(model);
  const auto fit = [&](std::vector<Callback> list) {
    model.fit(images(16), digits_of(16),
              {.batch_size = 8, .verbose = 0, .callbacks = std::move(list)});
  };
  const auto backup = [&] {
    return callbacks::BackupAndRestore(
        dir / "b", {.save_freq = 1, .delete_checkpoint = false});
  };
  EXPECT_THROW(
      fit({backup(), callbacks::ModelCheckpoint(dir / "m"), die_after(0)}),
      Killed);
  expect_error<errors::InvalidArgument>([&] { fit({backup()}); }, "callback");
  expect_error<errors::InvalidArgument>(
      [&] { callbacks::BackupAndRestore(""); }, "backup_dir");
}

// ---------------------------------------------------------------- kill -9

constexpr const char* kLifeOf = "BERTH_TEST_LIFE_OF";

// What the processes of the next test run.
TEST(KillNine, LifeOfAProcess) {
  const char* folder = std::getenv(kLifeOf);
  if (folder == nullptr) GTEST_SKIP() << "run by the next test";
  const std::string dir = folder;
  random::set_seed(11);
  Sequential model = small_mlp();
  compile_small(model);
  model.fit(images(36), digits_of(36),
            {.epochs = 16,
             .batch_size = 8,
             .verbose = 0,
             .callbacks = {callbacks::BackupAndRestore(
                 dir + "/b", {.save_freq = 1, .enable_async = true})}});
  model.save_weights(dir + "/weights");
}

// The number of the newest manifest, 0 when there is none.
int64_t newest(const std::string& folder) {
  int64_t most = 0;
  std::error_code code;
  for (auto it = std::filesystem::directory_iterator(folder, code);
       !code && it != std::filesystem::directory_iterator();
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (!name.ends_with(".json")) continue;
    most = std::max<int64_t>(most, std::atoll(name.c_str() + 7));
  }
  return most;
}

pid_t start_life(const std::string& folder) {
  setenv(kLifeOf, folder.c_str(), 1);
  for (const char* share : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) {
    unsetenv(share);  // its one test is in no other share
  }
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  std::string name = "keras_test";
  std::string filter = "--gtest_filter=KillNine.LifeOfAProcess";
  char* const argv[] = {name.data(), filter.data(), nullptr};
  pid_t child = -1;
  EXPECT_EQ(
      posix_spawn(&child, "/proc/self/exe", &quiet, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&quiet);
  unsetenv(kLifeOf);
  return child;
}

// Each process is killed at a moment of its own, soon after it has saved once
// or twice; the last one is left alone.
TEST(KillNine, ManyKillsChangeNothingSlow) {
  const int most = std::getenv("BERTH_WHOLE") == nullptr ? 10 : 30;
  const TempDir dir;
  const std::string alone = dir / "alone", killed = dir / "killed";
  for (const std::string& folder : {alone, killed}) {
    ASSERT_TRUE(std::filesystem::create_directory(folder));
  }
  int status = 0;
  ASSERT_EQ(waitpid(start_life(alone), &status, 0) > 0 && status == 0, true);
  std::mt19937 random(30);
  int kills = 0, resumed = 0;
  while (kills < most) {
    const int64_t goal =
        newest(killed + "/b") + static_cast<int64_t>(random() % 3);
    resumed += newest(killed + "/b") > 0;
    const pid_t child = start_life(killed);
    while (waitpid(child, &status, WNOHANG) == 0 &&
           newest(killed + "/b") < goal) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    ++kills;
    const auto saved = train::latest_checkpoint(killed + "/b");
    if (newest(killed + "/b") > 0) {
      ASSERT_TRUE(saved.has_value()) << kills;
      train::list_variables(*saved);
    }
  }
  EXPECT_GT(resumed, most / 3);
  ASSERT_EQ(waitpid(start_life(killed), &status, 0) > 0 && status == 0, true);
  EXPECT_EQ(read_file(killed + "/weights.safetensors"),
            read_file(alone + "/weights.safetensors"));
}

}  // namespace
}  // namespace berth::keras
