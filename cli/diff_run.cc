// berth diff-run: the first op whose bits differ between two recorded runs.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/place_output.h"
#include "profiler/diff_runs.h"

namespace berth::cli {

namespace {

struct DiffRunArguments {
  std::string first, second;
  bool json = false;
};

Json side_json(const profiler::RunDifference::Side& s) {
  if (!s.is_there) return nullptr;
  Json j = {{"checksum", fmt::format("{:016x}", s.checksum)}};
  if (s.least <= s.most) {
    j["least"] = s.least;
    j["most"] = s.most;
  }
  return j;
}

void diff_run(const DiffRunArguments& o) {
  const profiler::RunDifference d = profiler::first_difference(
      profiler::Timeline::read(o.first), profiler::Timeline::read(o.second));
  if (o.json) {
    Json j = {{"equal", !d.found}, {"compared", d.compared}};
    if (d.found) {
      j["op"] = d.op;
      j["line"] = d.line;
      j["step"] = d.step;
      j["first"] = side_json(d.a);
      j["second"] = side_json(d.b);
    }
    print(j);
  } else {
    fmt::print("{}", d.str());
  }
  if (d.found) throw CLI::RuntimeError(1);
}

}  // namespace

void add_diff_run(CLI::App& program) {
  const auto o = std::make_shared<DiffRunArguments>();
  CLI::App* command = program.add_subcommand(
      "diff-run",
      "Names the first op whose bits differ between two runs; exit code 1 if "
      "one does");
  command
      ->add_option("first", o->first,
                   "a trace (.pftrace) of BERTH_PROFILE with "
                   "BERTH_PROFILE_CHECKSUMS=1")
      ->required();
  command->add_option("second", o->second, "that of another run")->required();
  command->add_flag("--json", o->json, "as JSON (docs/json.md)");
  command->callback([o] { diff_run(*o); });
}

}  // namespace berth::cli
