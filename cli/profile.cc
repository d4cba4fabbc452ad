// berth profile: runs a program that records itself.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "berth/errors.h"
#include "cli/commands.h"

namespace berth::cli {

namespace {

struct ProfileArguments {
  std::string file = "berth.pftrace";
  std::vector<std::string> command;
};

[[noreturn]] void run_profiled(const ProfileArguments& o) {
  setenv("BERTH_PROFILE", o.file.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& w : o.command) {
    words.push_back(const_cast<char*>(w.c_str()));
  }
  words.push_back(nullptr);
  execvp(words[0], words.data());
  throw errors::NotFound(
      fmt::format("profile: \"{}\" cannot be started: {}; expected a program "
                  "and its arguments",
                  o.command[0], std::strerror(errno)));
}

}  // namespace

void add_profile(CLI::App& program) {
  const auto o = std::make_shared<ProfileArguments>();
  CLI::App* command = program.add_subcommand(
      "profile",
      "Writes what a program runs where and when: profile -o FILE -- PROGRAM "
      "ARGUMENTS");
  command->add_option("-o,--output", o->file,
                      "the trace: .pftrace for berth report and Perfetto "
                      "(berth.pftrace), .json for Chrome, .folded, "
                      ".xplane.pb; tasks of berth launch add their name");
  command->add_option("command", o->command, "the program and its arguments")
      ->required();
  command->callback([o] { run_profiled(*o); });
}

}  // namespace berth::cli
