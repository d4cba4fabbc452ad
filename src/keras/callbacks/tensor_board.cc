// The callback TensorBoard.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <optional>

#include "base/vertex_folder.h"
#include "berth/errors.h"
#include "berth/keras/models.h"
#include "berth/profiler.h"
#include "keras/callbacks/chief_only.h"
#include "keras/callbacks/event_file.h"
#include "keras/models/layer_state.h"
#include "keras/optimizers/optimizer_config.h"

namespace berth::keras::callbacks {

UpdateFreq::UpdateFreq(const char* when) {
  const std::string text = when ? when : "";
  if (text != "epoch" && text != "batch") {
    throw errors::InvalidArgument(fmt::format(
        "update_freq is \"{}\"; expected epoch, batch, or a number of batches",
        text));
  }
  batches = text == "batch" ? 1 : 0;
}
UpdateFreq::UpdateFreq(int64_t n) : batches(n) {
  if (n >= 1) return;
  throw errors::InvalidArgument(fmt::format(
      "update_freq is {}; expected epoch, batch, or at least 1", n));
}

ProfileBatch::ProfileBatch(int64_t first, int64_t last)
    : first(first), last(last) {
  if (first >= 0 && first <= last) return;
  throw errors::InvalidArgument(fmt::format(
      "profile_batch is {} to {}; expected batches from 1, or 0 for none",
      first, last));
}

namespace {

// Nodes of a GraphDef: layers below their model, each fed by the one before.
void add_layers(const Layer& layer, const std::string& above,
                std::string* before, WireMessage* graph) {
  const LayerState& s = layer.base()->state();
  const std::string name = above.empty() ? s.name : above + "/" + s.name;
  if (!s.parts.empty()) {
    for (const Layer& part : s.parts) add_layers(part, name, before, graph);
    return;
  }
  WireMessage node;
  node.bytes(1, name).bytes(2, s.type);
  if (!before->empty()) node.bytes(3, *before);
  if (!s.scope.device.empty()) node.bytes(4, s.scope.device);
  graph->message(1, node);
  *before = name;
}

// A matrix, or the filters of a convolution, as grey pixels.
std::optional<WireMessage> picture_of(const std::string& tag,
                                      const Variable& v) {
  const Shape& s = v.shape();
  if (s.rank() < 1 || s.num_elements() == 0) return std::nullopt;
  const int64_t width = s.rank() == 1 ? s[0] : s[s.rank() - 1];
  const int64_t height = s.num_elements() / width;
  if (width > 4096 || height > 4096) return std::nullopt;
  const std::vector<float> values = v.value().to_vector<float>();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float range = std::max(*high - *low, 1e-12f);
  std::vector<uint8_t> pixels;
  for (float x : values) {
    const float grey = std::isfinite(x) ? (x - *low) / range * 255 : 0;
    pixels.push_back(static_cast<uint8_t>(std::clamp(grey, 0.f, 255.f)));
  }
  return image_summary(tag, static_cast<int>(height), static_cast<int>(width),
                       1, pixels);
}

class TensorBoardCallback final : public CallbackBase {
 public:
  explicit TensorBoardCallback(TensorBoardOptions o)
      : CallbackBase("tensor_board"), o_(std::move(o)) {}

  void on_train_begin(Model& model) override {
    writes_ = is_chief(model);
    if (!writes_) return;
    train_.emplace(o_.log_dir + "/train");
    if (o_.write_graph && model.built()) write_graph(model);
    started_ = std::chrono::steady_clock::now();
  }
  void on_epoch_begin(Model&, int) override {
    started_ = std::chrono::steady_clock::now();
    steps_before_ = steps_;
  }
  void on_train_batch_begin(Model&, int64_t batch) override {
    if (writes_ && !profiled_ && batch + 1 == o_.profile_batch.first) {
      profiled_ = true;
      try {
        profiler::start();
        profiles_ = true;
      } catch (const errors::AlreadyExists&) {  // it is recorded anyway
      }
    }
    if (profiles_) step_.emplace("train");
  }
  void on_train_batch_end(Model& model, int64_t batch) override {
    ++steps_;
    step_.reset();
    if (profiles_ && batch + 1 >= o_.profile_batch.last) write_profile();
    if (!writes_ || o_.update_freq.batches == 0 ||
        steps_ % o_.update_freq.batches != 0) {
      return;
    }
    std::vector<WireMessage> values;
    for (const auto& [name, value] : model.metrics_result()) {
      values.push_back(scalar_summary("batch_" + name, value));
    }
    if (o_.write_steps_per_second) {
      values.push_back(scalar_summary("batch_steps_per_second", rate()));
    }
    train_->add(steps_, values);
  }
  void on_test_end(Model&, const Logs& logs) override {
    if (!writes_) return;
    std::vector<WireMessage> values;
    for (const auto& [name, value] : logs) {
      values.push_back(
          scalar_summary("evaluation_" + name + "_vs_iterations", value));
    }
    validation().add(steps_, values);
    validation().flush();
  }
  void on_epoch_end(Model& model, int epoch, Logs& logs) override {
    if (!writes_) return;
    if (profiles_) write_profile();  // the epoch was shorter
    std::vector<WireMessage> trained, tested;
    for (const auto& [name, value] : logs) {
      if (name.rfind("val_", 0) == 0) {
        tested.push_back(scalar_summary("epoch_" + name.substr(4), value));
      } else {
        trained.push_back(scalar_summary("epoch_" + name, value));
      }
    }
    if (logs.count("learning_rate") == 0) {
      trained.push_back(scalar_summary("epoch_learning_rate",
                                       current_rate(model.optimizer())));
    }
    if (o_.write_steps_per_second) {
      trained.push_back(scalar_summary("epoch_steps_per_second", rate()));
    }
    if (!wrote_graph_ && o_.write_graph) write_graph(model);
    train_->add(epoch, trained);
    if (!tested.empty()) validation().add(epoch, tested);
    if (o_.histogram_freq > 0 && epoch % o_.histogram_freq == 0) {
      write_weights(model, epoch);
    }
    train_->flush();
    if (validation_) validation_->flush();
  }
  void on_train_end(Model&) override {
    if (profiles_) write_profile();
    train_.reset();
    validation_.reset();
  }

  CallbackState get_state() const override {
    return {.numbers = {{"steps", static_cast<double>(steps_)}}};
  }
  void set_state(const CallbackState& s) override {
    const auto it = s.numbers.find("steps");
    if (it != s.numbers.end()) steps_ = static_cast<int64_t>(it->second);
  }

 private:
  bool writes_ = true;  // the chief does

  EventFile& validation() {
    if (!validation_) validation_.emplace(o_.log_dir + "/validation");
    return *validation_;
  }
  void write_profile() {
    profiles_ = false;
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 32> run{};
    std::strftime(run.data(), run.size(), "%Y_%m_%d_%H_%M_%S", &local);
    std::array<char, 256> host{};
    if (gethostname(host.data(), host.size() - 1) != 0) host = {"host"};
    const std::string folder =
        fmt::format("{}/plugins/profile/{}", o_.log_dir, run.data());
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    profiler::stop().write(fmt::format("{}/{}.xplane.pb", folder, host.data()));
  }
  double rate() const {
    const double seconds = std::chrono::duration<double>(
                               std::chrono::steady_clock::now() - started_)
                               .count();
    return static_cast<double>(steps_ - steps_before_) /
           std::max(seconds, 1e-9);
  }
  void write_graph(const Model& model) {
    WireMessage graph;
    std::string before;
    add_layers(model, "", &before, &graph);
    // versions.producer, which readers ask for.
    graph.message(4, WireMessage().number(1, 22));
    train_->add_graph(graph);
    wrote_graph_ = true;
  }
  void write_weights(const Model& model, int epoch) {
    std::vector<WireMessage> values;
    for (const Variable& v : model.weights()) {
      values.push_back(histogram_summary(v.name() + "/histogram",
                                         v.value().to_vector<float>()));
      if (!o_.write_images) continue;
      if (auto picture = picture_of(v.name() + "/image", v)) {
        values.push_back(std::move(*picture));
      }
    }
    train_->add(epoch, values);
  }

  const TensorBoardOptions o_;
  std::optional<EventFile> train_, validation_;
  int64_t steps_ = 0, steps_before_ = 0;
  bool wrote_graph_ = false;
  bool profiles_ = false, profiled_ = false;
  std::optional<profiler::Trace> step_;  // XProf's steps
  std::chrono::steady_clock::time_point started_;
};

}  // namespace

Callback TensorBoard(TensorBoardOptions options) {
  options.log_dir =
      or_vertex_folder(options.log_dir, "AIP_TENSORBOARD_LOG_DIR");
  if (options.log_dir.empty()) options.log_dir = "logs";
  return make_callback<TensorBoardCallback>(std::move(options));
}

}  // namespace berth::keras::callbacks
