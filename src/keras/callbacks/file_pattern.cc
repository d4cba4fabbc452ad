// Fills values into names of files.

#include "keras/callbacks/file_pattern.h"

#include <fmt/format.h>

#include <functional>

#include "berth/errors.h"

namespace berth::keras {

namespace {

// Calls text(part) and field(name, spec) from left to right.
void visit_pattern(
    const std::string& pattern, const std::string& call,
    const std::function<void(const std::string&)>& text,
    const std::function<void(const std::string&, const std::string&)>& field) {
  for (size_t at = 0; at < pattern.size();) {
    const size_t brace = pattern.find_first_of("{}", at);
    text(pattern.substr(at, brace - at));
    if (brace == std::string::npos) return;
    const bool doubled =
        brace + 1 < pattern.size() && pattern[brace + 1] == pattern[brace];
    if (doubled) {
      text(pattern.substr(brace, 1));
      at = brace + 2;
      continue;
    }
    const size_t end = pattern.find('}', brace);
    if (pattern[brace] == '}' || end == std::string::npos) {
      throw errors::InvalidArgument(fmt::format(
          "{}: the braces of \"{}\" do not match; expected {{name}} or "
          "{{name:.2f}}, and {{{{ for a brace",
          call, pattern));
    }
    const std::string inside = pattern.substr(brace + 1, end - brace - 1);
    const size_t colon = inside.find(':');
    field(inside.substr(0, colon),
          colon == std::string::npos ? "" : inside.substr(colon));
    at = end + 1;
  }
}

}  // namespace

std::string fill_pattern(const std::string& pattern,
                         const std::map<std::string, int64_t>& numbers,
                         const std::map<std::string, double>& logs,
                         const std::string& call) {
  std::string out;
  visit_pattern(
      pattern, call, [&](const std::string& text) { out += text; },
      [&](const std::string& name, const std::string& spec) {
        const auto number = numbers.find(name);
        const auto log = logs.find(name);
        if (number == numbers.end() && log == logs.end()) {
          std::string have;
          for (const auto& [n, value] : numbers) have += " " + n;
          for (const auto& [n, value] : logs) have += " " + n;
          throw errors::InvalidArgument(fmt::format(
              "{}: there is no \"{}\" for the file name \"{}\"; expected one "
              "of{}",
              call, name, pattern, have));
        }
        const std::string format = "{" + spec + "}";
        try {
          out += number != numbers.end()
                     ? fmt::format(fmt::runtime(format), number->second)
                     : fmt::format(fmt::runtime(format), log->second);
        } catch (const fmt::format_error& e) {
          throw errors::InvalidArgument(fmt::format(
              "{}: \"{}\" in the file name \"{}\" is no format of \"{}\" ({}); "
              "expected one such as {{epoch:02d}} or {{val_loss:.2f}}",
              call, spec, pattern, name, e.what()));
        }
      });
  return out;
}

bool needs_logs(const std::string& pattern,
                const std::map<std::string, int64_t>& numbers) {
  bool needs = false;
  visit_pattern(
      pattern, "", [](const std::string&) {},
      [&](const std::string& name, const std::string&) {
        needs = needs || !numbers.contains(name);
      });
  return needs;
}

}  // namespace berth::keras
