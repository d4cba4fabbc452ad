#include "keras/training/input_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/diagnostics.h"
#include "base/percent_text.h"
#include "base/where.h"
#include "data/stage_times.h"
#include "device/virtual_clock.h"

namespace berth::keras {

namespace {

constexpr double kMostOfIt = 0.5;      // of an epoch
constexpr double kLeastSeconds = 0.1;  // that are worth a word

}  // namespace

bool InputWatch::wait(const NextBatch& next, Tensors& element) {
  const auto since = std::chrono::steady_clock::now();
  const bool more = next(element);
  waited_s_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - since)
          .count();
  return more;
}

// A host that runs ahead of its devices waits while these work.
double InputWatch::idle_seconds(int64_t steps, double seconds) const {
  if (training_.op_by_op() || training_.servers()) return seconds;
  const placement::Report report = model_.placement();
  const bool simulated = std::any_of(
      report.devices.begin(), report.devices.end(),
      [](const auto& d) { return d.ops > 0 && on_virtual_clock(d.device); });
  if (simulated || report.measured_step_us < 0) return seconds;
  return std::max(0.0, seconds - static_cast<double>(steps) *
                                     report.measured_step_us * 1e-6);
}

double InputWatch::after_epoch(int epoch, int64_t steps, double seconds) {
  const double waited = std::exchange(waited_s_, 0);
  training_.input_verdict.clear();
  if (waited < kLeastSeconds || waited < kMostOfIt * seconds || steps == 0) {
    return waited;
  }
  const double share = std::min(waited, idle_seconds(steps, seconds)) / seconds;
  if (share < kMostOfIt) return waited;
  std::string text = fmt::format(
      "{} of the time of epoch {} was waiting for input, {:.1f} ms a step",
      percent_text(share), epoch + 1,
      waited * 1e3 / static_cast<double>(steps));
  if (batches_.dataset) {
    if (const auto slow = data::slow_stage(batches_.dataset->node())) {
      text += "; the slow stage of the pipeline is " + slow->str();
    }
  }
  training_.input_verdict = text;
  const std::string where = where_text(nullptr, site_);
  report_once(where, {"input-bound", debugging::Severity::kLint,
                      fmt::format("fit{}: {}", where, text), site_});
  return waited;
}

}  // namespace berth::keras
