// Model::save_weights and load_weights.

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/models.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/variable_bytes.h"
#include "keras/models/layer_state.h"
#include "keras/models/weight_paths.h"
#include "keras/saving/weight_files.h"
#include "tensor/variable_state.h"

namespace berth::keras {

namespace {

constexpr const char* kEnding = ".safetensors";

}  // namespace

std::string weights_call(const char* what, const Layer& model, Site site) {
  return fmt::format("{} of model \"{}\"{}", what, model.name(),
                     where_text(nullptr, site));
}

std::vector<std::pair<std::string, Variable>> made_weights(
    const Layer& model, const std::string& call) {
  WeightPaths paths = weight_paths(model);
  if (!paths.weights.empty() && paths.unbuilt.empty()) {
    return std::move(paths.weights);
  }
  if (paths.weights.empty()) {
    throw errors::FailedPrecondition(
        fmt::format("{}: its weights are not made yet; call it once, or "
                    "model.build({{-1, ...}}), first",
                    call));
  }
  return std::move(paths.weights);
}

void prepare_file(const std::string& path, bool overwrite,
                  const std::string& call) {
  if (!overwrite && io::is_regular_file(path)) {
    throw errors::AlreadyExists(fmt::format(
        "{}: \"{}\" exists; expected a new name, or {{.overwrite = true}}",
        call, path));
  }
  io::make_folder(io::folder_of(path), call);
}

std::string weights_file(const std::string& path, const std::string& format,
                         const std::string& call) {
  const auto refuse = [&](const std::string& what) {
    const size_t dot = path.rfind('.');
    const std::string stem = path.substr(
        0, dot == std::string::npos || path.find('/', dot) != std::string::npos
               ? path.size()
               : dot);
    throw errors::InvalidArgument(
        fmt::format("{}: {}; weights are written as safetensors: expected "
                    "\"{}{}\" and {{.format = \"safetensors\"}}, the default",
                    call, what, stem, kEnding));
  };
  if (format != "safetensors") {
    refuse(fmt::format("there is no format \"{}\"", format));
  }
  for (const char* ending : {".h5", ".hdf5", ".keras", ".tf", ".ckpt"}) {
    if (path.ends_with(ending)) {
      refuse(fmt::format("\"{}\" names a file of another format", path));
    }
  }
  if (path.empty() || path.ends_with("/")) {
    refuse(fmt::format("the path \"{}\" names no file", path));
  }
  return path.ends_with(kEnding) ? path : path + kEnding;
}

void Model::save_weights(const std::string& filepath,
                         const SaveWeightsOptions& options, Site site) const {
  const std::string call = weights_call("save_weights", *this, site);
  const std::string path = weights_file(filepath, options.format, call);
  std::vector<io::TensorToWrite> list;
  for (const auto& [name, v] : made_weights(*this, call)) {
    list.push_back({name, v.value(site)});
  }
  prepare_file(path, options.overwrite, call);
  const io::WriteLock lock(path, call);
  io::write_safetensors(path, std::move(list), {}, call);
}

void Model::load_weights(const std::string& filepath,
                         const LoadWeightsOptions& options, Site site) const {
  const std::string call = weights_call("load_weights", *this, site);
  const std::string path = io::is_regular_file(filepath)
                               ? filepath
                               : weights_file(filepath, "safetensors", call);
  const auto weights = made_weights(*this, call);
  const io::SafetensorsFile file(path, call);
  // Names in a checkpoint that ModelCheckpoint wrote begin so.
  const std::string in_checkpoint = "model/";
  const bool whole = file.find(weights[0].first) < 0 &&
                     file.find(in_checkpoint + weights[0].first) >= 0;
  std::vector<std::string> wrong;
  std::vector<io::VariableToRead> found;
  for (const auto& [name, v] : weights) {
    const int i = file.find(whole ? in_checkpoint + name : name);
    if (i < 0) {
      wrong.push_back(fmt::format("\"{}\" is not in the file", name));
      continue;
    }
    const auto& info = file.tensors()[static_cast<size_t>(i)];
    if (info.shape == v.shape() && info.dtype == v.dtype()) {
      found.push_back({v, &file, i});
      continue;
    }
    wrong.push_back(fmt::format(
        "\"{}\" is {} {} in the file and {} {} in the model", name, info.type,
        info.shape.str(), name_of(v.dtype()), v.shape().str()));
  }
  const bool has_model = file.metadata().contains(kModelInFile);
  for (const auto& info : file.tensors()) {
    if (has_model && info.name.starts_with(kOptimizerInFile)) continue;
    const bool known =
        std::any_of(weights.begin(), weights.end(),
                    [&](const auto& w) { return w.first == info.name; });
    if (!known && !whole) {
      wrong.push_back(fmt::format("\"{}\" is not in the model", info.name));
    }
  }
  if (!wrong.empty()) {
    constexpr size_t kNamed = 4;
    std::string text;
    for (size_t i = 0; i < std::min(wrong.size(), kNamed); ++i) {
      text += (i == 0 ? "" : "; ") + wrong[i];
    }
    if (wrong.size() > kNamed) {
      text += fmt::format("; and {} more", wrong.size() - kNamed);
    }
    if (!options.skip_mismatch) {
      throw errors::InvalidArgument(fmt::format(
          "{}: the weights in \"{}\" do not fit: {}; nothing was loaded: "
          "expected those of a model made alike, or {{.skip_mismatch = true}}",
          call, path, text));
    }
    report({"weights-skipped", debugging::Severity::kWarning,
            fmt::format("{}: {} of the model's {} weights were "
                        "loaded from \"{}\": {}",
                        call, found.size(), weights.size(), path, text),
            site});
  }
  io::read_variables(found, call, site);
}

}  // namespace berth::keras
