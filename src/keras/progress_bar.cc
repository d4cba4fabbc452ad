#include "keras/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace berth::keras {

namespace {

constexpr int kBarWidth = 30;
constexpr double kRedrawSeconds = 0.1;

std::string duration_text(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(seconds));
  if (s >= 3600) {
    return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  }
  return s >= 60 ? fmt::format("{}:{:02}", s / 60, s % 60)
                 : fmt::format("{}s", s);
}

std::string per_step_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.0f}s/step", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.0f}ms/step", seconds * 1e3);
  return fmt::format("{:.0f}us/step", seconds * 1e6);
}

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t)
      .count();
}

}  // namespace

std::string metrics_text(const NamedValues& values) {
  std::string s;
  for (const auto& [name, value] : values) {
    const bool small = value != 0 && std::abs(value) < 1e-3;
    s += fmt::format(
        "{}{}: {}", s.empty() ? "" : " - ", name,
        small ? fmt::format("{:.4e}", value) : fmt::format("{:.4f}", value));
  }
  return s;
}

std::string bar_text(int64_t step, int64_t steps, double seconds,
                     const NamedValues& values) {
  std::string s;
  if (steps > 0) {
    const std::string all = std::to_string(steps);
    s = fmt::format("{:>{}}/{} [", step, all.size(), all);
    const auto done =
        static_cast<int>(kBarWidth * std::min(step, steps) / steps);
    const bool whole = done == kBarWidth;
    s += std::string(static_cast<size_t>(done), '=');
    if (!whole) {
      if (done > 0) s.back() = '>';
      s += std::string(static_cast<size_t>(kBarWidth - done), '.');
    }
    s += ']';
  } else {
    s = fmt::format("{}/Unknown", step);
  }
  const double each = step > 0 ? seconds / static_cast<double>(step) : 0;
  if (steps > step) {
    s += " - ETA: " + duration_text(each * static_cast<double>(steps - step));
  } else {
    s += fmt::format(" - {} {}", duration_text(seconds), per_step_text(each));
  }
  const std::string m = metrics_text(values);
  return m.empty() ? s : s + " - " + m;
}

ProgressBar::ProgressBar(int verbose, int epochs)
    : style_(verbose == 0                            ? Style::kSilent
             : verbose == 1 && isatty(STDOUT_FILENO) ? Style::kBar
                                                     : Style::kLines),
      epochs_(epochs) {}

double ProgressBar::seconds() const { return seconds_since(start_); }

void ProgressBar::begin_epoch(int epoch, int64_t steps) {
  epoch_ = epoch;
  steps_ = steps;
  start_ = drawn_ = std::chrono::steady_clock::now();
  width_ = 0;
  if (style_ != Style::kBar) return;
  std::printf("Epoch %d/%d\n", epoch + 1, epochs_);
  std::fflush(stdout);
}

void ProgressBar::step(int64_t done,
                       const std::function<NamedValues()>& values) {
  if (style_ != Style::kBar || seconds_since(drawn_) < kRedrawSeconds) return;
  drawn_ = std::chrono::steady_clock::now();
  std::string line = bar_text(done, steps_, seconds(), values());
  const size_t width = line.size();
  if (width < width_) line.append(width_ - width, ' ');
  width_ = width;
  std::printf("\r%s", line.c_str());
  std::fflush(stdout);
}

void ProgressBar::note(const std::string& text) {
  if (style_ == Style::kSilent) return;
  // The bar is drawn again below.
  if (width_ > 0) std::printf("\r%s\r", std::string(width_, ' ').c_str());
  std::printf("%s", text.c_str());
  std::fflush(stdout);
}

void ProgressBar::end_epoch(int64_t done, const NamedValues& values) {
  if (style_ == Style::kSilent) return;
  if (style_ == Style::kLines) {
    std::printf("Epoch %d/%d: %lld steps, %.1f s, %s\n", epoch_ + 1, epochs_,
                static_cast<long long>(done), seconds(),
                metrics_text(values).c_str());
  } else {
    std::string line =
        bar_text(done, std::max<int64_t>(done, 1), seconds(), values);
    if (line.size() < width_) line.append(width_ - line.size(), ' ');
    std::printf("\r%s\n", line.c_str());
  }
  std::fflush(stdout);
}

}  // namespace berth::keras
