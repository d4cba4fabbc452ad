// Model::save and load_model: weights and the state of the optimizer as tensors
// of one safetensors file, the rest as JSON in its metadata.

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "base/vertex_folder.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/models.h"
#include "berth/keras/saving.h"
#include "berth/train.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/variable_bytes.h"
#include "keras/models/weight_limit.h"
#include "keras/models/weight_paths.h"
#include "keras/optimizers/optimizer_base.h"
#include "keras/saving/weight_files.h"
#include "keras/training/training.h"

namespace berth::keras {

namespace {

// What metrics may have: they are not in the file.
constexpr uint64_t kMostBesideWeights = uint64_t{64} << 20;

using NamedVariables = std::vector<std::pair<std::string, Variable>>;

template <class T, class Serialize>
Config list_of(const std::vector<T>& values, Serialize serialize) {
  std::vector<Config> list;
  for (const T& v : values) list.push_back(serialize(v));
  return list;
}

Config config_of(const CompileOptions& o) {
  const auto metric = [](const Metric& m) { return metrics::serialize(m); };
  Config by_output(Config::parse("{}"));
  for (const auto& [output, list] : o.metrics_by_output) {
    by_output.set(output, list_of(list, metric));
  }
  Config weighted_by_output(Config::parse("{}"));
  for (const auto& [output, list] : o.weighted_metrics_by_output) {
    weighted_by_output.set(output, list_of(list, metric));
  }
  return {
      {"optimizer", optimizers::serialize(o.optimizer)},
      {"loss", o.loss.defined() ? losses::serialize(o.loss) : Config(nullptr)},
      {"losses",
       list_of(o.losses, [](const Loss& l) { return losses::serialize(l); })},
      {"loss_outputs", o.losses.names},
      {"loss_weights",
       list_of(o.loss_weights, [](double w) { return Config(w); })},
      {"loss_weight_outputs", o.loss_weights.names},
      {"metrics", list_of(o.metrics, metric)},
      {"weighted_metrics", list_of(o.weighted_metrics, metric)},
      {"metrics_by_output", by_output},
      {"weighted_metrics_by_output", weighted_by_output},
      {"slices", o.slices},
      {"run_eagerly", o.run_eagerly},
      {"auto_scale_loss", o.auto_scale_loss}};
}

std::vector<std::string> texts_of(const Config& list) {
  std::vector<std::string> all;
  for (const Config& c : list.as_list()) all.push_back(c.as_string());
  return all;
}

std::vector<Metric> metrics_in(const Config& list) {
  std::vector<Metric> all;
  for (const Config& c : list.as_list()) all.push_back(metrics::deserialize(c));
  return all;
}

CompileOptions options_of(const Config& c) {
  CompileOptions o{.optimizer = optimizers::deserialize(c.at("optimizer"))};
  const Config loss = c.at("loss");
  if (loss.kind() != Config::Kind::kNull) o.loss = losses::deserialize(loss);
  for (const Config& l : c.at("losses").as_list()) {
    o.losses.push_back(losses::deserialize(l));
  }
  o.losses.names = texts_of(c.at("loss_outputs"));
  for (const Config& w : c.at("loss_weights").as_list()) {
    o.loss_weights.push_back(w.as_double());
  }
  o.loss_weights.names = texts_of(c.at("loss_weight_outputs"));
  o.metrics = metrics_in(c.at("metrics"));
  o.weighted_metrics = metrics_in(c.at("weighted_metrics"));
  const Config by_output = c.at("metrics_by_output");
  for (const std::string& output : by_output.names()) {
    o.metrics_by_output[output] = metrics_in(by_output.at(output));
  }
  if (c.contains("weighted_metrics_by_output")) {
    const Config weighted = c.at("weighted_metrics_by_output");
    for (const std::string& output : weighted.names()) {
      o.weighted_metrics_by_output[output] = metrics_in(weighted.at(output));
    }
  }
  o.slices = static_cast<int>(c.at("slices").as_int());
  o.run_eagerly = c.at("run_eagerly").as_bool();
  o.auto_scale_loss = c.at("auto_scale_loss").as_bool();
  return o;
}

// Slots have the names that their weights have in files.
NamedVariables optimizer_state(const Layer& model, OptimizerBase& optimizer) {
  std::unordered_map<const TensorImpl*, std::string> paths;
  for (const auto& [path, v] : weight_paths(model).weights) {
    paths[v.handle().impl()] = path;
  }
  NamedVariables all;
  for (auto& n : optimizer.named_variables(model.trainable_variables())) {
    const size_t at = n.name.find("{}");
    if (at != std::string::npos && n.slot_of.defined()) {
      n.name.replace(at, 2, paths[n.slot_of.handle().impl()]);
    }
    all.emplace_back(kOptimizerInFile + n.name, n.variable);
  }
  return all;
}

void load_optimizer(const Layer& model, OptimizerBase& optimizer,
                    const io::SafetensorsFile& file, const std::string& call,
                    Site site) {
  std::map<std::string, Variable> have;
  const auto look = [&] {
    have.clear();
    for (auto& [name, v] : optimizer_state(model, optimizer)) have[name] = v;
  };
  look();
  bool made = false;
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const auto& info = file.tensors()[i];
    if (!info.name.starts_with(kOptimizerInFile)) continue;
    if (!have.contains(info.name) && !std::exchange(made, true)) {
      optimizer.make_slots(model.trainable_variables());
      look();
    }
    const auto it = have.find(info.name);
    if (it == have.end() || it->second.shape() != info.shape ||
        it->second.dtype() != info.dtype) {
      throw errors::DataLoss(fmt::format(
          "{}: \"{}\" in \"{}\", {} {}, is no variable of the optimizer; "
          "expected a file as Model::save() wrote it",
          call, info.name, file.path(), info.type, info.shape.str()));
    }
    io::fill_variable(it->second, call, site, [&](std::byte* target) {
      file.read(static_cast<int>(i), target);
    });
  }
}

}  // namespace

Config Model::get_compile_config() const {
  training_->check_compiled("get_compile_config()");
  return config_of(*training_->options);
}
void Model::compile_from_config(const Config& config, Site site) {
  compile(options_of(config), site);
}

void Model::save(const std::string& filepath, const SaveOptions& options,
                 Site site) const {
  const std::string call = weights_call("save", *this, site);
  std::string file = filepath;
  if (const auto folder = or_vertex_folder("", "AIP_MODEL_DIR");
      file.empty() && !folder.empty()) {
    file = folder + "/model.safetensors";
  }
  const std::string path = weights_file(file, "safetensors", call);
  std::map<std::string, std::string> metadata = {{kModelInFile, to_json()}};
  NamedVariables all = made_weights(*this, call);
  if (const auto& compiled = training_->options;
      compiled && options.include_optimizer) {
    metadata[kCompileInFile] = config_of(*compiled).str();
    for (auto& v : optimizer_state(*this, *compiled->optimizer.base())) {
      all.push_back(std::move(v));
    }
  }
  std::vector<io::TensorToWrite> list;
  for (const auto& [name, v] : all) list.push_back({name, v.value(site)});
  prepare_file(path, options.overwrite, call);
  const io::WriteLock lock(path, call);
  io::write_safetensors(path, std::move(list), std::move(metadata), call);
}

Model load_model(const std::string& filepath, const LoadModelOptions& options,
                 Site site) {
  const std::string call =
      fmt::format("load_model{}", where_text(nullptr, site));
  const std::string path = io::is_regular_file(filepath)
                               ? filepath
                               : weights_file(filepath, "safetensors", call);
  const io::SafetensorsFile file(path, call);
  const auto text = file.metadata().find(kModelInFile);
  if (text == file.metadata().end()) {
    throw errors::InvalidArgument(fmt::format(
        "{}: \"{}\" holds weights alone; expected a file of model.save(): "
        "make the model, then model.load_weights()",
        call, path));
  }
  const WeightLimit limit(file.file_bytes() + kMostBesideWeights, call, path);
  Model model = model_from_json(text->second, site);
  model.load_weights(path, {}, site);
  const auto compiled = file.metadata().find(kCompileInFile);
  if (!options.compile || compiled == file.metadata().end()) return model;
  model.compile(options_of(Config::parse(compiled->second, site)), site);
  load_optimizer(model, *model.optimizer().base(), file, call, site);
  return model;
}

}  // namespace berth::keras
