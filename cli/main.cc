// berth: the command line.
//
//   berth calibrate [--json] [--quick] [--ops LIST]  measures this machine
//   berth cluster [--check] [--json]                 which task this is
//   berth completion bash|zsh|fish                   a script for a shell
//   berth devices [--why] [--json]                   the devices here
//   berth diff-run A B                               where two runs part
//   berth help [COMMAND]                             a command's options
//   berth launch --workers N -- PROGRAM ARGS         a cluster, here
//   berth man [COMMAND] [--directory DIR]            pages for man
//   berth ops [OP] [--device NAME] [--markdown | --json]  ops and kernels
//   berth place GRAPH [--devices LIST] ...           where ops would run
//   berth plan FILE [--cluster FILE] ...             the best placement
//   berth report TRACE [-o PAGE] ...                 where the time went
//   berth run FILE [--inputs FILE] ...               calls a saved function
//   berth top [PID] [--json]                         what programs do now
//   berth verify-plan FILE PLAN                      checks a plan file
//   berth worker [--devices LIST]                    devices for a cluster

#include <cstdio>
#include <exception>

#include "cli/colours.h"
#include "cli/commands.h"

namespace {

void complain(const char* what, const char* hint = "") {
  const std::string name = berth::cli::Colours(stderr).error("berth:");
  std::fprintf(stderr, "%s %s%s\n", name.c_str(), what, hint);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Berth: trains networks and shows where things run",
                   "berth");
  try {
    program.require_subcommand(1);
    program.set_version_flag("--version", "berth " BERTH_VERSION);
    berth::cli::add_calibrate(program);
    berth::cli::add_cluster(program);
    berth::cli::add_completion(program);
    berth::cli::add_devices(program);
    berth::cli::add_diff_run(program);
    berth::cli::add_help(program);
    berth::cli::add_launch(program);
    berth::cli::add_man(program);
    berth::cli::add_ops(program);
    berth::cli::add_place(program);
    berth::cli::add_plan(program);
    berth::cli::add_profile(program);
    berth::cli::add_report(program);
    berth::cli::add_run(program);
    berth::cli::add_top(program);
    berth::cli::add_verify_plan(program);
    berth::cli::add_worker(program);
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();  // the command's own
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return program.exit(e);  // --help
    complain(e.what(), "; see berth --help");
    return 2;
  } catch (const berth::cli::UsageError& e) {
    complain(e.what());
    return 2;
  } catch (const std::exception& e) {
    complain(e.what());
    return 1;
  }
}
