// Linked into every program of cli/ and examples/. If a program's output could
// not be written, it says so and ends with 1, whatever its status.
//
// Nothing calls this file. It acts when the program starts and when it exits.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace {

// A closed standard stream would become the next file opened, and prints would
// go into it. The replacement makes them fail instead; only errors are
// discarded.
void fill_closed_streams() {
  const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd < 3; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", modes[fd]);
  }
}

void check_output() {
  std::cout.flush();
  errno = 0;
  const bool now = std::fflush(stdout) != 0;
  const int why = errno;
  if (!now && std::ferror(stdout) == 0 && std::cout.good()) return;
  std::fprintf(stderr, "%s: the output could not be written%s%s\n",
               program_invocation_short_name, why != 0 ? ": " : "",
               why != 0 ? std::strerror(why) : "");
  std::_Exit(1);
}

const bool g_guarded = [] {
  fill_closed_streams();
  return std::atexit(&check_output) == 0;
}();

}  // namespace
