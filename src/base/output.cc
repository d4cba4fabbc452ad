#include "base/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "base/immortal.h"

namespace berth {

namespace {

class Stdout final : public Output {
 public:
  void write(std::string_view text) override {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  size_t columns() override {
    if (!isatty(STDOUT_FILENO)) return 0;
    winsize size{};
    const bool known =
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : 80;
  }
};

std::atomic<Output*> g_output{nullptr};

}  // namespace

Output& user_output() {
  Output* set = g_output.load(std::memory_order_acquire);
  if (set != nullptr) return *set;
  static auto& standard = immortal<Stdout>();
  return standard;
}

void set_output(std::unique_ptr<Output> mine) {
  // The one before stays: another thread may be printing on it.
  g_output.store(mine.release(), std::memory_order_release);
}

}  // namespace berth
