// Shell completion: commands, then their options, choices and files.

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/reference.h"

namespace berth::cli {

namespace {

std::string words(const CommandText& c) {
  std::string s;
  for (const OptionText& o : c.options) {
    if (!o.positional) s += (s.empty() ? "" : " ") + o.name;
    if (o.positional) {
      for (const std::string& w : o.choices) s += (s.empty() ? "" : " ") + w;
    }
  }
  return s;
}

// Quotes text for a shell.
std::string quoted(const std::string& text) {
  std::string s = "'";
  for (const char c : text) {
    if (c == '\'') {
      s += "'\\''";
    } else {
      s += c;
    }
  }
  return s + "'";
}

// Calls fn(command, option) for each option with fixed choices.
template <class Fn>
void for_each_choice(const std::vector<CommandText>& all, Fn fn) {
  for (const CommandText& c : all) {
    for (const OptionText& o : c.options) {
      if (!o.choices.empty() && !o.positional) fn(c, o);
    }
  }
}

std::string bash(const std::vector<CommandText>& all) {
  std::string names, cases, choices;
  for (const CommandText& c : all) {
    if (c.name == "berth") continue;
    names += c.name + " ";
    cases += fmt::format("    {}) words=\"{}\" ;;\n", c.name, words(c));
  }
  for_each_choice(all, [&](const CommandText& c, const OptionText& o) {
    choices += fmt::format("    \"{} {}\") words=\"{}\" ;;\n", c.name, o.name,
                           fmt::join(o.choices, " "));
  });
  return fmt::format(
      "# Completion of berth for bash.\n"
      "_berth() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" command= words=\n"
      "  ((COMP_CWORD > 1)) && command=\"${{COMP_WORDS[1]}}\"\n"
      "  case \"$command\" in\n"
      "    \"\") words=\"{}{}\" ;;\n"
      "    help | man) words=\"{}\" ;;\n"
      "{}  esac\n"
      "  case \"$command ${{COMP_WORDS[COMP_CWORD - 1]}}\" in\n"
      "{}    *) ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "}}\n"
      "complete -o default -F _berth berth\n",
      names, words(all[0]), names, cases, choices);
}

// Returns zsh's "name:what it is for".
std::string described(const std::string& name, const std::string& text) {
  std::string s;
  for (const char c : text) s += c == ':' ? "\\:" : std::string(1, c);
  return quoted(name + ":" + s);
}

std::string zsh(const std::vector<CommandText>& all) {
  std::string names, cases, choices;
  for (const CommandText& c : all) {
    if (c.name == "berth") continue;
    names += "    " + described(c.name, c.text) + "\n";
    std::string items;
    for (const OptionText& o : c.options) {
      if (!o.positional) items += " " + described(o.name, o.text);
      if (o.positional) {
        for (const std::string& w : o.choices) items += " " + quoted(w);
      }
    }
    cases += fmt::format("    {}) items=({}) ;;\n", c.name, items);
  }
  for_each_choice(all, [&](const CommandText& c, const OptionText& o) {
    choices += fmt::format("    \"{} {}\") compadd -- {}; return ;;\n", c.name,
                           o.name, fmt::join(o.choices, " "));
  });
  return fmt::format(
      "#compdef berth\n"
      "_berth() {{\n"
      "  local -a commands items\n"
      "  commands=(\n{}  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  case \"$words[2] $words[CURRENT-1]\" in\n"
      "{}    help\\ help|man\\ man) _describe command commands; return ;;\n"
      "  esac\n"
      "  case \"$words[2]\" in\n"
      "{}  esac\n"
      "  _describe -o option items || _files\n"
      "}}\n"
      "_berth \"$@\"\n",
      names, choices, cases);
}

std::string fish(const std::vector<CommandText>& all) {
  std::string s = "# Completion of berth for fish.\n";
  for (const CommandText& c : all) {
    const bool program = c.name == "berth";
    if (!program) {
      s += fmt::format(
          "complete -c berth -n __fish_use_subcommand -f -a {} -d {}\n", c.name,
          quoted(c.text));
    }
    const std::string when =
        program ? "__fish_use_subcommand"
                : quoted("__fish_seen_subcommand_from " + c.name);
    for (const OptionText& o : c.options) {
      const std::string choices =
          o.choices.empty()
              ? ""
              : " -a " + quoted(fmt::format("{}", fmt::join(o.choices, " ")));
      if (o.positional && choices.empty()) continue;
      s += fmt::format("complete -c berth -n {}{}{}{} -d {}\n", when,
                       o.positional ? "" : " -l " + o.name.substr(2),
                       o.value.empty() || o.positional ? "" : " -r", choices,
                       quoted(o.text));
    }
  }
  return s;
}

}  // namespace

std::string completion(const std::vector<CommandText>& all,
                       const std::string& shell) {
  if (shell == "bash") return bash(all);
  if (shell == "zsh") return zsh(all);
  if (shell == "fish") return fish(all);
  throw UsageError(fmt::format(
      "completion: no script for '{}'; expected bash, zsh or fish", shell));
}

}  // namespace berth::cli
