#include "distribute/automatic/choose_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/bytes_text.h"
#include "base/where.h"
#include "berth/errors.h"
#include "distribute/automatic/read_step.h"
#include "distribute/pipeline/schedule.h"
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
  const ModelChain chain = read_step(read);
  const SearchResult found =
      search_plans(chain, limits_of(open->options, step.slices));
  if (!found.best.front().fits()) {
    const ParallelPlan closest = plan_of_search(chain, found);
    throw errors::ResourceExhausted(fmt::format(
        "AutoStrategy{}: no plan of {} for batches of {} fits; the closest, "
        "{}, {}; expected a smaller batch, more devices, or more memory",
        where_text(nullptr, open->site), found.candidates, chain.batch,
        closest.choice.str(), does_not_fit(chain, found.best.front())));
  }
  auto plan = std::make_shared<ParallelPlan>(plan_of_search(chain, found));
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
