#include "cli/colours.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

namespace berth::cli {

namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool has_colours(std::FILE* to) {
  if (isatty(fileno(to)) != 1 || is_set("NO_COLOR")) return false;
  return is_set("TERM") && std::strcmp(std::getenv("TERM"), "dumb") != 0;
}

}  // namespace

Colours::Colours(std::FILE* to) : on_(has_colours(to)) {}

std::string Colours::painted(const char* code, const std::string& text) const {
  return on_ ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
}

std::string Colours::bold(const std::string& text) const {
  return painted("1", text);
}
std::string Colours::warning(const std::string& text) const {
  return painted("33", text);
}
std::string Colours::error(const std::string& text) const {
  return painted("1;31", text);
}
std::string Colours::number(size_t n, const std::string& text) const {
  constexpr const char* kCodes[] = {"32", "34", "35", "36", "33", "31"};
  return painted(kCodes[n % std::size(kCodes)], text);
}

}  // namespace berth::cli
