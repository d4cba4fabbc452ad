#include "cli/reference.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::cli {

namespace {

// Returns the words in the braces of "TEXT:{error,warn,silent}".
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> list;
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open == type.npos || close == type.npos || close < open) return list;
  for (size_t at = open + 1; at < close;) {
    const size_t end = std::min(type.find(',', at), close);
    list.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

OptionText text_of(const CLI::Option& o) {
  OptionText text;
  text.positional = o.get_positional();
  text.name =
      text.positional ? o.get_name(true, false) : "--" + o.get_lnames().at(0);
  text.text = o.get_description();
  text.required = o.get_required();
  if (o.get_expected_max() > 0 && o.get_items_expected_max() > 0) {
    const std::string type = o.get_type_name();
    text.choices = choices_of(type);
    text.value = type.substr(0, type.find_first_of(":{"));
  }
  return text;
}

CommandText text_of(const CLI::App& app) {
  CommandText text{app.get_name(), app.get_description(), {}};
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_positional() || !o->get_lnames().empty()) {
      text.options.push_back(text_of(*o));
    }
  }
  return text;
}

// Escapes text for man.
std::string roff(const std::string& text) {
  std::string s;
  for (const char c : text) {
    if (c == '\\') {
      s += "\\e";
    } else if (c == '-') {
      s += "\\-";
    } else if ((c == '.' || c == '\'') && (s.empty() || s.back() == '\n')) {
      s += std::string("\\&") + c;
    } else {
      s += c;
    }
  }
  return s;
}

std::string upper(std::string s) {
  for (char& c : s) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return s;
}

std::string joined(const std::vector<std::string>& list, const char* between) {
  return fmt::format("{}", fmt::join(list, between));
}

// Returns a command's usage line, without its name.
std::string usage(const CommandText& c) {
  std::string s = c.name == "berth" ? " COMMAND" : "";
  bool options = false;
  for (const OptionText& o : c.options) options |= !o.positional;
  if (options) s += " [OPTIONS]";
  for (const OptionText& o : c.options) {
    if (!o.positional) continue;
    s += o.required ? " " + o.name : " [" + o.name + "]";
  }
  return s;
}

std::string man_options(const CommandText& c) {
  std::string s;
  for (const OptionText& o : c.options) {
    std::string text = o.text;
    if (!o.choices.empty()) text += ": " + joined(o.choices, ", ");
    s += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(o.name),
                     o.positional || o.value.empty()
                         ? ""
                         : fmt::format(" \\fI{}\\fR", roff(o.value)),
                     roff(text));
  }
  return s.empty() ? s : ".SH OPTIONS\n" + s;
}

}  // namespace

std::vector<CommandText> commands_of(const CLI::App& program) {
  std::vector<CommandText> all = {text_of(program)};
  for (const CLI::App* c : program.get_subcommands({})) {
    all.push_back(text_of(*c));
  }
  std::sort(all.begin() + 1, all.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

std::string man_page(const std::vector<CommandText>& all,
                     const CommandText& command) {
  const bool program = command.name == "berth";
  const std::string name = program ? "berth" : "berth-" + command.name;
  std::string s = fmt::format(
      ".TH {} 1 \"\" \"berth {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
      ".B berth{}\n{}\n.SH DESCRIPTION\n{}.\n",
      upper(name), BERTH_VERSION, roff(name), roff(command.text),
      program ? "" : roff(" " + command.name), roff(usage(command).substr(1)),
      roff(command.text));
  s += man_options(command);
  if (program) {
    s += ".SH COMMANDS\n";
    for (const CommandText& c : all) {
      if (c.name == "berth") continue;
      s += fmt::format(".TP\n\\fBberth {}\\fR\n{}\n", roff(c.name),
                       roff(c.text));
    }
  }
  return s +
         ".SH EXIT STATUS\n0: done. 1: it could not be done. 2: the "
         "arguments or the input are wrong.\n";
}

}  // namespace berth::cli
