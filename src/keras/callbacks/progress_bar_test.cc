// What fit prints on a terminal, and what where there is none.

#include "keras/callbacks/progress_bar.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using fresh_process::check;

// Stdout is a terminal of so many columns while `fn` runs; returns what a user
// would have been sent.
std::string on_terminal(unsigned short columns,
                        const std::function<void()>& fn) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int of_user = -1, of_program = -1;
  check(openpty(&of_user, &of_program, nullptr, nullptr, &size) == 0,
        "a terminal");
  std::string text;
  std::thread reader([&] {
    char part[256];
    for (ssize_t n; (n = read(of_user, part, sizeof part)) > 0;) {
      text.append(part, static_cast<size_t>(n));
    }
  });
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  dup2(of_program, STDOUT_FILENO);
  close(of_program);
  fn();
  std::fflush(stdout);
  dup2(before, STDOUT_FILENO);  // the reader finds the end
  close(before);
  reader.join();
  close(of_user);
  return text;
}

void fit_under_a_strategy(int verbose) {
  const distribute::MirroredStrategy strategy;
  const auto scope = strategy.scope();
  Sequential model({InputLayer({4}), Dense(3), Dense(2)});
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
  const History h =
      model.fit(numbers({96, 4}), numbers({96, 2}),
                {.epochs = 2, .batch_size = 4, .verbose = verbose});
  check(h.split.has_value(), "measurements in the report");
}

// Lines as they stand on the screen: what a \r draws again is one.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines = {""};
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (c != '\r') {
      lines.back() += c;
    } else if (lines.back().size() > 0) {
      lines.back().clear();
    }
  }
  return lines;
}

void bar_stays_whole() {
  cpus(2);
  const std::string text = on_terminal(60, [] { fit_under_a_strategy(1); });
  // The last \r of a line comes with its \n from the terminal.
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    shown += text[i];
  }
  const auto lines = screen(shown);
  check(lines.size() == 5, "two epochs of two lines, and the end: " + shown);
  for (const size_t epoch : {0, 1}) {
    check(lines[2 * epoch] == "Epoch " + std::to_string(epoch + 1) + "/2",
          lines[2 * epoch]);
    const std::string& bar = lines[2 * epoch + 1];
    check(bar.find("24/24 [=") == 0, bar);
    check(bar.find("s/step") != bar.npos, "a rate: " + bar);
    check(bar.size() < 60, "within the terminal: " + bar);
  }
  check(lines[4].empty(), "nothing below");
}

void tables_follow_lines() {
  cpus(2);
  testing::internal::CaptureStdout();
  fit_under_a_strategy(1);
  const std::string text = testing::internal::GetCapturedStdout();
  check(text.find('\r') == text.npos, "plain lines");
  const size_t last = text.find("Epoch 2/2: 24 steps, ");
  const size_t measured = text.find("measured after 20 steps");
  const size_t placed = text.find("placement of \"");
  check(last != text.npos && measured != text.npos && placed != text.npos,
        text);
  check(last < measured && measured < placed, text);
}

TEST(FitOutput, KeepsTheBarWholeUnderAStrategy) {
  IN_A_FRESH_PROCESS(bar_stays_whole());
}

TEST(FitOutput, PutsMeasurementsAndPlacementBehindTheLines) {
  IN_A_FRESH_PROCESS(tables_follow_lines());
}

}  // namespace
}  // namespace berth::keras
