#include "distribute/automatic/choose_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/bytes_text.h"
#include "base/no_reports.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "distribute/automatic/read_step.h"
#include "distribute/pipeline/schedule.h"
#include "distribute/prediction/planned_step.h"
#include "distribute/strategy/fit_rewrite.h"
#include "distribute/strategy/ignored_launcher.h"
#include "distribute/strategy/undecided.h"
#include "function/trace_call.h"

namespace berth::distribute {

namespace {

ParallelPlan::Choice choice_of(const ModelChain& chain,
                               const ParallelCandidate& c) {
  ParallelPlan::Choice r;
  r.kind = c.kind;
  for (const int d : c.devices) {
    r.devices.push_back(chain.machine.devices[static_cast<size_t>(d)].name);
  }
  r.parts = c.parts;
  r.sharding = c.sharding;
  r.shares = c.shares;
  if (c.split >= 0) {
    r.layouts = chain.splits[static_cast<size_t>(c.split)].layouts;
  }
  r.schedule = c.schedule;
  r.micro_batches = c.micro_batches;
  for (size_t s = 1; s < c.begin.size(); ++s) {
    r.stages.push_back(chain.layers[static_cast<size_t>(c.begin[s])].path);
  }
  return r;
}

std::string short_device_name(const std::string& full) {
  const size_t at = full.rfind("device:");
  return at == full.npos ? full : full.substr(at + 7);
}

std::string does_not_fit(const ModelChain& chain, const ParallelCandidate& c) {
  const auto at = static_cast<size_t>(c.too_small);
  const DeviceCost& d =
      chain.machine.devices[static_cast<size_t>(c.devices[at])];
  return fmt::format("does not fit {} ({} of {})", short_device_name(d.name),
                     bytes_text(c.peak_bytes[at]), bytes_text(d.memory_limit));
}

// By how much a candidate is slower, and what it does more of.
std::string why_slower(const ParallelCandidate& c,
                       const ParallelCandidate& best) {
  const double all = best.step_us;
  std::vector<std::pair<double, const char*>> more = {
      {c.compute_us - best.compute_us, "computing"},
      {c.sums_us - best.sums_us, "sums and gathers"},
      {c.copies_us - best.copies_us, "copies"}};
  double waiting = c.step_us - best.step_us;
  for (const auto& [us, what] : more) waiting -= us;
  more.emplace_back(waiting, "waiting");
  std::sort(more.rbegin(), more.rend());
  std::string text =
      fmt::format("{:.0f} % slower", 100 * (c.step_us / all - 1));
  const char* before = ": ";
  for (const auto& [us, what] : more) {
    if (us < 0.005 * all) break;
    text += fmt::format("{}{} {:.0f} %", before, what, 100 * us / all);
    before = ", ";
  }
  return text;
}

SearchLimits limits_of(const AutoStrategyOptions& o, int slices) {
  SearchLimits limits;
  limits.most_micro_batches = o.most_micro_batches;
  limits.most_copies = o.most_copies;
  limits.replicas = o.replicas;
  limits.sharding = o.sharding;
  limits.tensor = o.divided_layers;
  limits.pipelines = o.pipelines && o.most_micro_batches > 1;
  if (slices > 0) {  // bits of one device: no sums over parts of layers
    limits.tensor = false;
    limits.most_micro_batches = std::min(limits.most_micro_batches, slices);
  }
  return limits;
}

LayoutMap map_of_choice(const ParallelPlan::Choice& c, const char* groups,
                        Site site) {
  const int n = static_cast<int>(c.devices.size()) / c.parts;
  std::vector<MeshAxis> axes;
  if (n > 1) axes.push_back({groups, n});
  axes.push_back({"model", c.parts});
  LayoutMap map(Mesh(axes, c.devices, site));
  for (const auto& [name, axes_of] : c.layouts) map[name] = axes_of;
  return map;
}

}  // namespace

ParallelPlan plan_of_search(const ModelChain& chain,
                            const SearchResult& found) {
  const ParallelCandidate& best = found.best.front();
  ParallelPlan plan;
  plan.choice = choice_of(chain, best);
  plan.batch = chain.batch;
  plan.step_us = best.step_us;
  plan.bound_us = found.bound_us;
  plan.compute_us = best.compute_us;
  plan.sums_us = best.sums_us;
  plan.copies_us = best.copies_us;
  plan.peak_bytes = best.peak_bytes;
  plan.candidates = found.candidates;
  for (size_t k = 1; k < found.best.size(); ++k) {
    const ParallelCandidate& c = found.best[k];
    plan.others.push_back(
        {choice_of(chain, c), c.fits() ? c.step_us : 0,
         c.fits() ? why_slower(c, best) : does_not_fit(chain, c)});
  }
  return plan;
}

std::unique_ptr<StrategyCore> core_of_choice(const ParallelPlan::Choice& c,
                                             Site site) {
  const bool groups = static_cast<int>(c.devices.size()) > c.parts;
  const PipelineOptions stages{.micro_batches = c.micro_batches,
                               .schedule = c.schedule,
                               .stages = c.stages};
  switch (c.kind) {
    case ParallelKind::kOneDevice:
      return std::make_unique<StrategyCore>(
          StrategyKind::kOneDevice, StrategyOptions{.devices = c.devices},
          site);
    case ParallelKind::kMirrored:
    case ParallelKind::kSharded: {
      StrategyOptions o{.devices = c.devices};
      o.shares = std::vector<double>(c.shares.begin(), c.shares.end());
      o.sharding = c.sharding;
      return std::make_unique<StrategyCore>(StrategyKind::kMirrored, o, site);
    }
    case ParallelKind::kModelParallel:
      return std::make_unique<StrategyCore>(
          map_of_choice(c, "batch", site),
          ModelParallelOptions{.batch_dim_name = groups ? "batch" : ""}, site);
    case ParallelKind::kPipeline:
      return std::make_unique<StrategyCore>(c.devices, stages, site);
    case ParallelKind::kPipelineOfLayers:
      return std::make_unique<StrategyCore>(map_of_choice(c, "stage", site),
                                            "stage", stages, site);
  }
  throw errors::Internal("a plan of no kind");
}

namespace {

[[noreturn]] void nothing_fits(const ModelChain& chain,
                               const SearchResult& found,
                               const std::string& who) {
  throw errors::ResourceExhausted(fmt::format(
      "{}: no plan of {} for batches of {} fits; the closest, {}, {}; expected "
      "a smaller batch, more devices, or more memory",
      who, found.candidates, chain.batch,
      choice_of(chain, found.best.front()).str(),
      does_not_fit(chain, found.best.front())));
}

// What the step of a choice takes, and each of its devices holds, by its plan:
// split, placed and compiled as the chosen strategy would, with variables that
// have no memory.
StepMemory built_step(const StrategyCore& core, const StepToRead& step,
                      int slices, const ParallelPlan::Choice& choice) {
  const NoReports quiet;
  const Undecided& open = *core.undecided();
  const auto trial =
      std::make_shared<StrategyCore>(choice.devices, open.options, open.site);
  Graph graph = step.graph;
  std::map<const VariableState*, Tensor> twins;
  for (auto& [own, twin] :
       replace_variables(graph, DeviceManager::get().host())) {
    variable_state(twin).strategy = trial.get();
    twins.emplace(&variable_state(own), twin);
  }
  for (const Undecided::Adopted& v : open.adopted()) {
    const auto it = twins.find(&variable_state(v.handle));
    if (it != twins.end()) trial->undecided()->adopt(it->second, v.engine);
  }
  trial->undecided()->note_updates(graph);
  trial->become(*core_of_choice(choice, open.site), nullptr);
  for (const std::string& path : step.paths) {
    trial->device_of_layer(path.c_str());
  }
  StepMemory memory = memory_of_graph(
      graph,
      {.name = graph.name, .rewrite = fit_rewrite(trial, {.slices = slices})},
      step.shapes, step.memory_bytes, true);
  std::vector<StepMemory::Device> all;
  for (const std::string& name : choice.devices) {
    all.push_back({name});
    for (const StepMemory::Device& d : memory.devices) {
      if (d.device == name) all.back() = d;
    }
  }
  memory.devices = std::move(all);
  return memory;
}

// Looks for the best plan whose step holds what its devices have, by the plan
// of the step. Predictions of times and bytes choose which steps are built.
class BuiltSearch {
 public:
  BuiltSearch(const StrategyCore& core, const StepToRead& step, int slices)
      : core_(core),
        step_(step),
        slices_(slices),
        chain_(read_step(step)),
        limits_(limits_of(core.undecided()->options, slices)) {}

  ParallelPlan run() {
    SearchResult found = search_plans(chain_, limits_);
    while (const ParallelCandidate* c = to_build(found)) {
      build(*c);
      found = search_plans(chain_, limits_);
    }
    ParallelCandidate& best = found.best.front();
    const bool decides = is_certain(best) && ops_of(best) > kMostOps;
    if (best.fits() && !is_built(best) && !decides) use_built(best);
    if (best.fits()) return plan_of_search(chain_, found);
    nothing_fits(chain_, found,
                 "AutoStrategy" + where_text(nullptr, core_.undecided()->site));
  }

 private:
  bool is_built(const ParallelCandidate& c) const {
    return std::ranges::any_of(limits_.built,
                               [&](const auto& b) { return b.is_as(c); });
  }

  // Whether its bytes are known, or so far below limits that it does not matter
  // how far predictions are off.
  bool is_certain(const ParallelCandidate& c) const {
    return is_built(c) || !exceeds(c, kSure);
  }

  // Whether a device is predicted to hold more than that share of its limit.
  bool exceeds(const ParallelCandidate& c, double share) const {
    for (size_t d = 0; d < c.devices.size(); ++d) {
      const auto at = static_cast<size_t>(c.devices[d]);
      const auto limit =
          static_cast<double>(chain_.machine.devices[at].memory_limit);
      if (limit > 0 && static_cast<double>(c.peak_bytes[d]) > share * limit) {
        return true;
      }
    }
    return false;
  }

  // How many ops its step has, about.
  size_t ops_of(const ParallelCandidate& c) const {
    const size_t copies = c.begin.empty()
                              ? c.devices.size()
                              : static_cast<size_t>(c.parts * c.micro_batches);
    return step_.graph.nodes.size() * copies;
  }

  // Once of each kind one that predictions of bytes reject, then the best until
  // it is one that was built; null: enough.
  const ParallelCandidate* to_build(const SearchResult& found) const {
    if (limits_.built.size() >= kMostBuilt) return nullptr;
    for (const ParallelCandidate& c : found.near) {
      const bool known = std::ranges::any_of(
          limits_.built, [&](const auto& b) { return b.kind == c.kind; });
      if (!known) return &c;
    }
    const ParallelCandidate& best = found.best.front();
    if (!is_certain(best)) return exceeds(best, kHopeless) ? nullptr : &best;
    const bool small = ops_ + ops_of(best) <= kMostOps;
    return best.fits() && small && !is_built(best) ? &best : nullptr;
  }

  void build(ParallelCandidate c) {
    ops_ += ops_of(c);
    const StepMemory step =
        built_step(core_, step_, slices_, choice_of(chain_, c));
    const auto kind = static_cast<size_t>(c.kind);
    if (step.step_us > 0) {
      const double longer = step.step_us / c.step_us;
      for (double* us : {&c.step_us, &c.compute_us, &c.sums_us, &c.copies_us}) {
        *us *= longer;
      }
      double& took = chain_.took_over_predicted[kind];
      double& least = chain_.least_over_predicted[kind];
      took *= longer;
      least = std::min(least, took);
    }
    const std::vector<StepMemory::Device>& held = step.devices;
    const bool scarce = exceeds(c, kSure);
    double ratio = 0;
    for (size_t d = 0; d < held.size(); ++d) {
      ratio = std::max(ratio, static_cast<double>(held[d].peak_bytes) /
                                  static_cast<double>(c.peak_bytes[d] + 1));
      c.peak_bytes[d] = held[d].peak_bytes;
      if (held[d].available_bytes == 0) continue;
      chain_.machine.devices[static_cast<size_t>(c.devices[d])].memory_limit =
          held[d].available_bytes;
    }
    if (scarce) chain_.held_over_predicted[kind] *= ratio;
    limits_.built.push_back(std::move(c));
  }

  // The fastest of those that were built, if any fits.
  void use_built(ParallelCandidate& best) {
    for (ParallelCandidate& c : limits_.built) find_too_small(chain_, c);
    const ParallelCandidate first = std::ranges::min(
        limits_.built, {},
        [](const auto& c) { return std::pair(!c.fits(), c.step_us); });
    if (first.fits() || !is_certain(best)) best = first;
  }

  static constexpr double kSure = 1.0 / 3, kHopeless = 2;
  static constexpr size_t kMostBuilt = 12, kMostOps = 30'000;

  const StrategyCore& core_;
  const StepToRead& step_;
  const int slices_;
  ModelChain chain_;
  SearchLimits limits_;
  size_t ops_ = 0;  // of the steps that were built
};

}  // namespace

ParallelPlan best_plan(const ModelChain& chain,
                       const AutoStrategyOptions& options,
                       const std::string& who) {
  const SearchResult found = search_plans(chain, limits_of(options, 0));
  if (!found.best.front().fits()) nothing_fits(chain, found, who);
  return plan_of_search(chain, found);
}

void choose_plan(StrategyCore& core, const StepToPlan& step) {
  const Undecided* open = core.undecided();
  if (open == nullptr) return;
  const auto start = std::chrono::steady_clock::now();
  StepToRead read;
  read.graph = trace_call(step.name, step.fn, step.args);
  for (const TensorSpec& a : step.args) read.shapes.push_back(a.shape);
  read.paths = open->paths();
  read.devices = core.replicas()[0];
  read.memory_bytes = open->options.memory_bytes_per_device;
  open->note_updates(read.graph);
  auto plan = std::make_shared<ParallelPlan>(
      BuiltSearch(core, read, step.slices).run());
  plan->search_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  core.become(*core_of_choice(plan->choice, open->site), plan);
}

AutoStrategy::AutoStrategy(std::vector<std::string> devices,
                           AutoStrategyOptions options, Site site)
    : Strategy(
          std::make_shared<StrategyCore>(std::move(devices), options, site)) {
  note_ignored_launcher("AutoStrategy", site);
}

const ParallelPlan& AutoStrategy::chosen(Site site) const {
  if (core()->choice() != nullptr) return *core()->choice();
  throw errors::FailedPrecondition(
      fmt::format("AutoStrategy.chosen(){}: nothing is chosen yet; expected "
                  "choose(model, batch) or a training step before",
                  where_text(nullptr, site)));
}

PlannedStrategy::PlannedStrategy(const ParallelPlan& plan, Site site)
    : Strategy(core_of_choice(plan.choice, site)) {
  note_ignored_launcher("PlannedStrategy", site);
}

}  // namespace berth::distribute
