// What every benchmark program shares: arguments, timing over blocks, and the
// one JSON line it prints. Header only; it acts when called, on the calling
// thread, and keeps no state.
#ifndef BERTH_BENCH_BENCH_COMMON_H_
#define BERTH_BENCH_BENCH_COMMON_H_

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench_build.h"

namespace berth_bench {

// ctest's and automake's exit status for "not run here".
inline constexpr int kSkipStatus = 77;

// The steady clock in seconds.
inline double now_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Command line of every benchmark: `--cores K --seconds T --model NAME`.
struct Args {
  int cores = 1;
  double seconds = 1.0;
  std::string model;
};

// Reads the command line; prints the usage and exits with 2 on anything else.
inline Args parse_args(int argc, char** argv) {
  Args args;
  bool ok = argc % 2 == 1;
  for (int i = 1; ok && i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--cores")) {
      args.cores = std::atoi(argv[i + 1]);
    } else if (!std::strcmp(argv[i], "--seconds")) {
      args.seconds = std::atof(argv[i + 1]);
    } else if (!std::strcmp(argv[i], "--model")) {
      args.model = argv[i + 1];
    } else {
      ok = false;
    }
  }
  ok = ok && args.cores >= 1 && args.cores <= 1024 && args.seconds > 0 &&
       args.seconds <= 3600;
  if (!ok) {
    std::fprintf(stderr, "usage: %s [--cores K] [--seconds T] [--model NAME]\n",
                 argv[0]);
    std::exit(2);
  }
  return args;
}

// Cores this process may run on, ascending.
inline std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

// Seconds per call, over blocks of calls; spread is the interquartile range
// divided by the median.
struct Timing {
  double best = 0;
  double median = 0;
  double spread = 0;
  int blocks = 0;
};

inline Timing summarize(std::vector<double> seconds_per_call) {
  if (seconds_per_call.empty()) return {};
  std::vector<double>& v = seconds_per_call;
  std::sort(v.begin(), v.end());
  const size_t n = v.size();
  const double median = v[n / 2];
  return {v[0], median, (v[n * 3 / 4] - v[n / 4]) / median,
          static_cast<int>(n)};
}

// Times `calls` calls of step() per block until `seconds` have passed, at
// least five blocks. The caller warms up.
template <class Step>
Timing measure_blocks(Step&& step, double seconds, int calls) {
  std::vector<double> blocks;
  const double begin = now_seconds();
  while (blocks.size() < 5 || now_seconds() - begin < seconds) {
    const double start = now_seconds();
    for (int i = 0; i < calls; ++i) step();
    blocks.push_back((now_seconds() - start) / calls);
  }
  return summarize(std::move(blocks));
}

// Warms up, chooses the calls per block so that a block lasts about
// `block_seconds`, then measures for `seconds`.
template <class Step>
Timing measure(Step&& step, double seconds, double block_seconds = 2e-3) {
  for (int i = 0; i < 3; ++i) step();
  double once = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = now_seconds();
    step();
    once = std::min(once, now_seconds() - start);
  }
  const double calls = std::clamp(block_seconds / once, 1.0, 1e6);
  return measure_blocks(step, seconds, static_cast<int>(calls));
}

// The CPU's model name as the kernel gives it, or "unknown".
inline std::string machine() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

// One line of output. add() takes any further field; timing() adds
// best_<unit>, median_<unit>, spread and unit; print() writes the line.
class Line {
 public:
  Line(const std::string& bench, int cores) {
    json_["bench"] = bench;
    json_["cores"] = cores;
  }
  template <class T>
  Line& add(const std::string& field, const T& value) {
    json_[field] = value;
    return *this;
  }
  // `per_second` units make a second: 1e6 for "us", 1e9 for "ns".
  Line& timing(const Timing& t, const std::string& unit, double per_second) {
    json_["best_" + unit] = rounded(t.best * per_second);
    json_["median_" + unit] = rounded(t.median * per_second);
    json_["spread"] = rounded(t.spread);
    json_["unit"] = unit;
    return *this;
  }
  void print() {
    json_["machine"] = machine();
    json_["commit"] = kCommit;
    const std::string text = json_.dump(
        -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

 private:
  static double rounded(double x) { return std::round(x * 1000) / 1000; }

  nlohmann::ordered_json json_;
};

// Prints that the benchmark did not run, with the reason; returns the exit
// status for main().
inline int skip(const std::string& bench, int cores,
                const std::string& reason) {
  Line(bench, cores).add("skipped", reason).print();
  return kSkipStatus;
}

// Pins the process to the first `cores` allowed cores, one worker each. Call
// before the first tensor; false when there are fewer.
inline bool use_cores(int cores) {
  const std::vector<int> allowed = allowed_cores();
  if (static_cast<int>(allowed.size()) < cores) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < cores; ++i)
    CPU_SET(allowed[static_cast<size_t>(i)], &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

// Returns measure() as seen by a process of its own, since devices are
// configured once per process; its result is plain bytes.
template <class Measure>
auto in_a_process(Measure measure) {
  decltype(measure()) result{};
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    result = measure();
    _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  close(ends[1]);
  const bool ok = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!ok) std::exit(1);
  return result;
}

}  // namespace berth_bench

#endif  // BERTH_BENCH_BENCH_COMMON_H_
