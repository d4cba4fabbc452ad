// berth launch: a cluster on this machine.
//
// One thread and one loop wait for output, signals and deadlines. Tasks end in
// three steps: by themselves, asked by SIGTERM, killed.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/environment.h"
#include "base/free_ports.h"
#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/launch_output.h"
#include "cli/launch_plan.h"
#include "cli/launch_process.h"

extern "C" char** environ;

namespace berth::cli {

namespace {

using LaunchClock = std::chrono::steady_clock;
using LaunchTime = LaunchClock::time_point;
using LaunchJson = nlohmann::ordered_json;

LaunchClock::duration seconds(double s) {
  return std::chrono::duration_cast<LaunchClock::duration>(
      std::chrono::duration<double>(s));
}

// A task and its process.
struct Running {
  const LaunchTask* task = nullptr;
  Started process;
  bool alive = false, ended_by_us = false;
  int restarts = 0;
  LaunchTime begin = {};
  std::optional<LaunchTime> start_at;    // of the next attempt
  std::optional<LaunchTime> drain_till;  // pipes held open by others
  LinePrefixer out{""}, error{""};
  std::string name() const { return task->id.str(); }
  bool open() const { return process.out >= 0 || process.error >= 0; }
};

class Launcher {
 public:
  Launcher(const LaunchOptions& options, LaunchPlan plan)
      : o_(options),
        plan_(std::move(plan)),
        signals_(catch_signals()),
        out_(1, signals_, [this] { take_signals(); }),
        error_(2, signals_, [this] { take_signals(); }) {
    if (environment("BERTH_CLUSTER_SECRET").empty() &&
        environment("BERTH_CLUSTER_SECRET_FILE").empty()) {
      secret_ = new_secret();
    }
    for (const LaunchTask& t : plan_.tasks) {
      Running r;
      r.task = &t;
      all_.push_back(std::move(r));
    }
  }

  // Returns the exit status of the launcher.
  int run() {
    raise_limit_of_files(all_.size());
    begin_ = LaunchClock::now();
    if (!plan_.cores_note.empty() && o_.cores == "even") say(plan_.cores_note);
    try {
      for (Running& r : all_) start(r);
    } catch (...) {
      end_all(SIGKILL);
      throw;
    }
    while (busy()) turn();
    event({{"launch", "done"}, {"status", status_}, {"seconds", age(begin_)}});
    return status_;
  }

 private:
  // Allows for two pipes per task, and some more.
  static void raise_limit_of_files(size_t tasks) {
    rlimit limit{};
    const rlim_t wanted = 2 * tasks + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
      return;
    }
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
  }

  static int catch_signals() {
    ::signal(SIGPIPE, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    for (const int s :
         {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
      sigaddset(&set, s);
    }
    sigprocmask(SIG_BLOCK, &set, nullptr);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  }

  static double age(LaunchTime begin) {
    return std::chrono::duration<double>(LaunchClock::now() - begin).count();
  }

  void say(const std::string& text) {
    error_.write("berth launch: " + text + "\n");
  }
  void event(const LaunchJson& json) {
    if (o_.json) write_out(json.dump() + "\n");
  }
  void write_out(const std::string& text) {
    if (out_.write(text) || lost_) return;
    lost_ = true;  // the tasks' output has no reader any more
    if (status_ == 0) status_ = 1;
    ask_all("its output is not read any more");
  }

  // ---- start

  void start(Running& r) {
    const std::string prefix = fmt::format("[{}] ", r.name());
    r.out = LinePrefixer(prefix);
    r.error = LinePrefixer(prefix);
    r.start_at.reset();
    r.drain_till.reset();
    r.process = start_process(
        o_.command,
        launch_environment(o_, plan_, *r.task, secret_, r.restarts, environ),
        r.task->cores);
    guard_.watch(r.process.pid);
    r.alive = true;
    r.begin = LaunchClock::now();
    event({{"launch", "started"},
           {"task", r.name()},
           {"pid", r.process.pid},
           {"address", r.task->address},
           {"cores", r.task->cores.str()},
           {"restart", r.restarts}});
  }

  // ---- the loop

  bool busy() const {
    return std::any_of(all_.begin(), all_.end(), [](const Running& r) {
      return r.alive || r.start_at || r.open();
    });
  }

  void turn() {
    std::vector<pollfd> waits = {{signals_, POLLIN, 0}};
    for (const Running& r : all_) {
      for (const int fd : {r.process.out, r.process.error}) {
        if (fd >= 0) waits.push_back({fd, POLLIN, 0});
      }
    }
    poll(waits.data(), waits.size(), milliseconds_to_wait());
    take_signals();
    for (Running& r : all_) {
      read_from(r, &r.process.out, &r.out, &out_);
      read_from(r, &r.process.error, &r.error, &error_);
    }
    reap();
    keep_deadlines();
  }

  int milliseconds_to_wait() const {
    if (child_ended_) return 0;
    std::optional<LaunchTime> next = kill_at_;
    const auto sooner = [&next](const std::optional<LaunchTime>& t) {
      if (t && (!next || *t < *next)) next = t;
    };
    sooner(ask_at_);
    for (const Running& r : all_) sooner(r.open() ? r.drain_till : r.start_at);
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        *next - LaunchClock::now());
    return static_cast<int>(
        std::clamp<int64_t>(left.count(), 0, int64_t{3600} * 1000));
  }

  void read_from(Running& r, int* fd, LinePrefixer* lines, OutputWriter* to) {
    if (*fd < 0) return;
    char bytes[8192];
    ssize_t n = 0;
    // A few reads at a time, so that one task does not silence the others.
    for (int i = 0; i < 8 && (n = read(*fd, bytes, sizeof bytes)) > 0; ++i) {
      put(to, lines->add({bytes, static_cast<size_t>(n)}));
    }
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
      if (!r.drain_till || LaunchClock::now() < *r.drain_till) return;
    }
    put(to, lines->end());
    close(*fd);
    *fd = -1;
  }
  void put(OutputWriter* to, const std::string& text) {
    if (text.empty()) return;
    if (to == &out_) {
      write_out(text);
    } else {
      to->write(text);
    }
  }

  // ---- ends

  void reap() {
    child_ended_ = false;
    for (Running& r : all_) {
      siginfo_t info{};
      const auto id = static_cast<id_t>(r.process.pid);
      if (!r.alive ||
          waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == 0) {
        continue;
      }
      kill(-r.process.pid, SIGKILL);  // processes that it left running
      int status = 0;
      waitpid(r.process.pid, &status, 0);
      r.alive = false;
      guard_.forget(r.process.pid);
      r.drain_till = LaunchClock::now() + seconds(1);
      read_from(r, &r.process.out, &r.out, &out_);
      read_from(r, &r.process.error, &r.error, &error_);
      event({{"launch", "ended"},
             {"task", r.name()},
             {"pid", r.process.pid},
             {"status", shell_status(status)},
             {"signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0},
             {"seconds", age(r.begin)}});
      ended(r, status);
    }
  }

  void ended(Running& r, int status) {
    if (status == 0) {
      maybe_finish();
    } else if (r.ended_by_us || finishing_) {
      return;
    } else if (!stopping_ && r.restarts < o_.restarts) {
      restart(r, status);
    } else if (!stopping_ && can_do_without(r)) {
      say(why(r, status) + "; the other workers do its work");
    } else {
      failed(r, status);
    }
  }

  // Returns true for a worker under parameter servers while another one runs.
  bool can_do_without(const Running& r) const {
    if (plan_.spec.num_tasks("ps") == 0 || r.task->id.job != "worker") {
      return false;
    }
    return std::any_of(all_.begin(), all_.end(), [](const Running& other) {
      return other.task->id.job == "worker" && (other.alive || other.start_at);
    });
  }

  std::string why(const Running& r, int status) const {
    std::string text =
        fmt::format("{} (pid {}) ended with {} after {:.1f} s", r.name(),
                    r.process.pid, status_text(status), age(r.begin));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
      text += ", sent by somebody, or by the system for lack of memory";
    }
    const std::string& last =
        r.error.last_line().empty() ? r.out.last_line() : r.error.last_line();
    return last.empty() ? text : text + "; its last line: " + last;
  }

  void restart(Running& r, int status) {
    ++r.restarts;
    const double pause = std::min(5.0, 0.1 * (1 << std::min(r.restarts, 10)));
    say(fmt::format("{}; starting it again ({} of {})", why(r, status),
                    r.restarts, o_.restarts));
    r.start_at = LaunchClock::now() + seconds(pause);
  }

  void failed(Running& r, int status) {
    say(why(r, status));
    if (status_ == 0) status_ = shell_status(status);
    if (stopping_) return;
    stopping_ = true;
    for (Running& other : all_) other.start_at.reset();
    if (alive() == 0) return;
    say(fmt::format("the other tasks have {} s to end", o_.grace_seconds));
    ask_at_ = LaunchClock::now() + seconds(o_.grace_seconds);
  }

  size_t alive() const {
    return static_cast<size_t>(std::count_if(
        all_.begin(), all_.end(), [](const Running& r) { return r.alive; }));
  }

  // Once the work is done, ends tasks that would wait forever.
  void maybe_finish() {
    if (stopping_ || finishing_) return;
    for (const Running& r : all_) {
      if (!decides_the_end(plan_, r.task->id)) continue;
      if (r.alive || r.start_at) return;
    }
    finishing_ = true;
    for (Running& r : all_) r.start_at.reset();
    const bool waits = std::any_of(all_.begin(), all_.end(), [](auto& r) {
      return r.alive && r.task->id.job == "evaluator";
    });
    ask_at_ =
        LaunchClock::now() +
        seconds(waits ? o_.grace_seconds : std::min(o_.grace_seconds, 2.0));
  }

  void keep_deadlines() {
    const LaunchTime now = LaunchClock::now();
    if (ask_at_ && now >= *ask_at_) ask_all("");
    if (kill_at_ && now >= *kill_at_) {
      kill_at_.reset();
      if (alive() > 0 && !finishing_) {
        say(fmt::format("killing {} that did not end", names_alive()));
      }
      end_all(SIGKILL);
    }
    for (Running& r : all_) {
      if (!r.start_at || now < *r.start_at || r.open()) continue;
      try {
        start(r);
      } catch (const errors::Error& e) {
        r.start_at.reset();
        say(e.what());
        if (status_ == 0) status_ = 127;
        ask_all("");
      }
    }
  }

  std::string names_alive() const {
    std::string names;
    for (const Running& r : all_) {
      if (r.alive) names += (names.empty() ? "" : ", ") + r.name();
    }
    return names;
  }

  // Sends SIGTERM to all that are left, and SIGKILL after the grace period.
  void ask_all(const std::string& because) {
    ask_at_.reset();
    if (!finishing_) stopping_ = true;
    if (!because.empty()) say("ending all tasks: " + because);
    end_all(SIGTERM);
    kill_at_ = LaunchClock::now() + seconds(o_.grace_seconds);
  }

  void end_all(int signal) {
    for (Running& r : all_) {
      r.start_at.reset();
      if (!r.alive) continue;
      r.ended_by_us = true;
      kill(-r.process.pid, signal);
    }
  }

  // ---- signals of this process

  void take_signals() {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) ==
           static_cast<ssize_t>(sizeof info)) {
      take_signal(static_cast<int>(info.ssi_signo));
    }
  }

  void take_signal(int signal) {
    if (signal == SIGCHLD) {
      child_ended_ = true;  // perhaps while reap() writes of another's end
      return;
    }
    if (signal == SIGUSR1 || signal == SIGUSR2) {
      for (const Running& r : all_) {
        if (r.alive) kill(-r.process.pid, signal);
      }
      return;
    }
    const bool second = signalled_;
    signalled_ = stopping_ = true;
    if (second) {
      if (status_ == 0) status_ = 128 + signal;
      kill_at_ = LaunchClock::now();
      return;
    }
    // Each task handles the signal itself; its exit status counts.
    for (Running& r : all_) {
      r.start_at.reset();
      if (r.alive) kill(-r.process.pid, signal);
    }
    ask_at_.reset();
    kill_at_ = LaunchClock::now() + seconds(o_.grace_seconds);
  }

  const LaunchOptions& o_;
  const LaunchPlan plan_;
  const int signals_;
  OutputWriter out_, error_;
  Guard guard_;
  bool child_ended_ = false;  // since reap() began to look
  std::string secret_;
  std::vector<Running> all_;
  LaunchTime begin_ = {};
  int status_ = 0;
  bool stopping_ = false;   // a task failed or a signal arrived
  bool finishing_ = false;  // the work is done; the rest is being ended
  bool signalled_ = false, lost_ = false;
  std::optional<LaunchTime> ask_at_, kill_at_;
};

void check_launch(const LaunchOptions& o) {
  if (o.restarts < 0 || o.restarts > 1000000) {
    throw UsageError("launch: --restarts takes 0 to 1000000");
  }
  if (!(o.grace_seconds >= 0 && o.grace_seconds <= 86400)) {
    throw UsageError("launch: --grace takes seconds, 0 to 86400");
  }
  if (o.port_base < 0 || o.port_base + ports_needed(o) > 65536) {
    throw UsageError(
        "launch: --port-base takes 1 to 65535, with a port for "
        "every task above it");
  }
  if (o.command.empty() || o.command[0].empty()) {
    throw UsageError(
        "launch: no program; expected: berth launch --workers 2 "
        "-- PROGRAM ARGUMENTS");
  }
}

void launch(const LaunchOptions& o) {
  check_launch(o);
  const int count = ports_needed(o);
  std::vector<int> ports;
  if (o.port_base == 0) {
    ports = free_ports(count);
  } else {
    for (int i = 0; i < count; ++i) ports.push_back(o.port_base + i);
  }
  Launcher launcher(o, plan_launch(o, ports, CoreSet::allowed()));
  int status = 0;
  try {
    status = launcher.run();
  } catch (const errors::NotFound& e) {
    std::fprintf(stderr, "berth: %s\n", e.what());
    status = 127;
  }
  if (status != 0) throw CLI::RuntimeError(status);
}

// Becomes `python3 -m berth.ray`, which runs the tasks on a Ray cluster.
[[noreturn]] void launch_on_ray(const LaunchOptions& o) {
  const std::string chosen(environment("BERTH_PYTHON"));
  std::vector<std::string> words = {chosen.empty() ? "python3" : chosen,
                                    "-m",
                                    "berth.ray",
                                    "--address=" + o.ray,
                                    fmt::format("--workers={}", o.workers),
                                    fmt::format("--ps={}", o.ps),
                                    "--cpus=" + o.cpus,
                                    "--gpus=" + o.gpus,
                                    fmt::format("--grace={}", o.grace_seconds)};
  if (o.chief) words.emplace_back("--chief");
  if (o.evaluator) words.emplace_back("--evaluator");
  if (!o.devices.empty()) words.push_back("--devices=" + o.devices);
  words.emplace_back("--");
  words.insert(words.end(), o.command.begin(), o.command.end());
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  throw UsageError("launch: cannot start BERTH_PYTHON or python3: " + words[0]);
}

}  // namespace

void add_launch(CLI::App& program) {
  auto o = std::make_shared<LaunchOptions>();
  CLI::App* launcher = program.add_subcommand(
      "launch",
      "Starts a cluster on this machine: launch --workers 2 -- "
      "PROGRAM ARGUMENTS");
  launcher->add_option("--workers", o->workers, "tasks that train (1)");
  launcher->add_option("--ps", o->ps,
                       "parameter servers; they bring a chief, which "
                       "coordinates");
  launcher->add_flag("--chief", o->chief, "a chief beside the workers");
  launcher->add_flag("--evaluator", o->evaluator,
                     "a task that evaluates what the others save");
  launcher->add_option("--devices", o->devices,
                       "devices of each task, for example CPUx1");
  launcher->add_option("--cores", o->cores,
                       "even: each task gets cores of its own; all: none "
                       "does; or as 0-1/2-3 in order of tasks");
  launcher->add_option("--port-base", o->port_base,
                       "first port; else ports that are free");
  launcher->add_option("--restarts", o->restarts,
                       "how often a task that fails is started again (0)");
  launcher->add_option("--grace", o->grace_seconds,
                       "seconds that tasks have to end by themselves (10)");
  launcher->add_flag("--json", o->json,
                     "a line of JSON when a task starts and ends");
  CLI::Option* ray = launcher->add_option(
      "--ray", o->ray, "a Ray cluster, which runs the tasks: auto, HOST:PORT");
  for (const char* other : {"--cores", "--port-base", "--restarts", "--json"})
    ray->excludes(launcher->get_option(other));
  const char* each = "with --ray: how many of Ray's a worker gets";
  launcher->add_option("--cpus", o->cpus, each)->needs(ray);
  launcher->add_option("--gpus", o->gpus, each)->needs(ray);
  launcher->add_option("command", o->command, "the program and its arguments")
      ->required();
  launcher->callback([o, ray] {
    if (ray->count() > 0) launch_on_ray(*o);
    o->profile = environment("BERTH_PROFILE");
    unsetenv("BERTH_PROFILE");  // the tasks' alone
    launch(*o);
  });
}

}  // namespace berth::cli
