// whole_number: a check of flags. CLI11 turns a number that is too large for
// its type into the largest one; this refuses it.

#ifndef BERTH_CLI_WHOLE_NUMBER_H_
#define BERTH_CLI_WHOLE_NUMBER_H_

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <string>

namespace berth::cli {

// Refuses anything but a decimal number of type T.
template <class T>
CLI::Validator whole_number() {
  const auto check = [](const std::string& text) -> std::string {
    T value{};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && rest == end) return "";
    return "'" + text + "' is no whole number from " +
           std::to_string(std::numeric_limits<T>::min()) + " to " +
           std::to_string(std::numeric_limits<T>::max());
  };
  return CLI::Validator(check, "NUMBER");
}

}  // namespace berth::cli

#endif  // BERTH_CLI_WHOLE_NUMBER_H_
