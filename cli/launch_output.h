// The tasks' output, line by line, each line preceded by its task's name.

#ifndef BERTH_CLI_LAUNCH_OUTPUT_H_
#define BERTH_CLI_LAUNCH_OUTPUT_H_

#include <functional>
#include <string>
#include <string_view>

namespace berth::cli {

// Splits a stream into lines. Lines longer than 64 KiB come in pieces.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}
  // Returns the complete lines so far, each with the prefix and a line break.
  std::string add(std::string_view text);
  // Returns the rest without a line break as a line; "" when there is none.
  std::string end();
  // The last line that is not blank, without prefix, at most 500 characters.
  const std::string& last_line() const { return last_; }

 private:
  void finish(std::string_view line, std::string* out);
  std::string prefix_, partial_, last_;
};

// Writes all of a text, however slowly it is read; calls `on_signal` when
// `signal_fd` becomes readable meanwhile. Returns false without a reader.
class OutputWriter {
 public:
  OutputWriter(int fd, int signal_fd, std::function<void()> on_signal)
      : fd_(fd), signal_fd_(signal_fd), on_signal_(std::move(on_signal)) {}
  bool write(std::string_view text);

 private:
  int fd_, signal_fd_;
  std::function<void()> on_signal_;
  bool lost_ = false;
};

}  // namespace berth::cli

#endif  // BERTH_CLI_LAUNCH_OUTPUT_H_
