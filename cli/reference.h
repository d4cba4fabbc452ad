// The description of each command, taken from the program's options: one source
// for the pages of man and for shell completion.

#ifndef BERTH_CLI_REFERENCE_H_
#define BERTH_CLI_REFERENCE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace berth::cli {

struct OptionText {
  std::string name;                  // "--devices"; of a positional "graph"
  std::string value;                 // its argument: "TEXT"; "": none
  std::string text;                  // its purpose
  std::vector<std::string> choices;  // empty: any
  bool positional = false, required = false;
};

struct CommandText {
  std::string name;  // "place"; of the program "berth"
  std::string text;
  std::vector<OptionText> options;
};

// Returns the program first, then its commands by name.
std::vector<CommandText> commands_of(const CLI::App& program);

// Returns a page in the language of `man`.
std::string man_page(const std::vector<CommandText>& all,
                     const CommandText& command);

// Returns a script for "bash", "zsh" or "fish"; else throws UsageError.
std::string completion(const std::vector<CommandText>& all,
                       const std::string& shell);

}  // namespace berth::cli

#endif  // BERTH_CLI_REFERENCE_H_
