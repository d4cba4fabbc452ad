#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/fresh_process_testing.h"
#include "base/immortal.h"
#include "berth/berth.h"
#include "io/checkpoint_impl.h"
#include "io/temp_dir_testing.h"
#include "tensor/variable_state.h"

namespace berth::train {
namespace {

using io::testing::exists;
using io::testing::read_file;
using io::testing::TempDir;
using io::testing::write_file;

template <class E>
void expect_thrown(const std::function<void()>& fn, const std::string& part) {
  try {
    fn();
    ADD_FAILURE() << "nothing was thrown; expected " << part;
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

// A folder that the fresh process of a test has, too.
class SharedDir {
 public:
  SharedDir() {
    if (const char* path = std::getenv(kName)) {
      path_ = path;
      return;
    }
    own_.emplace();
    path_ = own_->path();
    setenv(kName, path_.c_str(), 1);
  }
  ~SharedDir() {
    if (own_) unsetenv(kName);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  static constexpr const char* kName = "BERTH_CHECKPOINT_TEST_DIR";
  std::optional<TempDir> own_;
  std::string path_;
};

void limit_file_sizes(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

Variable counting(const std::string& name, int64_t n, float from = 0) {
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = from + static_cast<float>(i);
  return Variable(constant(std::span<const float>(v), {n}), {.name = name});
}

std::vector<float> values(const Variable& v) {
  return v.value().to_vector<float>();
}

TEST(Checkpoint, RestoresVariablesNumbersAndTexts) {
  const TempDir dir;
  Variable w = counting("w", 5);
  int epoch = 7;
  int64_t step = int64_t{1} << 60;
  double rate = 0.1;
  bool done = true;
  std::string note = "line\n\"two\" \xc3\xa9";
  Checkpoint checkpoint({{"w", w},
                         {"epoch", epoch},
                         {"step", step},
                         {"rate", rate},
                         {"done", done},
                         {"note", note}});
  const std::string path = checkpoint.save(dir / "ckpt");
  EXPECT_EQ(path, dir / "ckpt-1");
  w.assign(zeros({5}));
  epoch = 0, step = 0, rate = 0, done = false, note = "";
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(values(w), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(epoch, 7);
  EXPECT_EQ(step, int64_t{1} << 60);
  EXPECT_EQ(rate, 0.1);
  EXPECT_TRUE(done);
  EXPECT_EQ(note, "line\n\"two\" \xc3\xa9");
  EXPECT_EQ(checkpoint.save(dir / "ckpt"), dir / "ckpt-2");
}

TEST(Checkpoint, SaysWhatWasMissingAndUnused) {
  const TempDir dir;
  Variable a = counting("a", 2), b = counting("b", 2), c = counting("c", 2);
  const std::string path = Checkpoint({{"a", a}, {"b", b}}).save(dir / "ckpt");
  b.assign(zeros({2}));
  Checkpoint other({{"b", b}, {"c", c}});
  const LoadStatus status = other.restore(path).expect_partial();
  EXPECT_EQ(status.restored(), std::vector<std::string>{"b"});
  EXPECT_EQ(status.missing(), std::vector<std::string>{"c"});
  EXPECT_EQ(status.unused(), std::vector<std::string>{"a"});
  EXPECT_EQ(values(b), (std::vector<float>{0, 1}));
  expect_thrown<errors::FailedPrecondition>([&] { status.assert_consumed(); },
                                            "\"c\"");
  expect_thrown<errors::FailedPrecondition>(
      [&] { status.assert_existing_objects_matched(); }, "checkpoint_test.cc");
  expect_thrown<errors::InvalidArgument>(
      [&] {
        Checkpoint({{"c", c}}).restore(path);
      },
      "it holds \"a\", \"b\"");
}

TEST(Checkpoint, ReportsWhatDidNotFitUnlessItIsMeant) {
  const TempDir dir;
  Variable a = counting("a", 2), b = counting("b", 2);
  const std::string path = Checkpoint({{"a", a}, {"b", b}}).save(dir / "ckpt");
  std::vector<std::string> heard;
  debugging::set_diagnostic_handler([&](const debugging::Diagnostic& d) {
    if (d.id == "checkpoint-partial") heard.push_back(d.text);
  });
  Checkpoint one({{"a", a}});
  one.restore(path).expect_partial();
  EXPECT_EQ(heard.size(), 0u);
  one.restore(path);
  debugging::set_diagnostic_handler(nullptr);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_NE(heard[0].find("\"b\""), std::string::npos) << heard[0];
}

TEST(Checkpoint, NothingChangesWhenAShapeOrADtypeDoesNotFit) {
  const TempDir dir;
  Variable a = counting("a", 2), b = counting("b", 2);
  const std::string path = Checkpoint({{"a", a}, {"b", b}}).save(dir / "ckpt");
  Variable a2 = counting("a", 2, 50), b3 = counting("b", 3);
  Variable b_int(constant({1, 2}), {.name = "b"});
  for (const Variable& wrong : {b3, b_int}) {
    expect_thrown<errors::InvalidArgument>(
        [&] {
          Checkpoint({{"a", a2}, {"b", wrong}}).restore(path);
        },
        "\"b\" is F32 [2] in the checkpoint");
    EXPECT_EQ(values(a2), (std::vector<float>{50, 51}));
  }
  int n = 0;
  expect_thrown<errors::InvalidArgument>(
      [&] {
        Checkpoint({{"a", a2}, {"b", n}}).restore(path);
      },
      "is a Variable in the checkpoint");
}

TEST(Checkpoint, AnotherDeviceCanTakeTheValues) {
  const SharedDir dir;
  IN_A_FRESH_PROCESS({
    config::set_simulated_devices("GPUx2");
    const auto make = [](const char* device) {
      const auto on = berth::device(device);
      return counting("w", 9, 3);
    };
    Variable w = make("/GPU:1");
    const std::string path = Checkpoint({{"w", w}}).save(dir / "ckpt");
    for (const char* device : {"/CPU:0", "/GPU:0", "/GPU:1"}) {
      Variable other = make(device);
      other.assign(zeros({9}));
      Checkpoint({{"w", other}}).restore(path).assert_consumed();
      fresh_process::check(values(other) == values(w), device);
    }
  });
}

TEST(Checkpoint, RestoresTornVariablesByOneCall) {
  const TempDir dir;
  Variable a = counting("a", 2), b = counting("b", 3);
  Checkpoint checkpoint({{"a", a}, {"b", b}});
  const std::string path = checkpoint.save(dir / "ckpt");
  for (const Variable& v : {a, b}) {
    mark_torn(variable_state(v.handle()), "a test");
  }
  expect_thrown<errors::FailedPrecondition>([&] { (void)a.value(); },
                                            "Checkpoint::restore()");
  expect_thrown<errors::FailedPrecondition>(
      [&] { checkpoint.save(dir / "ckpt"); }, "'a'");
  EXPECT_EQ(latest_checkpoint(dir.path()), path);
  checkpoint.restore(path);
  EXPECT_EQ(values(a), (std::vector<float>{0, 1}));
  EXPECT_EQ(values(b), (std::vector<float>{0, 1, 2}));
}

TEST(Checkpoint, AsyncWritesTheValuesOfTheCall) {
  const TempDir dir;
  Variable w = counting("w", 3000000);
  Checkpoint checkpoint({{"w", w}});
  checkpoint.write(dir / "sync");
  for (int i = 0; i < 3; ++i) {
    checkpoint.write(dir / "async", {.enable_async = true});
    w.assign_add(ones({3000000}));
    checkpoint.sync();
    w.assign_sub(ones({3000000}));
    EXPECT_EQ(
        read_file(dir / (i % 2 ? "async~1.safetensors" : "async.safetensors")),
        read_file(dir / "sync.safetensors"));
  }
}

TEST(Checkpoint, AsyncErrorsComeOutAtTheNextCall) {
  const TempDir dir;
  Variable w = counting("w", 10);
  Checkpoint checkpoint({{"w", w}});
  // A folder stands where the manifest would.
  ASSERT_EQ(mkdir((dir / "ckpt.json").c_str(), 0755), 0);
  checkpoint.write(dir / "ckpt", {.enable_async = true});
  expect_thrown<errors::Unavailable>([&] { checkpoint.sync(); }, "ckpt.json");
  checkpoint.sync();
  checkpoint.write(dir / "ckpt", {.enable_async = true});
  expect_thrown<errors::Unavailable>([&] { checkpoint.write(dir / "x"); },
                                     "ckpt.json");
  EXPECT_FALSE(exists(dir / "x.json"));
}

TEST(Checkpoint, AsyncSavesAreNotLostAtExit) {
  const SharedDir dir;
  IN_A_FRESH_PROCESS({
    static auto& kept = immortal<std::vector<Checkpoint>>();
    Variable w = counting("w", 3000000);
    kept.push_back(Checkpoint({{"w", w}}));
    CheckpointOptions options;
    options.enable_async = true;
    kept[0].write(dir / "ckpt", options);
    std::exit(0);
  });
  EXPECT_TRUE(latest_checkpoint(dir.path()).has_value());
}

TEST(Checkpoint, ShardsHoldTheSameValues) {
  const TempDir dir;
  std::vector<Variable> list;
  for (int i = 0; i < 7; ++i) {
    list.push_back(counting("v", 10 + i, static_cast<float>(i)));
  }
  Checkpoint checkpoint({{"list", list}});
  const std::string path = checkpoint.save(dir / "ckpt", {.shards = 3});
  EXPECT_TRUE(exists(path + "-00001-of-00003.safetensors"));
  EXPECT_TRUE(exists(path + "-00003-of-00003.safetensors"));
  for (const Variable& v : list) v.assign(zeros(v.shape()));
  checkpoint.restore(path).assert_consumed();
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(values(list[static_cast<size_t>(i)])[1], i + 1);
  }
  std::filesystem::remove(path + "-00002-of-00003.safetensors");
  expect_thrown<errors::NotFound>([&] { checkpoint.restore(path); },
                                  "00002-of-00003");
}

TEST(Checkpoint, RandomNumbersGoOnWhereTheyWere) {
  const TempDir dir;
  random::set_seed(5);
  const auto noise = [](const Tensor& x) {
    return x + random::uniform({4}) + random::normal({4}, {.seed = 3});
  };
  auto step = function(noise);
  Checkpoint checkpoint({{"random", random_state()}, {"step", step}});
  const Tensor x = zeros({4});
  step(x);
  (void)random::uniform({3});
  const std::string path = checkpoint.save(dir / "ckpt");
  const auto draw = [&](const auto& f) {
    std::vector<float> all = f(x).template to_vector<float>();
    for (const Tensor& t : {f(x), random::uniform({4})}) {
      for (float v : t.to_vector<float>()) all.push_back(v);
    }
    return all;
  };
  const std::vector<float> expected = draw(step);
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(draw(step), expected);
  // In a process that traces it later, after other calls.
  random::set_seed(1);
  (void)random::uniform({3});
  auto fresh = function(noise);
  Checkpoint({{"random", random_state()}, {"step", fresh}})
      .restore(path)
      .assert_consumed();
  EXPECT_EQ(draw(fresh), expected);
}

TEST(Checkpoint, BodiesOfLoopsKeepTheirRandomNumbers) {
  const TempDir dir;
  const auto walk = [](const Tensor& x) {
    const auto [i, sum] =
        while_loop([](const Tensor& i,
                      const Tensor&) { return math::less(i, constant(3)); },
                   [](const Tensor& i, const Tensor& s) {
                     return std::tuple(i + 1, s + random::uniform({4}));
                   },
                   std::tuple(constant(0), x));
    return sum;
  };
  random::set_seed(9);
  const Tensor x = zeros({4});
  auto one = function(walk);
  one(x);
  const std::string path = Checkpoint({{"f", one}}).save(dir / "ckpt");
  const auto first = one(x).to_vector<float>();
  const auto second = one(x).to_vector<float>();
  EXPECT_NE(first, second);
  random::set_seed(4);
  auto two = function(walk);
  Checkpoint({{"f", two}}).restore(path);
  EXPECT_EQ(two(x).to_vector<float>(), first);
  EXPECT_EQ(two(x).to_vector<float>(), second);
}

TEST(Checkpoint, StepsInOtherShapesKeepTheirRandomNumbers) {
  const TempDir dir;
  const auto noise = [](const Tensor& x) {
    return x * 0 + random::uniform({2}) * math::reduce_sum(x * 0 + 1);
  };
  // Traced in the order of 3, 2; gone on with in that of 2, 3.
  random::set_seed(0);
  auto step = function(noise);
  step(zeros({3, 2}));
  step(zeros({3, 2}));
  step(zeros({2, 2}));
  Checkpoint one({{"random", random_state()}, {"step", step}});
  const std::string path = one.save(dir / "ckpt");
  const auto two = step(zeros({2, 2})).to_vector<float>();
  const auto three = step(zeros({3, 2})).to_vector<float>();
  random::set_seed(0);
  auto fresh = function(noise);
  Checkpoint({{"random", random_state()}, {"step", fresh}}).restore(path);
  EXPECT_EQ(fresh(zeros({2, 2})).to_vector<float>(), two);
  EXPECT_EQ(fresh(zeros({3, 2})).to_vector<float>(), three);
}

TEST(Checkpoint, WritesNothingIntoAMissingOrReadOnlyFolder) {
  const SharedDir dir;
  IN_A_FRESH_PROCESS({
    Variable w = counting("w", 3);
    Checkpoint checkpoint({{"w", w}});
    fresh_process::refuses<errors::NotFound>(
        [&] { checkpoint.write(dir / "none/ckpt"); }, "make the folder");
    fresh_process::check(chmod(dir.path().c_str(), 0555) == 0, "chmod");
    if (geteuid() == 0) {
      fresh_process::check(seteuid(65534) == 0, "another user");
    }
    fresh_process::refuses<errors::PermissionDenied>(
        [&] { checkpoint.save(dir / "ckpt"); }, "can be written");
    fresh_process::refuses<errors::PermissionDenied>(
        [&] { checkpoint.save(dir / "deeper/ckpt"); }, "can be written");
    fresh_process::check(checkpoint.save_counter() == 0, "not counted");
  });
  EXPECT_EQ(chmod(dir.path().c_str(), 0755), 0);
}

TEST(Checkpoint, AFullDiskLeavesTheOneBefore) {
  const SharedDir dir;
  IN_A_FRESH_PROCESS({
    Variable w = counting("w", 100000);
    Checkpoint checkpoint({{"w", w}});
    const std::string path = checkpoint.save(dir / "ckpt");
    limit_file_sizes(1000);
    w.assign(zeros({100000}));
    for (int i = 0; i < 2; ++i) {
      const bool async = i == 1;
      fresh_process::refuses<errors::ResourceExhausted>(
          [&] {
            CheckpointOptions options;
            options.enable_async = async;
            checkpoint.save(dir / "ckpt", options);
            checkpoint.sync();
          },
          "free disk space");
    }
    fresh_process::check(latest_checkpoint(dir.path()) == path, "the first");
    fresh_process::check(!exists(dir / "ckpt-2.safetensors.part"), "no part");
    checkpoint.restore(path);
    fresh_process::check(values(w)[7] == 7, "restored");
  });
}

TEST(Checkpoint, TwoWritersOfOnePathAreToldApart) {
  const TempDir dir;
  Variable w = counting("w", 3);
  Checkpoint checkpoint({{"w", w}});
  {
    const io::WriteLock held(dir / "ckpt", "another");
    expect_thrown<errors::Unavailable>([&] { checkpoint.write(dir / "ckpt"); },
                                       "another writer");
  }
  checkpoint.write(dir / "ckpt");
  EXPECT_FALSE(exists(dir / "ckpt.lock"));
}

TEST(Checkpoint, AWriteOverOneKeepsItUntilTheNewOneIsWhole) {
  const TempDir dir;
  Variable w = counting("w", 3);
  Checkpoint checkpoint({{"w", w}});
  checkpoint.write(dir / "ckpt");
  w.assign(zeros({3}));
  // The new values cannot be written: a folder has their name.
  ASSERT_EQ(mkdir((dir / "ckpt~1.safetensors").c_str(), 0755), 0);
  expect_thrown<errors::Error>([&] { checkpoint.write(dir / "ckpt"); },
                               "ckpt~1");
  checkpoint.read(dir / "ckpt");
  EXPECT_EQ(values(w)[2], 2);
  std::filesystem::remove(dir / "ckpt~1.safetensors");
  w.assign(zeros({3}));
  checkpoint.write(dir / "ckpt");
  EXPECT_FALSE(exists(dir / "ckpt.safetensors"));
  w.assign(ones({3}));
  checkpoint.read(dir / "ckpt");
  EXPECT_EQ(values(w)[2], 0);
}

TEST(Checkpoint, RefusesDamagedAndNewerManifests) {
  const TempDir dir;
  Variable w = counting("w", 3);
  Checkpoint checkpoint({{"w", w}});
  checkpoint.write(dir / "ckpt");
  std::string good = read_file(dir / "ckpt.json");
  const size_t sum = good.find("\"checksum\"");  // else it finds all that
  good.erase(sum, good.find("\"files\"") - sum);
  w.assign(zeros({3}));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_file(dir / "ckpt.json", text);
    checkpoint.read(dir / "ckpt");
  };
  expect_thrown<errors::Unimplemented>(
      [&] { with("\"version\": 1", "\"version\": 2"); }, "newer");
  expect_thrown<errors::DataLoss>(
      [&] { with("ckpt.safetensors", "../ckpt.safetensors"); },
      "in its own folder");
  expect_thrown<errors::DataLoss>(
      [&] { with("ckpt.safetensors", "/etc/passwd"); }, "in its own folder");
  expect_thrown<errors::NotFound>(
      [&] { with("ckpt.safetensors", "other.safetensors"); }, "lacks its file");
  expect_thrown<errors::DataLoss>([&] { with("\"bytes\": ", "\"bytes\": 1"); },
                                  "bytes, not");
  expect_thrown<errors::DataLoss>(
      [&] { with("berth-checkpoint", "something"); }, "format");
  expect_thrown<errors::DataLoss>(
      [&] { with("\"save_counter\": 0", "\"save_counter\": []"); }, "damaged");
  expect_thrown<errors::DataLoss>(
      [&] {
        with("\"save_counter\": 0",
             "\"save_counter\": " + std::string(200000, '[') +
                 std::string(200000, ']'));
      },
      "too deeply");
  for (size_t n = 0; n + 3 < good.size(); n += 7) {
    write_file(dir / "ckpt.json", good.substr(0, n));
    expect_thrown<errors::DataLoss>([&] { checkpoint.read(dir / "ckpt"); },
                                    "damaged");
  }
  EXPECT_EQ(values(w)[2], 0);
  write_file(dir / "ckpt.json", good);
  checkpoint.read(dir / "ckpt");
  EXPECT_EQ(values(w)[2], 2);
}

TEST(Checkpoint, DamagedBytesAreFoundAndTheNextRestoreHeals) {
  const TempDir dir;
  Variable w = counting("w", 300);
  Checkpoint checkpoint({{"w", w}});
  const std::string first = checkpoint.save(dir / "ckpt");
  const std::string second = checkpoint.save(dir / "ckpt");
  std::string bytes = read_file(second + ".safetensors");
  bytes[bytes.size() - 100] ^= 4;
  write_file(second + ".safetensors", bytes);
  expect_thrown<errors::DataLoss>([&] { checkpoint.restore(second); },
                                  "checksum");
  expect_thrown<errors::FailedPrecondition>([&] { (void)w.value(); },
                                            "half-made");
  checkpoint.restore(first);
  EXPECT_EQ(values(w)[299], 299);
  bytes.resize(bytes.size() - 1);
  write_file(second + ".safetensors", bytes);
  expect_thrown<errors::DataLoss>([&] { checkpoint.restore(second); },
                                  "bytes, not");
  EXPECT_EQ(values(w)[299], 299);
}

TEST(Checkpoint, ListsAndLoadsWithoutObjects) {
  const TempDir dir;
  Variable w = counting("w", 3);
  Checkpoint checkpoint({{"w", w}});
  const std::string path = checkpoint.save(dir / "ckpt");
  for (const std::string& at : {path, dir.path()}) {
    const auto list = list_variables(at);
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].name, "w");
    EXPECT_EQ(list[0].shape, Shape({3}));
    EXPECT_EQ(load_variable(at, "w").to_vector<float>(), values(w));
  }
  expect_thrown<errors::NotFound>([&] { load_variable(path, "w/kernel"); },
                                  "near names: \"w\"");
  expect_thrown<errors::NotFound>([&] { list_variables(dir / "none"); },
                                  "latest_checkpoint");
}

TEST(Checkpoint, RefusesNamesThatCannotBeTold) {
  int n = 0;
  for (const char* name : {"", "a/b"}) {
    expect_thrown<errors::InvalidArgument>(
        [&] {
          Checkpoint({{name, n}});
        },
        "without a slash");
  }
  expect_thrown<errors::InvalidArgument>(
      [&] {
        Checkpoint({{"n", n}, {"n", n}});
      },
      "\"n\"");
}

std::vector<int64_t> numbers_left(const CheckpointManager& manager) {
  std::vector<int64_t> list;
  for (const std::string& path : manager.checkpoints()) {
    list.push_back(std::stoll(path.substr(path.rfind('-') + 1)));
  }
  return list;
}

TEST(CheckpointManager, KeepsTheNewestAndGoesOnCounting) {
  const TempDir dir;
  Variable w = counting("w", 3);
  for (const bool async : {false, true}) {
    const std::string folder = dir / (async ? "async/deep" : "sync");
    const CheckpointManagerOptions options{
        .max_to_keep = 2, .checkpoint_options = {.enable_async = async}};
    {
      Checkpoint checkpoint({{"w", w}});
      CheckpointManager manager(checkpoint, folder, options);
      for (int i = 0; i < 4; ++i) {
        w.assign(fill({3}, static_cast<double>(i)));
        EXPECT_EQ(*manager.save(), folder + "/ckpt-" + std::to_string(i + 1));
      }
      manager.sync();
      EXPECT_EQ(numbers_left(manager), (std::vector<int64_t>{3, 4}));
      EXPECT_FALSE(exists(folder + "/ckpt-2.safetensors"));
    }
    CheckpointManager again(Checkpoint({{"w", w}}), folder, options);
    w.assign(zeros({3}));
    EXPECT_EQ(*again.restore_or_initialize(), folder + "/ckpt-4");
    EXPECT_EQ(values(w)[0], 3);
    again.save();
    again.sync();
    EXPECT_EQ(numbers_left(again), (std::vector<int64_t>{4, 5}));
    EXPECT_EQ(latest_checkpoint(folder), again.latest_checkpoint());
  }
}

TEST(CheckpointManager, CallsTheFunctionWhenThereIsNothing) {
  const TempDir dir;
  int n = 0, calls = 0;
  CheckpointManager manager(Checkpoint({{"n", n}}), dir / "x",
                            {.init_fn = [&] { ++calls; }});
  EXPECT_EQ(manager.restore_or_initialize(), std::nullopt);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(exists(dir / "x"));
}

TEST(CheckpointManager, FollowsAStepCounterAndItsInterval) {
  const TempDir dir;
  Variable step(constant(int64_t{0}), {.name = "step"});
  CheckpointManager manager(Checkpoint({{"step", step}}), dir.path(),
                            {.step_counter = step, .checkpoint_interval = 10});
  int saved = 0;
  for (int i = 0; i <= 25; ++i) {
    step.assign(constant(int64_t{i}));
    saved += manager.save().has_value();
  }
  EXPECT_EQ(saved, 3);
  EXPECT_EQ(numbers_left(manager), (std::vector<int64_t>{0, 10, 20}));
  EXPECT_TRUE(manager.save(99, false).has_value());
  EXPECT_EQ(numbers_left(manager).back(), 99);
}

TEST(CheckpointManager, KeepsOnePerSoManyHours) {
  const TempDir dir;
  int n = 0;
  CheckpointManager manager(
      Checkpoint({{"n", n}}), dir.path(),
      {.max_to_keep = 1, .keep_checkpoint_every_n_hours = 2});
  for (int i = 1; i <= 6; ++i) {
    manager.save();
    // One hour after the other.
    const timespec times[2] = {{3600 * i + 10000, 0}, {3600 * i + 10000, 0}};
    const std::string name = *manager.latest_checkpoint() + ".json";
    ASSERT_EQ(utimensat(AT_FDCWD, name.c_str(), times, 0), 0);
  }
  EXPECT_EQ(numbers_left(manager), (std::vector<int64_t>{1, 3, 5, 6}));
  CheckpointManager again(Checkpoint({{"n", n}}), dir.path(),
                          {.max_to_keep = 1});
  EXPECT_EQ(numbers_left(again), (std::vector<int64_t>{1, 3, 5, 6}));
}

TEST(CheckpointManager, PassesOverWhatIsNotWholeAndClearsItAway) {
  const TempDir dir;
  Variable w = counting("w", 3);
  {
    CheckpointManager manager(Checkpoint({{"w", w}}), dir.path());
    manager.save();
    manager.save();
    manager.save();
  }
  // As kill -9 leaves them: values without manifest, and parts.
  std::filesystem::remove(dir / "ckpt-3.json");
  write_file(dir / "ckpt-4.safetensors.part", "half");
  write_file(dir / "ckpt-2.json.part", "{");
  write_file(dir / "ckpt-4.json", "{");
  write_file(dir / "other.safetensors", "the user's");
  EXPECT_EQ(*latest_checkpoint(dir.path()), dir / "ckpt-2");
  CheckpointManager manager(Checkpoint({{"w", w}}), dir.path());
  EXPECT_EQ(numbers_left(manager), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*manager.restore_or_initialize(), dir / "ckpt-2");
  EXPECT_EQ(*manager.save(), dir / "ckpt-3");
  EXPECT_FALSE(exists(dir / "ckpt-4.safetensors.part"));
  EXPECT_FALSE(exists(dir / "ckpt-2.json.part"));
  EXPECT_TRUE(exists(dir / "other.safetensors"));
  EXPECT_EQ(numbers_left(manager), (std::vector<int64_t>{1, 2, 3}));
}

TEST(CheckpointManager, NeverTakesADamagedOneForNone) {
  const TempDir dir;
  int n = 7;
  {
    CheckpointManager manager(Checkpoint({{"n", n}}), dir.path());
    manager.save();
    n = 8;
    manager.save();
  }
  std::vector<std::string> heard;
  const auto before = debugging::set_diagnostic_handler(
      [&](const debugging::Diagnostic& d) { heard.push_back(d.id); });
  const auto restored = [&] {
    n = 0;
    CheckpointManager(Checkpoint({{"n", n}}), dir.path())
        .restore_or_initialize();
    return n;
  };
  const std::string whole = read_file(dir / "ckpt-2.json");
  for (size_t i = 0; i < whole.size(); i += 3) {
    std::string flipped = whole;
    flipped[i] ^= 1;
    write_file(dir / "ckpt-2.json", flipped);
    heard.clear();
    const int got = restored();
    EXPECT_EQ(got, heard.empty() ? 8 : 7) << flipped;
  }
  write_file(dir / "ckpt-2.json", whole);
  std::string header = read_file(dir / "ckpt-2.safetensors");
  header.at(9) ^= 1;  // after its length
  write_file(dir / "ckpt-2.safetensors", header);
  EXPECT_EQ(restored(), 7);
  for (const char* other : {"ckpt-1", "ckpt-2"}) {
    write_file(dir / (std::string(other) + ".json"), whole.substr(0, 99));
  }
  expect_thrown<errors::DataLoss>(restored, "ckpt-1.json");
  debugging::set_diagnostic_handler(before);
}

TEST(CheckpointManager, AFolderHasOneWriter) {
  const TempDir dir;
  int n = 0;
  CheckpointManager first(Checkpoint({{"n", n}}), dir.path());
  first.save();
  CheckpointManager second(Checkpoint({{"n", n}}), dir.path());
  expect_thrown<errors::Unavailable>([&] { second.save(); }, "another writer");
  EXPECT_EQ(*second.restore_or_initialize(), dir / "ckpt-1");
  // The lock ends with its holder.
  first = CheckpointManager(Checkpoint({{"n", n}}), dir / "elsewhere");
  EXPECT_EQ(*second.save(), dir / "ckpt-2");
}

TEST(CheckpointManager, RefusesOptionsThatMakeNoSense) {
  int n = 0;
  const auto make = [&](CheckpointManagerOptions o, std::string dir = "x") {
    CheckpointManager(Checkpoint({{"n", n}}), dir, std::move(o));
  };
  expect_thrown<errors::InvalidArgument>([&] { make({}, ""); }, "folder");
  expect_thrown<errors::InvalidArgument>([&] { make({.max_to_keep = -1}); },
                                         "max_to_keep");
  expect_thrown<errors::InvalidArgument>(
      [&] { make({.checkpoint_name = "a/b"}); }, "a/b");
  expect_thrown<errors::InvalidArgument>(
      [&] { make({.checkpoint_interval = 5}); }, "step_counter");
  Variable w = counting("w", 3);
  expect_thrown<errors::InvalidArgument>([&] { make({.step_counter = w}); },
                                         "float32 [3]");
}

}  // namespace
}  // namespace berth::train
