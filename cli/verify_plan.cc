// berth verify-plan: whether a plan file is true.

#include <fmt/format.h>

#include <memory>

#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/plan_input.h"
#include "cli/verify.h"

namespace berth::cli {

namespace {

struct Options {
  PlanInputOptions input;
  std::string plan;
};

int run(const Options& o) {
  PlanInput input;
  read_plan_input(o.input, input);
  PlanFile file;
  try {
    file = read_plan(input.problem, read_file(o.plan), o.plan);
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
  auto o = std::make_shared<Options>();
  CLI::App* verify = program.add_subcommand(
      "verify-plan", "Checks value, limits and proof of a plan file");
  o->input.add_to(*verify);
  verify->add_option("plan", o->plan, "of berth plan --out")->required();
  verify->callback([o] { throw CLI::RuntimeError(run(*o)); });
}

}  // namespace berth::cli
