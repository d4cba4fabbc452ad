#include "distribute/pipeline/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/where.h"
#include "berth/errors.h"
#include "device/device_name.h"

namespace berth::distribute {

namespace {

// "a/b/Op" -> "a/b"
std::string path_of(const std::string& node) {
  const size_t at = node.rfind('/');
  return at == std::string::npos ? "" : node.substr(0, at);
}

// The name of a layer, or the path of one.
bool is_layer(const std::string& path, const std::string& name) {
  return path == name || path.ends_with("/" + name);
}

}  // namespace

Pipeline::Pipeline(PipelineOptions options, std::vector<DeviceId> devices,
                   Site site)
    : options_(std::move(options)),
      devices_(std::move(devices)),
      site_(site),
      given_(parse_actions(options_.instructions)) {
  if (options_.micro_batches < 1) {
    throw errors::InvalidArgument(fmt::format(
        "PipelineStrategy: micro_batches is {}{}; expected at least 1",
        options_.micro_batches, where_text(nullptr, site)));
  }
  if (options_.slices != 0 && options_.slices < options_.micro_batches) {
    throw errors::InvalidArgument(fmt::format(
        "PipelineStrategy: {} slices for {} micro-batches{}; expected at least "
        "as many, or 0",
        options_.slices, options_.micro_batches, where_text(nullptr, site)));
  }
  const bool one = std::all_of(devices_.begin(), devices_.end(), [&](auto d) {
    return d.name().type == devices_[0].name().type;
  });
  if (!one) {
    std::vector<std::string> names;
    for (const DeviceId d : devices_) names.push_back(d.text());
    throw errors::InvalidArgument(fmt::format(
        "PipelineStrategy: devices [{}]{}; expected devices of one type, which "
        "scopes in the model count",
        fmt::join(names, ", "), where_text(nullptr, site)));
  }
  const ScheduleShape whole = shape(options_.micro_batches);
  if (given_.empty()) {
    actions_of(whole);
  } else {
    check_actions(given_, whole);
  }
}

ScheduleShape Pipeline::shape(int micro_batches) const {
  const auto n = static_cast<int>(devices_.size());
  const bool two = options_.schedule == PipelineSchedule::kZbV ||
                   options_.schedule == PipelineSchedule::kInterleaved1F1B;
  const int stages = is_open() ? (two ? 2 * n : n)
                               : static_cast<int>(options_.stages.size()) + 1;
  return {options_.schedule, n, stages, micro_batches};
}

PipelineActions Pipeline::actions(int micro_batches) const {
  const bool whole = micro_batches == options_.micro_batches;
  if (whole && !given_.empty()) return given_;
  return actions_of(shape(micro_batches));
}

bool Pipeline::splits_backward() const {
  for (const auto& list : actions(options_.micro_batches)) {
    for (const PipelineAction& a : list) {
      if (a.pass == 'W') return true;
    }
  }
  return false;
}

std::string Pipeline::device_name(int stage) const {
  return fmt::format("/device:{}:{}", *devices_[0].name().type,
                     shape(1).device_of(stage));
}

std::string Pipeline::device_of_layer(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto [it, fresh] =
      stage_of_layer_.try_emplace(path, is_open() ? -1 : begun_);
  if (fresh && is_open()) order_.push_back(path);
  if (is_open()) return it->second < 0 ? "" : device_name(it->second);
  if (fresh) {
    order_.push_back(path);
    const auto next = static_cast<size_t>(begun_);
    if (next < options_.stages.size() && is_layer(path, options_.stages[next]))
      it->second = ++begun_;
  }
  return device_name(it->second);
}

int Pipeline::stage_of_layer(const std::string& path) const {
  for (std::string p = path; !p.empty(); p = path_of(p)) {
    const auto it = stage_of_layer_.find(p);
    if (it != stage_of_layer_.end() && it->second >= 0) return it->second;
  }
  return -1;
}

// -1: its inputs decide.
int Pipeline::stage_of(const Node& node) const {
  const int stage = stage_of_layer(path_of(node.name));
  if (stage >= 0 || !is_open()) return stage;
  if (node.requested.empty()) return -1;
  if (node.requested.is_cpu() && !devices_[0].is_cpu()) return -1;
  return node.requested.name().id.value_or(0);
}

void Pipeline::check_layers_seen() const {
  const auto begun = static_cast<size_t>(begun_);
  if (begun == options_.stages.size()) return;
  throw errors::InvalidArgument(fmt::format(
      "PipelineStrategy{}: stage {} begins with layer \"{}\", which the model "
      "does not call after \"{}\"; expected some of {}, in this order",
      where_text(nullptr, site_), begun + 1, options_.stages[begun],
      begun > 0 ? options_.stages[begun - 1] : "its input",
      fmt::join(order_, ", ")));
}

// Device scopes may leave a device out.
void Pipeline::check_all_asked_for(const std::vector<StagePlace>& at) const {
  const ScheduleShape one = shape(1);
  const bool cut =
      std::any_of(stage_of_layer_.begin(), stage_of_layer_.end(),
                  [](const auto& layer) { return layer.second >= 0; });
  if (is_open() && !cut && one.stages > one.devices) {
    throw errors::InvalidArgument(fmt::format(
        "PipelineStrategy{}: schedule {} has {} stages on each device, which "
        "device scopes cannot say; expected .stages with the layers that begin "
        "a stage",
        where_text(nullptr, site_), name_of(options_.schedule),
        one.stages / one.devices));
  }
  for (int32_t s = 0; options_.stages.empty() && s < shape(1).stages; ++s) {
    if (std::any_of(at.begin(), at.end(),
                    [&](const StagePlace& p) { return p.stage == s; })) {
      continue;
    }
    throw errors::InvalidArgument(fmt::format(
        "PipelineStrategy{}: nothing in the model asks for device {} of {}; "
        "expected .stages with the layers that begin a stage, or layers made "
        "in device(\"{}\")",
        where_text(nullptr, site_), s, devices_.size(), device_name(s)));
  }
}

StagePlaces Pipeline::place(Graph& graph) const {
  const std::lock_guard lock(mutex_);
  check_layers_seen();
  const ScheduleShape s = shape(1);
  const bool halves = splits_backward();
  std::vector<int32_t> own(graph.nodes.size(), -1);
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph[i].follows < 0) own[i] = stage_of(graph[i]);
  }
  // What a step does with variables alone, such as averages, is where they are.
  const std::vector<int32_t> of_variable = number_of_variables(graph, own);
  std::vector<StagePlace> at(graph.nodes.size());
  for (int32_t i = 0; i < graph.size(); ++i) {
    Node& n = graph[i];
    const OpKind kind = n.op->kind();
    if (n.op->graph_only() || kind == OpKind::kReadVariable) continue;
    int32_t after = -1;
    for (const ValueRef& v : n.inputs) {
      const int32_t variable = variable_of(graph, v);
      after = std::max(after, at[v.node].stage);
      if (variable >= 0) after = std::max(after, of_variable[variable]);
    }
    StagePlace& here = at[i];
    const bool gradient = n.follows >= 0 && at[n.follows].stage >= 0;
    if (gradient) {
      here = {at[n.follows].stage, 'B'};
    } else {
      here.stage = std::max<int32_t>(stage_of(n), after);
      if (here.stage < 0) here.stage = 0;
    }
    if (!gradient && options_.stages.empty() && stage_of(n) >= 0 &&
        stage_of(n) < after) {
      throw errors::InvalidArgument(fmt::format(
          "PipelineStrategy: {}{} is on device {}, its input comes from device "
          "{}; expected scopes in the order of the model, or .stages",
          n.name, where_text(nullptr, asked_at(n)), stage_of(n), after));
    }
    if (gradient && !n.requested.empty()) continue;  // pinned
    const bool computes = kind == OpKind::kCompute || kind == OpKind::kControl;
    if (computes && !n.has_effect() && here.stage < s.stages) {
      n.requested = DeviceId(device_name(here.stage));
    }
  }
  check_all_asked_for(at);
  // A gradient that another stage waits for is not of weights alone.
  const auto users = graph.users();
  for (int32_t i = graph.size(); i-- > 0 && halves;) {
    if (at[i].pass == 'F') continue;
    const bool waited =
        std::any_of(users[i].begin(), users[i].end(), [&](int32_t u) {
          return at[u].pass == 'I' ||
                 (at[u].pass != 'F' && at[u].stage != at[i].stage);
        });
    at[i].pass = waited ? 'I' : 'W';
  }
  StagePlaces places;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (at[i].stage < 0) continue;
    for (const NodeSource& source : graph[i].sources) {
      places.try_emplace(source.name, at[i]);
    }
  }
  return places;
}

}  // namespace berth::distribute
