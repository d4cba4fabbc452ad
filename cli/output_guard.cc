// Linked into every program of cli/ and examples/: a program whose output could
// not be written says so and ends with 1, whatever it would have ended with.
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

// A standard stream that is closed would be the next file to be opened, and
// prints would end in it. What stands in its place fails instead; errors alone
// have nowhere to go.
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
