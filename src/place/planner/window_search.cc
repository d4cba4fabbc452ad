#include "place/planner/window_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "place/planner/anneal_steps.h"
#include "place/planner/window_steps.h"

namespace berth {

namespace {

// A window has 256 ops, 400 in shorter plans, and 1000 moves in the first
// rounds. A budget in seconds reserves kTrials decodes of the whole plan to put
// windows together.
constexpr double kTrials = 25;
constexpr int32_t kWindow = 256, kLongWindow = 400, kLongBelow = 4000;
constexpr int64_t kMovesInWindow = 1000, kMostTimesMoves = 8;
constexpr int kRoundsPerTime = 4;

// An improvement below this share of a step is rounding.
constexpr double kSearchRounding = 1e-12;

struct Part {
  StepWindow window;
  PlacePlan better;
};

class Rounds {
 public:
  Rounds(const StepUnits& units, const Budget& budget, uint64_t seed,
         PlacePlan& plan, std::vector<int64_t>& moves)
      : units_(units),
        budget_(budget),
        plan_(plan),
        moves_(moves),
        kept_(units.problem.graph, units.problem.costs) {
    for (size_t s = 0; s < moves.size(); ++s) {
      // Different numbers from those that made the starts.
      random_.emplace_back(~seed, s);
    }
  }

  double run() {
    const double left = budget_.seconds_left();
    step_us_ = kept_.decode(plan_);
    if (!budget_.counts_moves() && left > 0) {
      const double one = (left - budget_.seconds_left()) / left;
      until_ = 1 - std::min(kTrials * one, 0.3);
    }
    for (int round = 0; !all_spent(); ++round) {
      const int64_t before = total_moves();
      one_round(round);
      if (total_moves() == before) break;
    }
    return step_us_;
  }

 private:
  bool spent(size_t stream) const {
    return budget_.spent(moves_[stream]) >= until_ ||
           moves_[stream] >= budget_.moves_per_stream();
  }
  bool all_spent() const {
    if (budget_.enough(step_us_)) return true;
    for (size_t s = 0; s < moves_.size(); ++s) {
      if (!spent(s)) return false;
    }
    return true;
  }
  int64_t total_moves() const {
    return std::accumulate(moves_.begin(), moves_.end(), int64_t{0});
  }

  // Windows of every second round lie across the borders of the others.
  void one_round(int round) {
    const int32_t n = units_.num_ops;
    const int32_t size = n < kLongBelow ? kLongWindow : kWindow;
    const int32_t first = round % 2 == 0 ? 0 : -size / 2;
    const int32_t count = (n - first + size - 1) / size;
    const int64_t most =
        kMovesInWindow *
        std::min<int64_t>(1 + round / kRoundsPerTime, kMostTimesMoves);
    const std::vector<double> latest = latest_starts(units_, kept_, plan_);
    std::vector<std::optional<Part>> parts(count);
    const int32_t streams = moves_.size();
    run_streams(streams, budget_.threads(), [&](int s) {
      // The first one differs per round, as time may end in any round.
      for (int32_t k = (s + round) % streams; k < count; k += streams) {
        if (spent(static_cast<size_t>(s))) return;
        const int32_t begin = first + k * size;
        parts[k] = better(static_cast<size_t>(s), latest, std::max(begin, 0),
                          std::min(begin + size, n), most);
      }
    });
    std::erase_if(parts, [](const auto& part) { return !part; });
    try_parts(parts, 0, parts.size());
  }

  std::optional<Part> better(size_t stream, const std::vector<double>& latest,
                             int32_t begin, int32_t end, int64_t most) {
    Part part = {cut_window(units_, kept_, plan_, latest, begin, end), {}};
    const StepWindow& w = part.window;
    const StepUnits units(w.problem);
    StepAnnealer annealer(units, random_[stream]);
    annealer.free_only(w.first, w.last());
    const double us = annealer.start(w.plan);
    // The heat is a share of the whole step; only the window's part counts.
    const double hot =
        3 / std::pow(end - begin + 3, 1.5) * std::min(w.span_us / us, 1.0);
    const int64_t before = moves_[stream];
    most = std::min(most, budget_.moves_per_stream() - before);
    annealer.run({.hot = hot, .cold = hot / 200}, most, [&](int64_t moves) {
      if (budget_.spent(before + moves) >= until_) return 1.0;
      return static_cast<double>(moves) / static_cast<double>(most);
    });
    moves_[stream] = before + annealer.moves();
    if (!(annealer.best_us() < us * (1 - kSearchRounding))) return std::nullopt;
    part.better = annealer.best();
    return part;
  }

  // All at once; if that is worse, as parts may not see each other's changes,
  // one half and then the other.
  void try_parts(const std::vector<std::optional<Part>>& parts, size_t begin,
                 size_t end) {
    if (begin == end || budget_.seconds_left() <= 0) return;
    trial_ = plan_;
    for (size_t k = begin; k < end; ++k) {
      put_back(units_, parts[k]->window, parts[k]->better, trial_);
    }
    const double us =
        kept_.try_from(trial_, parts[begin]->window.begin, step_us_);
    if (us <= step_us_) {
      kept_.accept();
      step_us_ = us;
      std::swap(plan_, trial_);
    } else if (end - begin > 1) {
      const size_t middle = begin + (end - begin) / 2;
      try_parts(parts, begin, middle);
      try_parts(parts, middle, end);
    }
  }

  const StepUnits& units_;
  const Budget& budget_;
  PlacePlan& plan_;
  std::vector<int64_t>& moves_;
  Decoder kept_;
  PlacePlan trial_;
  double step_us_ = 0;
  double until_ = 1;  // the share of the budget that windows may use
  std::vector<StreamRandom> random_;
};

}  // namespace

double search_windows(const StepUnits& units, const Budget& budget,
                      uint64_t seed, PlacePlan& plan,
                      std::vector<int64_t>& moves) {
  return Rounds(units, budget, seed, plan, moves).run();
}

}  // namespace berth
