// berth top: what running programs do now.

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes_text.h"
#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/place_output.h"
#include "profiler/live.h"

namespace berth::cli {

namespace {

struct TopArguments {
  std::vector<int> pids;  // none: all
  double interval = 1;
  bool json = false;
};

// What was read, or why nothing was.
struct LiveProgram {
  Json reading;
  std::string problem;
};

LiveProgram read_program(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {{}, "a path too long"};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit = {2, 0};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(s, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    close(s);
    if (why == EACCES || why == EPERM) return {{}, "no permission"};
    if (why == ENOENT) return {{}, "ended"};
    if (why != ECONNREFUSED) return {{}, std::strerror(why)};
    unlink(path.c_str());
    return {{}, "ended without removing its socket, which is removed now"};
  }
  std::string text, part(1 << 16, '\0');
  ssize_t n = 0;
  while ((n = recv(s, part.data(), part.size(), 0)) > 0) {
    text.append(part, 0, static_cast<size_t>(n));
  }
  close(s);
  if (n < 0) return {{}, "does not answer"};
  Json reading = Json::parse(text, nullptr, false);
  if (reading.is_discarded()) return {{}, "ended while it was read"};
  return {std::move(reading), ""};
}

using LivePrograms = std::map<int, LiveProgram>;

LivePrograms read_programs(const TopArguments& o, const std::string& folder) {
  LivePrograms all;
  for (const int pid : o.pids) all[pid].problem = "is not there";
  std::error_code error;
  std::filesystem::directory_iterator files(folder, error), end;
  if (error && error != std::errc::no_such_file_or_directory) {
    throw errors::PermissionDenied(
        fmt::format("top: \"{}\": {}", folder, error.message()));
  }
  for (; !error && files != end; files.increment(error)) {
    const std::string name = files->path().stem().string();
    int pid = 0;
    const auto read =
        std::from_chars(name.data(), name.data() + name.size(), pid);
    if (files->path().extension() != ".sock" || read.ec != std::errc() ||
        (!o.pids.empty() && all.count(pid) == 0)) {
      continue;
    }
    all[pid] = read_program(files->path().string());
  }
  return all;
}

// `now` with rates since `before`.
void add_rates(Json* now, const Json& before) {
  const double us =
      (*now)["clock_us"].get<double>() - before["clock_us"].get<double>();
  const double wait = (*now)["input_wait_us"].get<double>() -
                      before["input_wait_us"].get<double>();
  (*now)["input_wait_share"] = us > 0 ? wait / us : 0;
  for (Json& call : (*now)["calls"]) {
    int64_t count = call["count"].get<int64_t>();
    for (const Json& b : before["calls"]) {
      if (b["name"] == call["name"]) count -= b["count"].get<int64_t>();
    }
    call["per_second"] = us > 0 ? static_cast<double>(count) / us * 1e6 : 0;
  }
}

LivePrograms with_rates(LivePrograms now, const LivePrograms& before) {
  for (const auto& [pid, was] : before) {
    LiveProgram& is = now[pid];
    if (!was.problem.empty() && is.reading.is_null()) {
      is.problem = was.problem;
    } else if (!was.reading.is_null() && !is.reading.is_null()) {
      add_rates(&is.reading, was.reading);
    } else if (is.reading.is_null() && is.problem.empty()) {
      is.problem = "ended";
    }
  }
  return now;
}

std::string text_of(int pid, const LiveProgram& program) {
  if (program.reading.is_null()) {
    return fmt::format("PID {}: {}\n", pid, program.problem);
  }
  const Json& r = program.reading;
  std::string text =
      fmt::format("PID {}: {:.100}\n", pid, r["program"].get<std::string>());
  for (const Json& call : r["calls"]) {
    text += fmt::format("  {:<28} {:>9.1f} a second {:>12} in all\n",
                        call["name"].get<std::string>(),
                        call.value("per_second", 0.0),
                        call["count"].get<int64_t>());
  }
  text += fmt::format("  waiting for input {:.0f} % of the time\n",
                      100 * r.value("input_wait_share", 0.0));
  for (const Json& d : r["devices"]) {
    const auto limit = d["limit_bytes"].get<int64_t>();
    text +=
        fmt::format("  {:<10} queue {:<8} {:>10} in use, at most {}{}{}\n",
                    d["name"].get<std::string>(), d["queue"].get<std::string>(),
                    bytes_text(d["in_use_bytes"].get<int64_t>()),
                    bytes_text(d["peak_bytes"].get<int64_t>()),
                    limit > 0 ? " of " + bytes_text(limit) : "",
                    d["simulated"].get<bool>() ? " (simulated)" : "");
  }
  return text;
}

Json json_of(const std::string& folder, const LivePrograms& programs) {
  Json found = Json::array(), problems = Json::array();
  for (const auto& [pid, program] : programs) {
    if (!program.reading.is_null()) {
      found.push_back(program.reading);
    } else {
      problems.push_back({{"pid", pid}, {"problem", program.problem}});
    }
  }
  return {{"folder", folder}, {"programs", found}, {"problems", problems}};
}

void top(const TopArguments& o) {
  const std::string folder = profiler::live_folder(false);
  const bool redraws = isatty(STDOUT_FILENO) != 0 && !o.json;
  LivePrograms before = read_programs(o, folder);
  do {
    std::this_thread::sleep_for(std::chrono::duration<double>(o.interval));
    LivePrograms now = with_rates(read_programs(o, folder), before);
    if (o.json) return print(json_of(folder, now));
    std::string text = redraws ? "\x1b[H\x1b[J" : "";
    for (const auto& [pid, program] : now) text += text_of(pid, program);
    if (now.empty()) {
      text += fmt::format("no program runs with BERTH_TOP=1 (none in \"{}\")\n",
                          folder);
    }
    fmt::print("{}", text);
    std::fflush(stdout);
    before = std::move(now);
  } while (redraws);
}

}  // namespace

void add_top(CLI::App& program) {
  const auto o = std::make_shared<TopArguments>();
  CLI::App* command = program.add_subcommand(
      "top", "Shows what running programs do, those started with BERTH_TOP=1");
  command->add_option("pid", o->pids, "the processes; default: all");
  command->add_option("--interval", o->interval, "seconds between two readings")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  command->add_flag("--json", o->json, "one reading as JSON (docs/json.md)");
  command->callback([o] { top(*o); });
}

}  // namespace berth::cli
