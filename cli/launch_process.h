// One process of `berth launch`, and the guard that leaves no orphans.

#ifndef BERTH_CLI_LAUNCH_PROCESS_H_
#define BERTH_CLI_LAUNCH_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/core_set.h"

namespace berth::cli {

struct Started {
  pid_t pid = -1;            // also of its process group
  int out = -1, error = -1;  // what it prints; read ends, not blocking
};

// Starts a program in a process group of its own, bound to `cores` (empty: as
// this process), with nothing on its standard input. It is killed when this
// process dies. Throws errors::NotFound when it cannot be started, which is
// known when this returns. Single-threaded programs only.
Started start_process(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment,
                      const CoreSet& cores);

// "exit status 3", "signal 9 (SIGKILL)", of what waitpid() gave.
std::string status_text(int status);

// As a shell has it: the exit status, or 128 and the signal.
int shell_status(int status);

// A process that kills the groups it was told of when this process is gone,
// however that came.
class Guard {
 public:
  Guard();
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  void watch(pid_t group) { tell(group); }
  void forget(pid_t group) { tell(-group); }

 private:
  void tell(pid_t group);
  int fd_ = -1;
  pid_t pid_ = -1;
};

}  // namespace berth::cli

#endif  // BERTH_CLI_LAUNCH_PROCESS_H_
