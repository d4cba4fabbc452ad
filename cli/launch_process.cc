#include "cli/launch_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/pretended_cores.h"
#include "berth/errors.h"

namespace berth::cli {

namespace {

struct LaunchPipe {
  int read = -1, write = -1;
};

LaunchPipe open_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    throw errors::ResourceExhausted(
        fmt::format("launch: no pipe: {}", std::strerror(errno)));
  }
  return {fds[0], fds[1]};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& s : texts)
    all.push_back(const_cast<char*>(s.c_str()));
  all.push_back(nullptr);
  return all;
}

// The child's work; only calls that are allowed after fork().
struct ChildWork {
  std::vector<char*> command, environment;
  const CoreSet& cores;
  int out = -1, error = -1, in = -1;
  pid_t parent = -1;

  void run() const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // the parent is gone
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    if (!cores.empty() && pretended_cores() == nullptr) bind_cores();
    dup2(in, 0);
    dup2(out, 1);
    dup2(error, 2);
    execvpe(command[0], command.data(), environment.data());
  }

 private:
  void bind_cores() const {
    std::array<cpu_set_t, 64> set;  // 65536 cores
    std::memset(set.data(), 0, sizeof set);
    for (const int core : cores.cores()) {
      CPU_SET_S(static_cast<size_t>(core), sizeof set, set.data());
    }
    sched_setaffinity(0, sizeof set, set.data());
  }
};

// Reads the error that the child writes when exec fails.
int exec_error(int fd) {
  int error = 0;
  ssize_t n = 0;
  do {
    n = read(fd, &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

Started start_process(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment,
                      const CoreSet& cores) {
  const LaunchPipe out = open_pipe(), error = open_pipe(), failed = open_pipe();
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const ChildWork work{pointers(command), pointers(environment), cores,
                       out.write,         error.write,           nothing,
                       getpid()};
  const pid_t pid = fork();
  if (pid == 0) {
    work.run();
    const int why = errno;
    static_cast<void>(!write(failed.write, &why, sizeof why));
    _exit(127);
  }
  const int fork_error = errno;
  for (const int fd : {out.write, error.write, failed.write, nothing}) {
    close(fd);
  }
  const int why = pid < 0 ? fork_error : exec_error(failed.read);
  close(failed.read);
  if (why != 0) {
    if (pid > 0) waitpid(pid, nullptr, 0);
    close(out.read);
    close(error.read);
    throw errors::NotFound(fmt::format("launch: cannot start {}: {}",
                                       command[0], std::strerror(why)));
  }
  setpgid(pid, pid);  // the child does it, too; either may be first
  for (const int fd : {out.read, error.read}) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  return {pid, out.read, error.read};
}

std::string status_text(int status) {
  if (WIFEXITED(status)) {
    return fmt::format("exit status {}", WEXITSTATUS(status));
  }
  const int signal = WTERMSIG(status);
  const char* name = sigabbrev_np(signal);
  return fmt::format("signal {} ({}{})", signal, name ? "SIG" : "",
                     name ? name : "unknown");
}

int shell_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

namespace {

// The guard process: waits until the other end of the pipe is closed.
[[noreturn]] void stand_guard(int fd) {
  setsid();
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    ::signal(s, SIG_IGN);
  }
  // Close all other files, so that no reader waits for the guard to close one.
  fd = dup2(fd, 0);
  close_range(1, ~0u, 0);
  std::set<pid_t> groups;
  pid_t told = 0;
  for (;;) {
    const ssize_t n = read(fd, &told, sizeof told);
    if (n < 0 && errno == EINTR) continue;
    if (n != static_cast<ssize_t>(sizeof told)) break;
    if (told > 0) groups.insert(told);
    if (told < 0) groups.erase(-told);
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

Guard::Guard() {
  const LaunchPipe pipe = open_pipe();
  pid_ = fork();
  if (pid_ == 0) {
    close(pipe.write);
    stand_guard(pipe.read);
  }
  close(pipe.read);
  fd_ = pipe.write;
}

Guard::~Guard() {
  close(fd_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void Guard::tell(pid_t group) {
  static_cast<void>(!write(fd_, &group, sizeof group));
}

}  // namespace berth::cli
