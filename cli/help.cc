// berth help, man and completion: describe the commands for people and shells.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/names.h"
#include "cli/reference.h"

namespace berth::cli {

namespace {

std::vector<std::string> names_of(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CommandText& c : commands_of(program)) {
    if (c.name != "berth") names.push_back(c.name);
  }
  return names;
}

[[noreturn]] void raise_unknown(const CLI::App& program,
                                const std::string& what,
                                const std::string& name) {
  throw UsageError(fmt::format("{}: there is no command '{}'{}", what, name,
                               nearest_names(name, names_of(program))));
}

void print_help(const CLI::App& program, const std::string& command) {
  const auto all = program.get_subcommands({});
  for (const CLI::App* c : all) {
    if (c->get_name() == command) {
      fmt::print("{}", c->help("berth"));
      return;
    }
  }
  if (!command.empty()) raise_unknown(program, "help", command);
  // program.help() would print the help of the command that was given.
  fmt::print("{}",
             program.get_formatter()->make_help(&program, program.get_name(),
                                                CLI::AppFormatMode::Normal));
}

void write_pages(const std::vector<CommandText>& all, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::create_directories(path, failed);
  for (const CommandText& c : all) {
    const std::string name =
        c.name == "berth" ? "berth.1" : "berth-" + c.name + ".1";
    std::ofstream out(fs::path(path) / name, std::ios::trunc);
    out << man_page(all, c);
    out.close();
    if (!out) {
      throw errors::PermissionDenied(fmt::format(
          "man: {} could not be written; expected a folder for pages",
          (fs::path(path) / name).string()));
    }
  }
}

void print_page(const CLI::App& program, const std::string& command) {
  const std::vector<CommandText> all = commands_of(program);
  for (const CommandText& c : all) {
    if (c.name != (command.empty() ? "berth" : command)) continue;
    fmt::print("{}", man_page(all, c));
    return;
  }
  raise_unknown(program, "man", command);
}

}  // namespace

void add_help(CLI::App& program) {
  auto command = std::make_shared<std::string>();
  CLI::App* help = program.add_subcommand("help", "Says what a command takes");
  help->add_option("command", *command, "the command; without: all of them");
  help->callback([&program, command] { print_help(program, *command); });
}

void add_man(CLI::App& program) {
  struct Arguments {
    std::string command, directory;
  };
  auto o = std::make_shared<Arguments>();
  CLI::App* man =
      program.add_subcommand("man", "Prints the page of a command for man");
  man->add_option("command", o->command, "the command; without: berth itself");
  man->add_option("--directory", o->directory,
                  "writes all pages into this folder instead");
  man->callback([&program, o] {
    if (o->directory.empty()) {
      print_page(program, o->command);
    } else {
      write_pages(commands_of(program), o->directory);
    }
  });
}

void add_completion(CLI::App& program) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand(
      "completion", "Prints a script that completes commands in a shell");
  command->add_option("shell", *shell, "whose")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&program, shell] {
    fmt::print("{}", completion(commands_of(program), *shell));
  });
}

}  // namespace berth::cli
