// berth plan: the planner's best placement of a graph, and its proof.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/place_output.h"
#include "cli/plan_input.h"
#include "cli/plan_output.h"
#include "cli/planner/plan_svg.h"
#include "cli/whole_number.h"
#include "planner/plan_file.h"
#include "planner/units.h"
#include "planner/what_if.h"

namespace berth::cli {

namespace {

struct PlanArguments {
  PlanInputOptions input;
  PlannerOptions planner;
  std::string effort = "1s", svg, out, compare;
  std::vector<std::string> what_if;
  bool json = false, parallel = false;
};

// Reads "1s", "500ms", "moves=100000".
void read_effort(const std::string& text, PlannerOptions& o) {
  constexpr std::string_view kMoves = "moves=";
  const auto fail = [&](const std::string& why) {
    throw UsageError(fmt::format(
        "--effort {}: {}; expected for example 1s, 500ms or moves=100000", text,
        why));
  };
  if (text.starts_with(kMoves)) {
    const char* end = text.data() + text.size();
    const auto [rest, error] =
        std::from_chars(text.data() + kMoves.size(), end, o.moves);
    if (error != std::errc() || rest != end || o.moves < 1 ||
        o.moves > 1'000'000'000'000) {
      fail("no number of moves");
    }
    return;
  }
  try {
    o.seconds = parse_quantity(text, Quantity::kTime) * 1e-6;
  } catch (const errors::InvalidArgument& e) {
    fail(std::string(e.what()).find("too large") == std::string::npos
             ? "no time"
             : "not within 24 hours");
  }
  if (!(o.seconds > 0) || o.seconds > 86400) fail("not within 24 hours");
}

void write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(),
                                                   file) == text.size();
  if ((file != nullptr && std::fclose(file) != 0) || !good) {
    throw UsageError(
        fmt::format("{}: cannot be written; expected a path that can", path));
  }
}

std::vector<WhatIf> ask(const PlanProblem& p, const PlanAnswer& a,
                        const PlanArguments& o) {
  std::vector<WhatIf> answers;
  if (a.status != PlanStatus::kPlanned) return answers;
  try {
    for (const std::string& q : o.what_if) {
      answers.push_back(what_if(p, a, q, o.planner));
    }
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(e.what());
  }
  return answers;
}

// The seconds asked for include reading; at least half of them are left.
PlannerOptions after_reading(PlannerOptions o, double read_seconds) {
  o.seconds -= std::min(read_seconds, o.seconds / 2);
  return o;
}

int plan(const PlanArguments& o, PlanInput& input) {
  const auto begin = std::chrono::steady_clock::now();
  read_plan_input(o.input, input);
  const PlanProblem& p = input.problem;
  const std::chrono::duration<double> read =
      std::chrono::steady_clock::now() - begin;
  const PlanAnswer answer =
      plan_placement(p, after_reading(o.planner, read.count()));
  Json document = plan_json(p, answer, o.planner);
  std::string text = plan_summary(p, answer);
  if (!o.out.empty()) write_file(o.out, lines_of(document));
  if (!o.svg.empty() && answer.status == PlanStatus::kPlanned) {
    write_file(o.svg, plan_svg(p, answer));
  }
  if (!o.compare.empty()) {
    const Compared c = compare(p, o.compare);
    document["compare"] = to_json(c, answer);
    text += to_text(c, p, answer);
  }
  for (const WhatIf& w : ask(p, answer, o)) {
    document["what_if"].push_back(to_json(w));
    text += to_text(w, p);
  }
  if (o.json) text = lines_of(document);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return answer.status == PlanStatus::kPlanned ? 0 : 1;
}

int run(PlanArguments& o) {
  PlanInput input;
  try {
    if (o.parallel) {
      const distribute::ParallelPlan best = parallel_plan(o.input);
      if (!o.out.empty()) write_file(o.out, best.json() + "\n");
      const std::string text = o.json ? best.json() + "\n" : best.str();
      std::fwrite(text.data(), 1, text.size(), stdout);
      return 0;
    }
    read_effort(o.effort, o.planner);
    return plan(o, input);
  } catch (const std::exception& e) {
    if (o.json) print_error(e);
    throw;
  }
}

}  // namespace

void add_plan(CLI::App& program) {
  auto o = std::make_shared<PlanArguments>();
  CLI::App* plan = program.add_subcommand(
      "plan", "Finds where and in which order a graph runs best, with a proof");
  o->input.add_to(*plan);
  plan->add_option("--effort", o->effort,
                   "for reading, plan and proof together: 1s, 500ms, "
                   "moves=100000")
      ->capture_default_str();
  plan->add_option("--seed", o->planner.seed, "of the search")
      ->check(whole_number<uint64_t>())
      ->capture_default_str();
  plan->add_option("--threads", o->planner.threads,
                   "0: as many as there are cores, at most 8")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  plan->add_option("--compare", o->compare,
                   "prices a split or a plan file beside it");
  plan->add_option("--what-if", o->what_if,
                   "a question about the plan: \"move OP to DEVICE\" (OP/ or "
                   "OP*: all whose names begin so), \"link A-B = 64GB/s 5us\" "
                   "(A->B: one way), \"memory DEVICE = 8GiB\", \"device DEVICE "
                   "2x faster\" (or slower), \"remove DEVICE\"; as often as "
                   "wanted")
      ->allow_extra_args(false);
  plan->add_option("-o,--out", o->out, "writes the plan file");
  plan->add_option("--svg", o->svg, "draws the plan");
  plan->add_flag("--json", o->json, "as JSON (docs/json.md)");
  CLI::Option* parallel = plan->add_flag(
      "--parallel", o->parallel,
      "how to divide a training step over all devices: replicas, sharding, "
      "divided layers, pipelines (docs/split-models.md)");
  for (const char* other :
       {"--objective", "--micro-batches", "--schedule", "--free-scopes",
        "--effort", "--seed", "--threads", "--compare", "--what-if", "--svg"}) {
    parallel->excludes(plan->get_option(other));
  }
  plan->callback([o] { throw CLI::RuntimeError(run(*o)); });
}

}  // namespace berth::cli
