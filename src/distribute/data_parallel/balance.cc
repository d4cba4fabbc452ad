#include "distribute/data_parallel/balance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "berth/errors.h"

namespace berth::distribute {

namespace {

double time_of(const ReplicaSpeed& s, int slices) {
  return slices == 0 ? 0 : s.fixed_us + s.slice_us * slices;
}

}  // namespace

double longest_us(const std::vector<ReplicaSpeed>& speeds,
                  const std::vector<int>& shares) {
  double longest = 0;
  for (size_t r = 0; r < speeds.size(); ++r) {
    longest = std::max(longest, time_of(speeds[r], shares[r]));
  }
  return longest;
}

// Greedy: each slice goes to the replica whose time is then the shortest. That
// is optimal, since times grow with every slice.
std::vector<int> balanced_shares(const std::vector<ReplicaSpeed>& speeds,
                                 int slices) {
  std::vector<int> shares(speeds.size(), 0);
  int left = slices;
  if (static_cast<size_t>(slices) >= speeds.size()) {
    for (size_t r = 0; r < speeds.size(); ++r) {
      if (speeds[r].most_slices < 1) continue;
      shares[r] = 1;
      --left;
    }
  }
  for (; left > 0; --left) {
    int best = -1;
    double least = 0;
    for (size_t r = 0; r < speeds.size(); ++r) {
      if (shares[r] >= speeds[r].most_slices) continue;
      const double then = time_of(speeds[r], shares[r] + 1);
      if (best >= 0 && then >= least) continue;
      best = static_cast<int>(r);
      least = then;
    }
    if (best < 0) {
      throw errors::ResourceExhausted(fmt::format(
          "shares: the memory of {} replicas has room for {} of {} slices of "
          "the batch; expected room for all: use a smaller batch or more "
          "devices",
          speeds.size(), slices - left, slices));
    }
    ++shares[static_cast<size_t>(best)];
  }
  return shares;
}

std::string shares_text(const std::vector<int>& shares) {
  return fmt::format("{}", fmt::join(shares, ":"));
}

Balancer::Balancer(std::vector<int> shares, std::vector<int> most_slices,
                   const BalanceOptions& options)
    : options_(options),
      shares_(std::move(shares)),
      first_shares_(shares_),
      most_slices_(std::move(most_slices)),
      seen_(shares_.size()) {}

void Balancer::learn(size_t replica, double us) {
  Seen& s = seen_[replica];
  const int slices = shares_[replica];
  if (slices == 0) return;
  if (s.slices != slices && s.slices > 0) {
    s.other_slices = s.slices;
    s.other_us = s.us;
  }
  s.slices = slices;
  s.us = us;
}

// A series of moves that each gain nothing, but lose too little to be undone,
// may drift far from the best shares.
std::optional<std::vector<int>> Balancer::settle(double step_us) {
  const auto best =
      std::min_element(step_us_.begin(), step_us_.end(),
                       [](auto& a, auto& b) { return a.second < b.second; });
  if (best->second >= step_us * (1 - options_.worse)) return std::nullopt;
  shares_ = best->first;
  ++moves_;
  moved_at_ = samples_;
  return shares_;
}

std::optional<std::vector<int>> Balancer::sample(
    const std::vector<double>& compute_us, const std::vector<double>& fixed_us,
    double step_us) {
  ++samples_;
  if (first_step_us_ < 0) first_step_us_ = step_us;
  for (size_t r = 0; r < shares_.size(); ++r) {
    const double us = compute_us[r] - fixed_us[r];
    if (us > 0) learn(r, us);
  }
  step_us_[shares_] = step_us;
  const bool just_moved = !before_.empty();
  if (just_moved && step_us > before_step_us_ * (1 + options_.worse)) {
    shares_ = std::exchange(before_, {});
    ++moves_;
    moved_at_ = samples_;
    refused_ = true;
    return shares_;
  }
  before_.clear();
  last_step_us_ = step_us;
  if (just_moved && moves_ >= options_.most_moves) return settle(step_us);
  if ((refused_ || moves_ >= options_.most_moves) &&
      samples_ - moved_at_ < options_.patience) {
    return std::nullopt;
  }
  std::vector<ReplicaSpeed> speeds;
  int slices = 0;
  for (size_t r = 0; r < shares_.size(); ++r) {
    const Seen& s = seen_[r];
    if (s.slices == 0) return std::nullopt;  // unknown speed
    ReplicaSpeed speed{0, s.us / s.slices};
    if (s.other_slices > 0) {
      const double slope = (s.us - s.other_us) / (s.slices - s.other_slices);
      // Measurements are noisy: only plausible slopes are accepted.
      if (slope > 0 && slope < speed.slice_us) {
        speed = {s.us - slope * s.slices, slope};
      }
    }
    speed.fixed_us += fixed_us[r];
    if (!most_slices_.empty()) speed.most_slices = most_slices_[r];
    speeds.push_back(speed);
    slices += shares_[r];
  }
  const std::vector<int> next = balanced_shares(speeds, slices);
  const double gain = longest_us(speeds, shares_) - longest_us(speeds, next);
  if (gain <= options_.least_gain * step_us) return std::nullopt;
  before_ = shares_;
  before_step_us_ = step_us;
  shares_ = next;
  ++moves_;
  moved_at_ = samples_;
  refused_ = false;
  return shares_;
}

std::string Balancer::str(const char* clock) const {
  if (shares_ == first_shares_) return "";
  std::string text = fmt::format("shares {} -> {}", shares_text(first_shares_),
                                 shares_text(shares_));
  if (last_step_us_ > 0) {
    text += fmt::format(": step {:.0f} us -> {:.0f} us{}", first_step_us_,
                        last_step_us_, clock);
  }
  return text;
}

}  // namespace berth::distribute
