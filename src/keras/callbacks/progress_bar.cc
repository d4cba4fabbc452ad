// Prints the bar and its lines.

#include "keras/callbacks/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/output.h"

namespace berth::keras {

namespace {

constexpr int kBarWidth = 30;
constexpr int kShortBar = 5;
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

// " [=====>....]", `width` characters of it inside.
std::string bar_of(int64_t step, int64_t steps, int width) {
  const auto done = static_cast<size_t>(width * std::min(step, steps) / steps);
  std::string s(done, '=');
  if (done > 0 && done < static_cast<size_t>(width)) s.back() = '>';
  s.resize(static_cast<size_t>(width), '.');
  return " [" + s + "]";
}

// The last column stays free: some terminals begin a line there.
size_t columns_of_line() {
  return std::max<size_t>(user_output().columns(), 2) - 1;
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
                     const NamedValues& values, size_t columns) {
  const double each = step > 0 ? seconds / static_cast<double>(step) : 0;
  const bool more = steps > step;
  const std::string times =
      (more ? " - ETA: " +
                  duration_text(each * static_cast<double>(steps - step))
            : " - " + duration_text(seconds)) +
      " " + per_step_text(each);
  std::string count = fmt::format("{}/Unknown", step);
  if (steps > 0) {
    const std::string all = std::to_string(steps);
    count = fmt::format("{:>{}}/{}", step, all.size(), all);
  }
  const auto line = [&](int bar, size_t num_values) {
    const std::string m =
        metrics_text({values.begin(), values.begin() + num_values});
    return count + (steps > 0 ? bar_of(step, steps, bar) : "") + times +
           (m.empty() ? "" : " - " + m);
  };
  size_t n = values.size();
  if (columns == 0) return line(kBarWidth, n);
  while (n > 0 && line(kShortBar, n).size() > columns) --n;
  const std::string s = line(kShortBar, n);
  if (s.size() > columns) return s.substr(0, columns);
  const size_t room = columns - s.size();
  return line(static_cast<int>(std::min<size_t>(kBarWidth, kShortBar + room)),
              n);
}

ProgressBar::ProgressBar(int verbose, int epochs)
    : style_(verbose == 0                                  ? Style::kSilent
             : verbose == 1 && user_output().columns() > 0 ? Style::kBar
                                                           : Style::kLines),
      epochs_(epochs) {}

double ProgressBar::seconds() const { return seconds_since(start_); }

void ProgressBar::begin_epoch(int epoch, int64_t steps) {
  epoch_ = epoch;
  steps_ = steps;
  start_ = drawn_ = std::chrono::steady_clock::now();
  width_ = 0;
  if (style_ != Style::kBar) return;
  user_output().write(fmt::format("Epoch {}/{}\n", epoch + 1, epochs_));
}

void ProgressBar::step(int64_t done,
                       const std::function<NamedValues()>& values) {
  if (style_ != Style::kBar || seconds_since(drawn_) < kRedrawSeconds) return;
  drawn_ = std::chrono::steady_clock::now();
  draw(bar_text(done, steps_, seconds(), values(), columns_of_line()), "");
}

void ProgressBar::draw(std::string line, const char* end) {
  const size_t width = line.size();
  if (width < width_) line.append(width_ - width, ' ');
  width_ = width;
  user_output().write(fmt::format("\r{}{}", line, end));
}

void ProgressBar::end_epoch(int64_t done, const NamedValues& values) {
  if (style_ == Style::kSilent) return;
  if (style_ == Style::kBar) {
    draw(bar_text(done, std::max<int64_t>(done, 1), seconds(), values,
                  columns_of_line()),
         "\n");
    return;
  }
  user_output().write(fmt::format("Epoch {}/{}: {} steps, {:.1f} s, {}\n",
                                  epoch_ + 1, epochs_, done, seconds(),
                                  metrics_text(values)));
}

}  // namespace berth::keras
