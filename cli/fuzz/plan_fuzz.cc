// Fuzz target of the planner's files: the first byte selects the kind. Any
// bytes give a problem, a cluster, a plan, a question, or a named error. A
// small problem is planned, and the planner's claims are then verified.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "berth/errors.h"
#include "cli/planner/plan_svg.h"
#include "cli/planner/problem_file.h"
#include "cli/verify.h"
#include "planner/cluster.h"
#include "planner/plan_file.h"
#include "planner/problem_testing.h"
#include "planner/what_if.h"

namespace {

using namespace berth;

// Larger ones would leave no time for other inputs.
constexpr int32_t kMostOps = 24;

PlanProblem small_problem(PlanModel model) {
  testing::ProblemMaker m(model);
  const bool step = model == PlanModel::kStep;
  const int gpu = m.device_class("GPU"), cpu = m.device_class("CPU");
  m.device("GPU:0", gpu, 100);
  m.device("CPU:0", cpu, 0, CopyRule::kReceiving, true);
  const int a = m.op("a", {1, 4}, {}, 8, step ? -1 : 1);
  const int b = m.op("n/b", {2, 3}, {a}, 8, step ? -1 : 1);
  m.op("n/c", {2, 3}, {a, b}, 8, step ? -1 : 1);
  m.links(1, 8);
  return m.make();
}

// Plans, writes, reads back, verifies.
void follow(const PlanProblem& p) {
  if (p.num_ops() > kMostOps || p.num_devices() > 6) return;
  const PlannerOptions options = {.moves = 300, .threads = 1};
  const PlanAnswer answer = plan_placement(p, options);
  const std::string text = lines_of(plan_json(p, answer, options));
  const PlanFile file = read_plan(p, text, "plan");
  if (answer.status != PlanStatus::kPlanned) return;
  plan_svg(p, answer);
  for (const cli::Finding& found : cli::verify(p, file)) {
    if (!found.wrong.empty()) std::abort();
  }
}

void read_one(uint8_t which, const std::string& text) {
  const PlanProblem small = small_problem(static_cast<PlanModel>(which % 3));
  switch (which / 3 % 4) {
    case 0:
      return follow(read_problem(text, "file"));
    case 1:
      read_cluster(text, "cluster");
      return;
    case 2: {
      const PlanFile file = read_plan(small, text, "plan");
      cli::verify(small, file);
      return;
    }
    default: {
      const Changed c = change(small, {{0, 0, 1}, {0, 1, 2}}, text);
      check_problem(c.problem);
      evaluate(c.problem, c.plan);
      return;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    read_one(data[0], std::string(data + 1, data + size));
  } catch (const errors::InvalidArgument&) {
  }
  return 0;
}
