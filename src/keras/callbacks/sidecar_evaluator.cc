// SidecarEvaluator: evaluates each new checkpoint.

#include "berth/keras/sidecar_evaluator.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/output.h"
#include "base/vertex_folder.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/train.h"

namespace berth::keras::utils {

namespace {

namespace fs = std::filesystem;

// A checkpoint, or the newest file of weights, that is not `before`.
std::optional<std::string> newest_of(const std::string& folder,
                                     const std::string& before) {
  if (auto path = train::latest_checkpoint(folder)) {
    return *path == before ? std::nullopt : path;
  }
  std::error_code error;
  std::optional<std::string> newest;
  fs::file_time_type when = fs::file_time_type::min();
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto time = entry.last_write_time(error);
    if (error || time < when) continue;
    when = time;
    newest = entry.path().string();
  }
  return newest == before ? std::nullopt : newest;
}

}  // namespace

SidecarEvaluator::SidecarEvaluator(Model model, data::Dataset data,
                                   SidecarEvaluatorOptions options, Site site)
    : model_(std::move(model)),
      data_(std::move(data)),
      options_(std::move(options)),
      site_(site) {
  options_.checkpoint_dir =
      or_vertex_folder(options_.checkpoint_dir, "AIP_CHECKPOINT_DIR");
  const auto refuse = [&](const std::string& why) {
    throw errors::InvalidArgument(
        fmt::format("SidecarEvaluator{}: {}", where_text(nullptr, site), why));
  };
  if (options_.checkpoint_dir.empty()) {
    refuse(
        "checkpoint_dir is \"\" and AIP_CHECKPOINT_DIR is not set; expected a "
        "folder");
  }
  if (options_.max_evaluations < 0 || options_.steps < 0 ||
      !(options_.poll_seconds > 0)) {
    refuse(fmt::format(
        "max_evaluations {}, steps {} and poll_seconds {}; expected numbers of "
        "at least 0, and seconds above it",
        options_.max_evaluations, options_.steps, options_.poll_seconds));
  }
}

// False when the checkpoint went while it was read.
bool SidecarEvaluator::load(const std::string& path) {
  try {
    if (path.ends_with(".safetensors")) {
      model_.load_weights(path, {}, site_);
    } else {
      train::Checkpoint({{"model", model_}}, site_)
          .restore(path, site_)
          .expect_partial();
    }
    return true;
  } catch (const errors::NotFound&) {
    return false;
  } catch (const errors::DataLoss&) {
    if (fs::exists(path)) throw;
    return false;
  }
}

std::vector<Logs> SidecarEvaluator::start() {
  std::vector<Logs> all;
  std::string before;
  for (;;) {
    const bool last = options_.done && options_.done();
    const auto path = newest_of(options_.checkpoint_dir, before);
    if (path && load(*path)) {
      before = *path;
      all.push_back(model_.evaluate(
          data_, {.steps = options_.steps, .callbacks = options_.callbacks},
          site_));
      if (options_.verbose != 0) {
        std::string text;
        for (const auto& [name, value] : all.back()) {
          text += fmt::format(", {}: {:.4g}", name, value);
        }
        user_output().write(
            fmt::format("evaluation {} of {}{}\n", all.size(), *path, text));
      }
      const auto most = static_cast<size_t>(options_.max_evaluations);
      if (all.size() == most && most > 0) return all;
      continue;
    }
    if (last) return all;
    std::this_thread::sleep_for(
        std::chrono::duration<double>(options_.poll_seconds));
  }
}

}  // namespace berth::keras::utils
