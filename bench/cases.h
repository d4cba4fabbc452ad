// Cases of a benchmark that are processes of their own, since devices are
// configured once. Header only; for the thread that calls.
#ifndef BERTH_BENCH_CASES_H_
#define BERTH_BENCH_CASES_H_

#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace berth_bench {

// Runs `program --model name`, prints its lines and returns the last, which is
// the case's; empty when it failed. `redirect`: what follows the command.
inline nlohmann::json run_child(const std::string& program,
                                const std::string& name, double seconds,
                                const std::string& redirect = "") {
  const std::string command = "'" + program + "' --model '" + name +
                              "' --seconds " + std::to_string(seconds) +
                              redirect;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 4096> part;
  while (std::fgets(part.data(), part.size(), pipe)) text += part.data();
  if (pclose(pipe) != 0) return {};
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  while (text.ends_with('\n')) text.pop_back();
  return nlohmann::json::parse(text.substr(text.rfind('\n') + 1), nullptr,
                               false);
}

// Nothing that other runs measured counts in this one, or in its children.
inline void forget_kept_costs() {
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("BERTH_CACHE_DIR");
}

}  // namespace berth_bench

#endif  // BERTH_BENCH_CASES_H_
