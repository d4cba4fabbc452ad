// berth verify-plan: checks whether a plan file is true.

#include <fmt/format.h>

#include <memory>

#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/plan_input.h"
#include "cli/verify.h"
#include "planner/json_field.h"

namespace berth::cli {

namespace {

struct VerifyArguments {
  PlanInputOptions input;
  std::string plan;
};

// Takes the objective of a plan file, if it names one, and what belongs to it.
void read_objective(const std::string& text, const std::string& name,
                    PlanInputOptions& o) {
  const nlohmann::json document = parse_json(text, name);
  const Field all(document, name);
  if (const auto objective = all.find("objective")) {
    o.objective = objective->text();
  }
  const auto pipeline = all.find("pipeline");
  if (!pipeline || o.objective != "pipeline") return;
  o.pipeline.micro_batches = (*pipeline)["micro_batches"].integer(1, 65536);
}

int run(VerifyArguments o) {
  PlanInput input;
  PlanFile file;
  const std::string text = read_file(o.plan);
  try {
    if (o.input.objective.empty()) read_objective(text, o.plan, o.input);
    read_plan_input(o.input, input);
    file = read_plan(input.problem, text, o.plan);
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(e.what());
  }
  bool good = true;
  for (const Finding& f : verify(input.problem, file)) {
    fmt::print("{}: {}\n", f.what,
               f.wrong.empty() ? "verified" : "WRONG, " + f.wrong);
    good = good && f.wrong.empty();
  }
  return good ? 0 : 1;
}

}  // namespace

void add_verify_plan(CLI::App& program) {
  auto o = std::make_shared<VerifyArguments>();
  CLI::App* verify = program.add_subcommand(
      "verify-plan", "Checks value, limits and proof of a plan file");
  o->input.add_to(*verify);
  verify->add_option("plan", o->plan, "of berth plan --out")->required();
  verify->callback([o] { throw CLI::RuntimeError(run(*o)); });
}

}  // namespace berth::cli
