// Processes that run rpc_member. Tests only.

#ifndef BERTH_RPC_TEST_PROCESSES_TESTING_H_
#define BERTH_RPC_TEST_PROCESSES_TESTING_H_

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "base/free_ports.h"
#include "rpc/socket.h"

namespace berth::rpc {

inline std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& w : words) all += (all.empty() ? "" : ",") + w;
  return all;
}

class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    int out[2], in[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(in, O_CLOEXEC) != 0) return;
    std::vector<char*> argv;
    arguments.insert(arguments.begin(), BERTH_RPC_MEMBER);
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], 1);
      ::dup2(out[1], 2);
      ::dup2(in[0], 0);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    ::close(in[0]);
    out_ = out[0];
    in_ = in[1];
  }
  Process(Process&& o) noexcept
      : pid_(std::exchange(o.pid_, -1)),
        out_(std::exchange(o.out_, -1)),
        in_(std::exchange(o.in_, -1)),
        text_(std::move(o.text_)) {}
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (out_ >= 0) ::close(out_);
    if (in_ >= 0) ::close(in_);
  }

  void signal(int number) const { ::kill(pid_, number); }
  // Ends an `input` command.
  void go() const { static_cast<void>(!::write(in_, "\n", 1)); }

  // The next line with this prefix, within 100 s; else the output, marked.
  std::string line(const std::string& begin) {
    const Deadline deadline = after(100);
    std::string seen;
    for (;;) {
      for (size_t end; (end = text_.find('\n')) != std::string::npos;) {
        const std::string one = text_.substr(0, end);
        text_.erase(0, end + 1);
        if (one.starts_with(begin)) return one;
        seen += one + " | ";
      }
      pollfd p{out_, POLLIN, 0};
      const int wait = static_cast<int>(seconds_until(deadline) * 1e3);
      char buffer[4096];
      if (wait <= 0 || ::poll(&p, 1, wait) <= 0) {
        return "NOT FOUND " + begin + " in: " + seen;
      }
      const ssize_t n = ::read(out_, buffer, sizeof(buffer));
      if (n <= 0) return "ENDED before " + begin + ": " + seen + text_;
      text_.append(buffer, static_cast<size_t>(n));
    }
  }
  // Waits for the process; returns its exit status, or -1 for a signal.
  int end() {
    char buffer[4096];
    pollfd p{out_, POLLIN, 0};
    while (::poll(&p, 1, 100'000) > 0 &&
           ::read(out_, buffer, sizeof(buffer)) > 0) {
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1, in_ = -1;
  std::string text_;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_TEST_PROCESSES_TESTING_H_
