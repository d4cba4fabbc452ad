#include "cli/launch_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace berth::cli {

namespace {
constexpr size_t kLongestLine = size_t{64} << 10;
constexpr size_t kLongestLast = 500;
constexpr size_t kOneWrite = 4096;  // fits any pipe that poll() calls writable
}  // namespace

void LinePrefixer::finish(std::string_view line, std::string* out) {
  *out += prefix_;
  *out += line;
  *out += '\n';
  const auto blank = [](char c) { return c == ' ' || c == '\r' || c == '\t'; };
  if (!std::all_of(line.begin(), line.end(), blank)) {
    last_ = line.substr(0, kLongestLast);
  }
}

std::string LinePrefixer::add(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t room = kLongestLine - partial_.size();
    const size_t take = std::min({end, text.size(), room});
    partial_ += text.substr(0, take);
    text.remove_prefix(take);
    const bool whole = !text.empty() && text[0] == '\n';
    if (whole) text.remove_prefix(1);
    if (!whole && partial_.size() < kLongestLine) break;
    finish(partial_, &out);
    partial_.clear();
  }
  return out;
}

std::string LinePrefixer::end() {
  std::string out;
  if (!partial_.empty()) finish(partial_, &out);
  partial_.clear();
  return out;
}

bool OutputWriter::write(std::string_view text) {
  while (!text.empty() && !lost_) {
    pollfd waits[2] = {{fd_, POLLOUT, 0}, {signal_fd_, POLLIN, 0}};
    if (poll(waits, 2, -1) < 0 && errno != EINTR) return false;
    if (waits[1].revents != 0) on_signal_();
    if (waits[0].revents == 0) continue;
    const ssize_t n =
        ::write(fd_, text.data(), std::min(text.size(), kOneWrite));
    if (n > 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR && errno != EAGAIN) {
      lost_ = true;
    }
  }
  return !lost_;
}

}  // namespace berth::cli
