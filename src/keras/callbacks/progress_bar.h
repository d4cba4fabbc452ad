// Keras' progress bar, on a terminal; else plain lines, one per epoch.

#ifndef BERTH_KERAS_CALLBACKS_PROGRESS_BAR_H_
#define BERTH_KERAS_CALLBACKS_PROGRESS_BAR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace berth::keras {

using NamedValues = std::vector<std::pair<std::string, double>>;

// "loss: 0.1234 - accuracy: 0.9612"
std::string metrics_text(const NamedValues& values);

// "512/938 [=========>..........] - ETA: 3s 2ms/step - loss: 0.1234". `steps`
// below 0: not known. In a line of `columns` (0: of any length) the bar gets
// shorter, then the last values are left out.
std::string bar_text(int64_t step, int64_t steps, double seconds,
                     const NamedValues& values, size_t columns = 0);

class ProgressBar {
 public:
  // verbose as in FitOptions; draws on user_output().
  ProgressBar(int verbose, int epochs);

  void begin_epoch(int epoch, int64_t steps);
  // Draws again when the last time is a while ago; only then it asks for the
  // values.
  void step(int64_t done, const std::function<NamedValues()>& values);
  void end_epoch(int64_t done, const NamedValues& values);
  // Whether there are plain lines, which tables may follow.
  bool lines() const { return style_ == Style::kLines; }

 private:
  double seconds() const;
  void draw(std::string line, const char* end);

  enum class Style { kSilent, kLines, kBar };
  const Style style_;
  const int epochs_;
  int epoch_ = 0;
  int64_t steps_ = -1;
  size_t width_ = 0;  // of the line on the terminal
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_PROGRESS_BAR_H_
