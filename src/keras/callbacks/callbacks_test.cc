// Callbacks: rates, early stops, files, and where a NaN came from.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "berth/berth.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

// A folder of this test, empty.
std::string callbacks_folder(const std::string& name) {
  const std::string path = testing::TempDir() + "berth_callbacks_" +
                           std::to_string(getpid()) + "_" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A model that does not move; "figure" is logged as given, by epoch.
class Figures : public CallbackBase {
 public:
  Figures(std::string name, std::vector<double> values)
      : key_(std::move(name)), values_(std::move(values)) {}
  void on_epoch_end(Model&, int epoch, Logs& logs) override {
    logs[key_] = values_.at(static_cast<size_t>(epoch));
  }

 private:
  const std::string key_;
  const std::vector<double> values_;
};

Sequential still_model(double rate = 0) {
  auto model =
      Sequential({InputLayer({1}),
                  Dense(1, {.use_bias = false,
                            .kernel_initializer = initializers::Ones()})});
  model.compile({.optimizer = SGD(rate), .loss = "mse"});
  return model;
}

History run_with(Model& model, int epochs, std::vector<Callback> callbacks) {
  const Tensor x = ones({1, 1});
  return model.fit(
      x, x,
      {.epochs = epochs, .verbose = 0, .callbacks = std::move(callbacks)});
}

size_t epochs_with(const std::vector<double>& values,
                   callbacks::EarlyStoppingOptions o,
                   const std::string& name = "figure") {
  auto model = still_model();
  o.monitor = name;
  return run_with(model, static_cast<int>(values.size()),
                  {make_callback<Figures>(name, values),
                   callbacks::EarlyStopping(o)})
      .epoch.size();
}

TEST(EarlyStopping, StopsAsItsOptionsSay) {
  const std::vector<double> v = {5, 4, 4, 4, 3, 3, 3, 3};
  EXPECT_EQ(epochs_with(v, {.patience = 2}), 4u);  // 4 twice more
  EXPECT_EQ(epochs_with(v, {.patience = 3}), 8u);  // 3 at last, three times
  EXPECT_EQ(epochs_with(v, {.patience = 4}), 8u);
  EXPECT_EQ(epochs_with(v, {.min_delta = 2.5, .patience = 2}), 3u);
  EXPECT_EQ(epochs_with(v, {.patience = 1, .mode = "max"}), 2u);
  // Names say what is better.
  EXPECT_EQ(epochs_with({1, 2, 3, 3}, {.patience = 1}, "val_accuracy"), 4u);
  EXPECT_EQ(epochs_with({1, 2, 3, 3}, {.patience = 1}, "error"), 2u);
  // Never below the baseline of 2: the wait begins with the first epoch.
  EXPECT_EQ(epochs_with(v, {.patience = 3, .baseline = 2.0}), 3u);
  EXPECT_EQ(epochs_with(v, {.patience = 2, .start_from_epoch = 4}), 7u);
  EXPECT_THROW(callbacks::EarlyStopping({.mode = "up"}),
               errors::InvalidArgument);
  auto model = still_model();
  EXPECT_THROW(run_with(model, 1, {callbacks::EarlyStopping()}),
               errors::InvalidArgument);
}

TEST(EarlyStopping, StateGoesOnInAnotherFit) {
  const auto stop = callbacks::EarlyStopping(
      {.monitor = "figure", .patience = 3, .restore_best_weights = true});
  auto model = still_model();
  run_with(
      model, 3,
      {make_callback<Figures>("figure", std::vector<double>{1, 2, 2}), stop});
  const CallbackState state = stop.object->get_state();
  EXPECT_EQ(state.numbers.at("wait"), 2);
  EXPECT_EQ(state.numbers.at("best"), 1);
  EXPECT_EQ(state.tensors.size(), 1u);
  const auto again = callbacks::EarlyStopping(
      {.monitor = "figure", .patience = 3, .restore_best_weights = true});
  again.object->set_state(state);
  const History h = run_with(
      model, 3,
      {make_callback<Figures>("figure", std::vector<double>{9, 2, 2}), again});
  EXPECT_EQ(h.epoch.size(), 2u);  // epoch 0 never stops; one more does
}

TEST(ReduceLROnPlateau, LowersTheRateAfterPatienceAndCooldown) {
  auto model = still_model(1);
  const Callback reduce = callbacks::ReduceLROnPlateau({.monitor = "figure",
                                                        .factor = 0.5,
                                                        .patience = 2,
                                                        .cooldown = 1,
                                                        .min_lr = 0.2});
  const History h = run_with(
      model, 10,
      {make_callback<Figures>(
           "figure", std::vector<double>{3, 3, 3, 3, 3, 3, 1, 1, 1, 1}),
       reduce});
  // Waits 1, 2: lower; one epoch cools; 1, 2: lower; cools (and improves);
  // 1, 2: to the least.
  EXPECT_EQ(h.history.at("learning_rate"),
            (std::vector<double>{1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25,
                                 static_cast<double>(0.2f)}));
}

TEST(LearningRateScheduler, SetsTheRateOfEachEpoch) {
  auto model = still_model(1);
  const History h = run_with(
      model, 3, {callbacks::LearningRateScheduler([](int epoch, double rate) {
        return epoch == 0 ? rate : rate / 4;
      })});
  EXPECT_EQ(h.history.at("learning_rate"),
            (std::vector<double>{1, 0.25, 0.0625}));
}

TEST(LambdaCallback, CallsItsHooks) {
  auto model = still_model();
  std::vector<int> epochs;
  run_with(model, 3,
           {callbacks::LambdaCallback(
               {.on_epoch_end = [&](Model&, int epoch, const Logs&) {
                 epochs.push_back(epoch);
               }})});
  EXPECT_EQ(epochs, (std::vector<int>{0, 1, 2}));
}

TEST(ProgbarLogger, PrintsEpochsAndTheirLosses) {
  // w = 1 is not moved: (1 * 3 - 1)^2 = 4.
  auto model = still_model();
  testing::internal::CaptureStdout();
  model.fit(
      constant({{3.f}}), ones({1, 1}),
      {.epochs = 2, .verbose = 0, .callbacks = {callbacks::ProgbarLogger()}});
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("Epoch 1/2"), std::string::npos) << text;
  EXPECT_NE(text.find("Epoch 2/2"), std::string::npos) << text;
  EXPECT_NE(text.find("loss: 4"), std::string::npos) << text;
}

TEST(CSVLogger, WritesALinePerEpochAndAppends) {
  const std::string path = callbacks_folder("csv") + "/log.csv";
  auto model = still_model();
  const auto two = make_callback<Figures>("a", std::vector<double>{1.5, 2});
  run_with(model, 2, {two, callbacks::CSVLogger(path)});
  EXPECT_EQ(text_of(path), "epoch,a,loss\n0,1.5,0\n1,2,0\n");
  run_with(model, 1, {two, callbacks::CSVLogger(path, {.append = true})});
  EXPECT_EQ(text_of(path), "epoch,a,loss\n0,1.5,0\n1,2,0\n0,1.5,0\n");
  run_with(model, 1, {two, callbacks::CSVLogger(path, {.separator = ";"})});
  EXPECT_EQ(text_of(path), "epoch;a;loss\n0;1.5;0\n");
  EXPECT_THROW(
      run_with(model, 1, {callbacks::CSVLogger("/nowhere/at/all.csv")}),
      errors::InvalidArgument);
}

TEST(SwapEMAWeights, TestsUseTheAverages) {
  auto model =
      Sequential({InputLayer({1}),
                  Dense(1, {.use_bias = false,
                            .kernel_initializer = initializers::Zeros()})});
  model.compile({.optimizer = SGD(0.25, {.use_ema = true, .ema_momentum = 0.5}),
                 .loss = "mse"});
  const Tensor x = ones({1, 1});
  // w: 0.5, 0.75; averages 0.5, 0.625; errors (1 - average)^2.
  const History h = model.fit(x, x,
                              {.epochs = 2,
                               .verbose = 0,
                               .callbacks = {callbacks::SwapEMAWeights()},
                               .validation_data = {x, x}});
  EXPECT_NEAR(h.history.at("val_loss")[0], 0.25, 1e-6);
  EXPECT_NEAR(h.history.at("val_loss")[1], 0.375 * 0.375, 1e-6);
  EXPECT_NEAR(h.history.at("loss")[1], 0.25, 1e-6);
  EXPECT_NEAR(model.get_weights()[0].item<float>(), 0.625, 1e-6);
}

std::string nan_message(Model& model, const Tensor& x, const Tensor& y) {
  try {
    model.fit(x, y,
              {.epochs = 3,
               .verbose = 0,
               .callbacks = {callbacks::TerminateOnNaN({.raise_error = true})},
               .shuffle = false});
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "no error";
}

TEST(TerminateOnNaN, NamesTheFirstOpThatMadeIt) {
  class LogLayer : public LayerBase {
   public:
    LogLayer() : LayerBase("Log", "log_of_x") {}
    Tensors call(const Tensors& x, bool) override {
      return {math::log(x[0], site())};
    }
  };
  auto model =
      Sequential({InputLayer({1}),
                  Dense(1, {.use_bias = false,
                            .kernel_initializer = initializers::Ones()}),
                  make_layer<LogLayer>()});
  model.compile({.optimizer = SGD(0.0), .loss = "mse"});
  const std::string m = nan_message(
      model, constant(std::vector<float>{1, -1}, {2, 1}), zeros({2, 1}));
  expect_has(m, "the loss is nan after batch 1 of epoch 1");
  expect_has(m, "log_of_x/Log");
  expect_has(m, "callbacks_test.cc:");
  EXPECT_EQ(m.find("not finite"), std::string::npos);
  EXPECT_EQ(model.get_weights()[0].item<float>(), 1);
}

TEST(TerminateOnNaN, SaysWhenAnEarlierStepMadeIt) {
  auto model = still_model(1e30);
  const std::string m = nan_message(model, ones({1, 1}) * 3.0, zeros({1, 1}));
  expect_has(m, "the loss is inf after batch 1 of epoch 2");
  expect_has(m, "SquaredDifference");  // of -5e31
  auto torn = still_model(1e38);       // the first update is infinite
  expect_has(nan_message(torn, ones({1, 1}) * 3.0, zeros({1, 1})),
             "was not finite before this step");
  // Stops quietly when not asked to throw.
  auto quiet = still_model(1e30);
  const History h =
      quiet.fit(ones({1, 1}) * 3.0, zeros({1, 1}),
                {.epochs = 9,
                 .verbose = 0,
                 .callbacks = {callbacks::TerminateOnNaN({.find_op = false})}});
  EXPECT_LT(h.epoch.size(), 9u);
}

// A reader of its own: fields of a protobuf message, in order.
struct WireField {
  int number;
  uint64_t value = 0;  // of numbers
  std::string bytes = {};
};
uint64_t read_varint(const std::string& s, size_t* at) {
  uint64_t v = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(s.at((*at)++));
    v |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return v;
  }
}
std::vector<WireField> fields_of(const std::string& s) {
  std::vector<WireField> list;
  for (size_t at = 0; at < s.size();) {
    const uint64_t tag = read_varint(s, &at);
    WireField f{static_cast<int>(tag >> 3)};
    const int type = tag & 7;
    if (type == 0) {
      f.value = read_varint(s, &at);
    } else if (type == 2) {
      const uint64_t n = read_varint(s, &at);
      f.bytes = s.substr(at, n);
      at += n;
    } else {
      const size_t n = type == 1 ? 8 : 4;
      std::memcpy(&f.value, s.data() + at, n);
      at += n;
    }
    list.push_back(f);
  }
  return list;
}

// CRC-32C bit by bit, masked as records have it.
uint32_t masked_crc(const std::string& s) {
  uint32_t crc = ~0u;
  for (char c : s) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::vector<std::string> records_of(const std::string& folder) {
  std::vector<std::string> list;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string s = text_of(entry.path());
    for (size_t at = 0; at < s.size();) {
      uint64_t n = 0;
      uint32_t of_length = 0, of_data = 0;
      std::memcpy(&n, s.data() + at, 8);
      std::memcpy(&of_length, s.data() + at + 8, 4);
      EXPECT_EQ(of_length, masked_crc(s.substr(at, 8)));
      list.push_back(s.substr(at + 12, n));
      std::memcpy(&of_data, s.data() + at + 12 + n, 4);
      EXPECT_EQ(of_data, masked_crc(list.back()));
      at += 16 + n;
    }
  }
  return list;
}

// tag@step -> the value's fields.
std::map<std::string, std::vector<WireField>> summaries_of(
    const std::string& folder) {
  std::map<std::string, std::vector<WireField>> all;
  for (const std::string& record : records_of(folder)) {
    uint64_t step = 0;
    std::string summary;
    for (const WireField& f : fields_of(record)) {
      if (f.number == 2) step = f.value;
      if (f.number == 5) summary = f.bytes;
      if (f.number == 4) all["graph@0"] = fields_of(f.bytes);
      if (f.number == 3) {
        EXPECT_EQ(f.bytes, "brain.Event:2");
      }
    }
    for (const WireField& value : fields_of(summary)) {
      const auto parts = fields_of(value.bytes);
      all[parts.at(0).bytes + "@" + std::to_string(step)] = parts;
    }
  }
  return all;
}

float scalar_of(const std::vector<WireField>& value) {
  const auto bits = static_cast<uint32_t>(value.at(1).value);
  float v = 0;
  std::memcpy(&v, &bits, 4);
  return v;
}

TEST(TensorBoard, WritesScalarsHistogramsImagesAndTheGraph) {
  const std::string folder = callbacks_folder("tensorboard");
  auto model = still_model();
  const Tensor x = ones({4, 1});
  model.fit(x, x * 3.0,
            {.epochs = 2,
             .batch_size = 2,
             .verbose = 0,
             .callbacks = {callbacks::TensorBoard({.log_dir = folder,
                                                   .histogram_freq = 1,
                                                   .write_images = true,
                                                   .update_freq = "batch"})},
             .validation_data = {x, x}});
  auto train = summaries_of(folder + "/train");
  auto tests = summaries_of(folder + "/validation");
  EXPECT_EQ(scalar_of(train.at("epoch_loss@1")), 4);
  EXPECT_EQ(scalar_of(train.at("batch_loss@3")), 4);
  EXPECT_EQ(scalar_of(train.at("epoch_learning_rate@0")), 0);
  EXPECT_EQ(scalar_of(tests.at("epoch_loss@1")), 0);
  EXPECT_EQ(scalar_of(tests.at("evaluation_loss_vs_iterations@4")), 0);
  // The kernel is one 1: its histogram has one bucket that ends there.
  const std::string kernel = model.weights()[0].name();
  const auto histogram =
      fields_of(train.at(kernel + "/histogram@0").at(1).bytes);
  const auto real = [](uint64_t bits) {
    double v = 0;
    std::memcpy(&v, &bits, 8);
    return v;
  };
  ASSERT_EQ(histogram.size(), 7u);
  EXPECT_EQ(real(histogram[0].value), 1);
  EXPECT_EQ(real(histogram[2].value), 1);
  EXPECT_EQ(histogram[6].bytes.size(), 8u);
  const auto image = fields_of(train.at(kernel + "/image@0").at(1).bytes);
  EXPECT_EQ(image[0].value, 1u);
  EXPECT_EQ(image.at(3).bytes.substr(1, 3), "PNG");
  const auto& graph = train.at("graph@0");
  EXPECT_EQ(fields_of(graph.at(0).bytes).at(1).bytes, "InputLayer");
  EXPECT_EQ(fields_of(graph.at(1).bytes).at(1).bytes, "Dense");
  EXPECT_EQ(fields_of(graph.at(1).bytes).at(2).bytes,
            fields_of(graph.at(0).bytes).at(0).bytes);
  EXPECT_THROW(callbacks::TensorBoard({.update_freq = "sometimes"}),
               errors::InvalidArgument);
  EXPECT_THROW(
      run_with(model, 1, {callbacks::TensorBoard({.log_dir = "/dev/null/x"})}),
      errors::InvalidArgument);
}

// The host's file of the one run below log_dir/plugins/profile, as an XSpace.
std::vector<WireField> profile_in(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  const std::string profiles = folder + "/plugins/profile";
  if (!std::filesystem::exists(profiles)) return {};
  for (const auto& f :
       std::filesystem::recursive_directory_iterator(profiles)) {
    if (f.is_regular_file()) files.push_back(f.path());
  }
  EXPECT_EQ(files.size(), 1u);
  EXPECT_EQ(files.at(0).string().substr(files.at(0).string().size() - 10),
            ".xplane.pb");
  return fields_of(text_of(files.at(0)));
}

TEST(TensorBoard, ProfilesTheBatchesThatItIsAskedFor) {
  const Tensor x = ones({8, 1});
  const auto steps_with = [&](callbacks::ProfileBatch batches,
                              const std::string& name) {
    const std::string folder = callbacks_folder(name);
    auto model = still_model();
    model.fit(x, x,
              {.epochs = 2,
               .batch_size = 2,
               .verbose = 0,
               .callbacks = {callbacks::TensorBoard(
                   {.log_dir = folder, .profile_batch = batches})}});
    EXPECT_NO_THROW(profiler::start()) << "the recording has ended";
    profiler::stop();
    size_t steps = 0;
    for (const WireField& plane : profile_in(folder)) {
      for (const WireField& f : fields_of(plane.bytes)) {
        // Names of events are metadata, one entry per name.
        if (f.number == 4 && f.bytes.find("train") != f.bytes.npos) ++steps;
      }
    }
    return steps;
  };
  EXPECT_EQ(steps_with(0, "profile_none"), 0u);
  EXPECT_GE(steps_with(2, "profile_one"), 1u);
  EXPECT_GE(steps_with({2, 3}, "profile_two"), 1u);
  EXPECT_GE(steps_with({3, 99}, "profile_to_the_end"), 1u);
  EXPECT_THROW(callbacks::ProfileBatch(3, 2), errors::InvalidArgument);
  EXPECT_THROW(callbacks::ProfileBatch(-1), errors::InvalidArgument);
}

// With BERTH_PYTHON, or python3, where the package is installed.
TEST(TensorBoard, ThePackageOfPyPIReadsTheFilesSlow) {
  const char* given = std::getenv("BERTH_PYTHON");
  const std::string python = given ? given : "python3";
  const auto runs = [&](const std::string& program) {
    return std::system(
               (python + " -c '" + program + "' >/dev/null 2>&1").c_str()) == 0;
  };
  if (!runs("import tensorboard")) {
    GTEST_SKIP() << python << " has no package tensorboard";
  }
  const std::string folder = callbacks_folder("real_tensorboard");
  auto model = still_model();
  const Tensor x = ones({4, 1});
  model.fit(
      x, x * 3.0,
      {.epochs = 2,
       .verbose = 0,
       .callbacks = {callbacks::TensorBoard(
           {.log_dir = folder, .histogram_freq = 1, .write_images = true})}});
  const std::string kernel = model.weights()[0].name();
  EXPECT_TRUE(runs(
      "from tensorboard.backend.event_processing import event_accumulator as "
      "e\na = e.EventAccumulator(\"" +
      folder +
      "/train\")\na.Reload()\nassert [s.value for s in "
      "a.Scalars(\"epoch_loss\")] == [4.0, 4.0]\nassert "
      "a.Histograms(\"" +
      kernel +
      "/histogram\")[0].histogram_value.num == 1"
      "\nassert a.Images(\"" +
      kernel +
      "/image\")[0].width == 1\nassert "
      "[n.op for n in a.Graph().node] == [\"InputLayer\", \"Dense\"]"));
}

}  // namespace
}  // namespace berth::keras
