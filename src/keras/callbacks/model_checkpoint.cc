// ModelCheckpoint.

#include <fmt/format.h>

#include <limits>

#include "base/output.h"
#include "base/vertex_folder.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/checkpoint_callbacks.h"
#include "berth/keras/models.h"
#include "keras/callbacks/chief_only.h"
#include "keras/callbacks/file_pattern.h"
#include "keras/saving/weight_files.h"

namespace berth::keras::callbacks {

SaveFreq::SaveFreq(const char* epoch)
    : SaveFreq(std::string(epoch ? epoch : "")) {}
SaveFreq::SaveFreq(const std::string& epoch) {
  if (epoch == "epoch") return;
  throw errors::InvalidArgument(fmt::format(
      "save_freq is \"{}\"; expected \"epoch\" or a number of batches", epoch));
}
SaveFreq::SaveFreq(int64_t n) : batches(n) {
  if (n >= 1) return;
  throw errors::InvalidArgument(fmt::format(
      "save_freq is {}; expected \"epoch\" or at least 1 batch", n));
}

namespace {

std::string file_on_vertex() {
  const std::string folder = or_vertex_folder("", "AIP_CHECKPOINT_DIR");
  return folder.empty() ? "" : folder + "/checkpoint-{epoch:02d}";
}

class ModelCheckpointBase final : public CallbackBase {
 public:
  ModelCheckpointBase(const std::string& path, ModelCheckpointOptions options,
                      Site site)
      : CallbackBase("model_checkpoint"),
        path_(path.empty() ? file_on_vertex() : path),
        o_(std::move(options)),
        call_("ModelCheckpoint" + where_text(nullptr, site)) {
    weights_file(path_, o_.format, call_);
    if (o_.mode != "auto" && o_.mode != "min" && o_.mode != "max") {
      throw errors::InvalidArgument(fmt::format(
          "{}: mode is \"{}\"; expected auto, min or max", call_, o_.mode));
    }
    rises_ =
        o_.mode == "max" ||
        (o_.mode == "auto" && (o_.monitor.find("acc") != std::string::npos ||
                               o_.monitor.find("auc") != std::string::npos ||
                               o_.monitor.starts_with("fmeasure")));
    constexpr double kWorst = std::numeric_limits<double>::infinity();
    best_ = o_.initial_value_threshold.value_or(rises_ ? -kWorst : kWorst);
  }

  void on_epoch_end(Model& model, int epoch, Logs& logs) override {
    if (o_.save_freq.batches == 0) save(model, epoch, batches_, logs);
    batches_ = 0;
  }
  void on_epoch_begin(Model&, int epoch) override { epoch_ = epoch; }
  void on_train_batch_end(Model& model, int64_t batch) override {
    batches_ = batch;
    if (o_.save_freq.batches == 0 || ++since_ < o_.save_freq.batches) return;
    since_ = 0;
    settle(model, {});
    const std::map<std::string, int64_t> counts = {{"epoch", 0}, {"batch", 0}};
    const bool asks = o_.save_best_only || needs_logs(path_, counts);
    save(model, epoch_, batch, asks ? model.metrics_result() : Logs());
  }

  CallbackState get_state() const override {
    return {{{"since", static_cast<double>(since_)}, {"best", best_}}, {}, {}};
  }
  void set_state(const CallbackState& s) override {
    since_ = static_cast<int64_t>(s.numbers.at("since"));
    best_ = s.numbers.at("best");
  }

 private:
  void save(const Model& model, int epoch, int64_t batch, const Logs& logs) {
    const std::string path = fill_pattern(
        path_, {{"epoch", int64_t{epoch} + 1}, {"batch", batch + 1}}, logs,
        call_);
    if (o_.save_best_only && !is_best(logs, path)) return;
    on_chief(model, call_, [&] { write(model, path); });
    if (o_.verbose == 0 || !is_chief(model)) return;
    user_output().write(fmt::format("epoch {}: saved {}\n", epoch + 1, path));
  }

  void write(const Model& model, const std::string& path) const {
    if (o_.save_weights_only) {
      return model.save_weights(path, {.format = o_.format});
    }
    model.save(path);
  }

  bool is_best(const Logs& logs, const std::string& path) {
    const auto it = logs.find(o_.monitor);
    if (it == logs.end()) {
      std::string have;
      for (const auto& [name, value] : logs) have += " " + name;
      throw errors::InvalidArgument(fmt::format(
          "{}: there is no \"{}\" to choose the best by; expected one of{}",
          call_, o_.monitor, have));
    }
    const double before = best_;
    if (rises_ ? it->second > before : it->second < before) {
      best_ = it->second;
      return true;
    }
    if (o_.verbose > 0) {
      user_output().write(fmt::format("{} did not improve from {:g}: no {}\n",
                                      o_.monitor, before, path));
    }
    return false;
  }

  const std::string path_;
  const ModelCheckpointOptions o_;
  const std::string call_;
  bool rises_ = false;
  double best_ = 0;
  int epoch_ = 0;
  int64_t batches_ = 0, since_ = 0;
};

}  // namespace

Callback ModelCheckpoint(const std::string& filepath,
                         ModelCheckpointOptions options, Site site) {
  return make_callback<ModelCheckpointBase>(filepath, std::move(options), site);
}

}  // namespace berth::keras::callbacks
