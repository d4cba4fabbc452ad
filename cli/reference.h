// What there is to say about each command, read off the program's options: one
// source for the pages of man and for shell completion.

#ifndef BERTH_CLI_REFERENCE_H_
#define BERTH_CLI_REFERENCE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace berth::cli {

struct OptionText {
  std::string name;                  // "--devices"; of a positional "graph"
  std::string value;                 // what stands behind it: "TEXT"; "": none
  std::string text;                  // what it is for
  std::vector<std::string> choices;  // empty: anything
  bool positional = false, required = false;
};

struct CommandText {
  std::string name;  // "place"; of the program "berth"
  std::string text;
  std::vector<OptionText> options;
};

// The program first, then its commands by name.
std::vector<CommandText> commands_of(const CLI::App& program);

// A page for `man`, in its language.
std::string man_page(const std::vector<CommandText>& all,
                     const CommandText& command);

// A script for "bash", "zsh" or "fish". Throws UsageError for another shell.
std::string completion(const std::vector<CommandText>& all,
                       const std::string& shell);

}  // namespace berth::cli

#endif  // BERTH_CLI_REFERENCE_H_
