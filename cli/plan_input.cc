#include "cli/plan_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/planner/problem_file.h"
#include "place/place_text.h"
#include "planner/cluster.h"
#include "planner/problem_of_graph.h"
#include "simulate/pipeline_steps.h"

namespace berth::cli {

namespace {

// Returns the name in messages and plans: without folders.
std::string base_name(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string name =
      slash == std::string::npos ? path : path.substr(slash + 1);
  return name == "-" ? "standard input" : name;
}

// A problem file begins with a brace, a graph text with a comment or its name.
bool is_problem_file(const std::string& path, const std::string& text) {
  const size_t at = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (text.compare(at, 1, "{") == 0) return true;
  if (text.compare(at, 1, "#") == 0 ||
      text.compare(at, 11, "berth-graph") == 0) {
    return false;
  }
  throw UsageError(fmt::format(
      "{}: no known format; expected a graph text (\"berth-graph 1\") or a "
      "problem file (\"berth_problem\"); files of dnn-partitioning and Doppler "
      "are converted by tools/plan_problem FILE > PROBLEM",
      path));
}

std::optional<Cluster> cluster_of(const PlanInputOptions& o) {
  if (o.cluster.empty()) return std::nullopt;
  return read_cluster(read_file(o.cluster), o.cluster);
}

// Errors in files are wrong usage; problems that cannot be planned are not.
template <class Fn>
auto as_usage(Fn&& fn) {
  try {
    return fn();
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(e.what());
  }
}

DevicesOfText devices_of(const PlanInputOptions& o,
                         const std::optional<Cluster>& cluster) {
  if (cluster) {
    return [&](const GraphText&) {
      std::vector<std::string> names;
      for (const DeviceCost& d : cluster->machine.devices) {
        names.push_back(d.name);
      }
      return names;
    };
  }
  if (o.devices.empty()) return nullptr;
  return [&](const GraphText& text) {
    return devices_of_option(o.devices, &text);
  };
}

CostTable costs_of_input(const PlaceInput& in,
                         const std::optional<Cluster>& cluster) {
  const Machine machine =
      cluster ? cluster->machine : machine_of(in.text, in.devices);
  CostTable costs = costs_of_text(in.text, machine, in.options);
  if (!cluster) return costs;
  std::vector<std::string> names;
  for (const Node& n : in.text.graph.nodes) names.push_back(n.name);
  apply_times(*cluster, names, costs);
  return costs;
}

PricedGraph priced_graph(const PlanInputOptions& o, const std::string& text) {
  const auto cluster = as_usage([&] { return cluster_of(o); });
  PricedGraph priced;
  priced.input = std::make_unique<PlaceInput>(
      parse_place_input(o.file, text, devices_of(o, cluster)));
  priced.costs =
      as_usage([&] { return costs_of_input(*priced.input, cluster); });
  return priced;
}

void read_graph(const PlanInputOptions& o, const std::string& text,
                PlanInput& input) {
  PricedGraph priced = priced_graph(o, text);
  input.graph = std::move(priced.input);
  const PlaceInput& in = *input.graph;
  GraphProblemOptions options;
  options.keep_scopes = !o.free_scopes;
  if (o.objective == "throughput") options.model = PlanModel::kLoad;
  if (o.objective == "pipeline") options.model = PlanModel::kPipeline;
  input.problem =
      problem_of(in.text.graph, in.options, std::move(priced.costs), options);
  if (input.problem.name.empty()) input.problem.name = base_name(o.file);
}

void read_problem_file(const PlanInputOptions& o, const std::string& text,
                       PlanInput& input) {
  if (!o.devices.empty() || !o.cluster.empty()) {
    throw UsageError(
        "--devices, --cluster: expected a graph text; the devices of a problem "
        "file are its own");
  }
  PlanProblem& p = input.problem;
  p = read_problem(text, base_name(o.file));
  if (o.objective == "pipeline" && p.model == PlanModel::kStep) {
    p.model = PlanModel::kPipeline;
  } else if (!o.objective.empty() && o.objective != model_name(p.model)) {
    throw UsageError(
        fmt::format("--objective {}: the problem's objective is {}",
                    o.objective, model_name(p.model)));
  }
}

}  // namespace

void PlanInputOptions::add_to(CLI::App& command) {
  command.add_option("file", file, "the file; - is standard input")->required();
  command.add_option("--cluster", cluster,
                     "devices and links, a JSON file (docs/formats.md)");
  command.add_option("--devices", devices,
                     "hypothetical devices of a graph text, for example "
                     "CPUx2,GPUx2");
  command
      .add_option("--objective", objective,
                  "the end of a step (if nothing else is said), the load of "
                  "the busiest device, or the end of a step of micro-batches "
                  "in stages")
      ->check(CLI::IsMember({"latency", "throughput", "pipeline"}));
  command
      .add_option("--micro-batches", pipeline.micro_batches,
                  "of a pipeline's step; the file is one of them")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      .add_option("--schedule", schedule,
                  "of a pipeline: the order of its micro-batches")
      ->check(CLI::IsMember({"best", "gpipe", "1f1b", "interleaved"}))
      ->capture_default_str();
  command.add_flag("--free-scopes", free_scopes,
                   "devices that nodes ask for are a candidate, no condition");
}

PricedGraph read_priced_graph(const PlanInputOptions& o) {
  const std::string text = read_graph_file(o.file);
  if (!is_problem_file(o.file, text)) return priced_graph(o, text);
  throw UsageError(fmt::format(
      "--parallel: {} is a problem file, whose ops have no layers; expected a "
      "graph text",
      o.file));
}

void read_plan_input(const PlanInputOptions& o, PlanInput& input) {
  const std::string text = read_graph_file(o.file);
  const PipelineSettings none;
  if (o.objective != "pipeline" &&
      (o.pipeline.micro_batches != none.micro_batches ||
       o.schedule != "best")) {
    throw UsageError(
        "--micro-batches and --schedule are for --objective pipeline");
  }
  if (is_problem_file(o.file, text)) {
    as_usage([&] { read_problem_file(o, text, input); });
  } else {
    read_graph(o, text, input);
  }
  input.problem.pipeline = o.pipeline;
  if (o.schedule != "best") {
    input.problem.pipeline.order = order_of_name(o.schedule);
  }
  as_usage([&] { check_problem(input.problem); });
}

}  // namespace berth::cli
