// The subcommands of the program `berth`, one file each.
//
// Each function adds its command to the program; the command's callback does
// the work and throws errors::* (exit code 1) or UsageError (exit code 2).

#ifndef BERTH_CLI_COMMANDS_H_
#define BERTH_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace berth::cli {

// Invalid arguments: a message and exit code 2.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& what) : std::runtime_error(what) {}
};

void add_calibrate(CLI::App& program);
void calibrate_cluster(bool quick, bool json);
// Where measurements went.
std::string kept_text(bool saved);
void add_cluster(CLI::App& program);
void add_completion(CLI::App& program);
void add_devices(CLI::App& program);
void add_diff_run(CLI::App& program);
void add_help(CLI::App& program);
void add_launch(CLI::App& program);
void add_man(CLI::App& program);
void add_ops(CLI::App& program);
void add_place(CLI::App& program);
void add_plan(CLI::App& program);
void add_profile(CLI::App& program);
void add_report(CLI::App& program);
// Makes the page of a memory snapshot; false, nothing done: it is none.
bool report_snapshot(const std::vector<std::string>& files,
                     const std::string& output);
void add_run(CLI::App& program);
void add_top(CLI::App& program);
void add_verify_plan(CLI::App& program);
void add_worker(CLI::App& program);

}  // namespace berth::cli

#endif  // BERTH_CLI_COMMANDS_H_
