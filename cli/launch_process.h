// One process of `berth launch`, and the guard that prevents orphans.

#ifndef BERTH_CLI_LAUNCH_PROCESS_H_
#define BERTH_CLI_LAUNCH_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/core_set.h"

namespace berth::cli {

struct Started {
  pid_t pid = -1;            // also the process group's
  int out = -1, error = -1;  // its output; read ends, not blocking
};

// Starts a program in a new process group, bound to `cores` (empty: as this
// process), with empty standard input. It is killed when this process dies.
// Throws errors::NotFound when it cannot be started; this is known on return.
// Single-threaded programs only.
Started start_process(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment,
                      const CoreSet& cores);

// Returns "exit status 3" or "signal 9 (SIGKILL)" for a status of waitpid().
std::string status_text(int status);

// Returns the exit status as a shell does: 128 and the signal, if any.
int shell_status(int status);

// A process that kills the registered groups when this process is gone, for
// whatever reason.
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
