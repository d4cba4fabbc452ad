#include "place/planner/window_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include "place/planner/anneal_steps.h"
#include "place/planner/window_steps.h"

namespace berth {

namespace {

// Moves are those of the first rounds. A budget in seconds reserves kTrials
// decodes of the whole plan to put windows together.
constexpr double kTrials = 25;
constexpr int32_t kOpsInWindow = 256, kRoundsPerTime = 4;
constexpr int64_t kMovesInWindow = 1000, kMostTimesMoves = 8;

// An improvement below this share of a step is rounding.
constexpr double kSearchRounding = 1e-12;

struct Part {
  StepWindow window;
  PlacePlan better;
};

class WindowSearch {
 public:
  WindowSearch(const StepUnits& units, SearchSeries& series,
               WindowRounds& rounds, PlacePlan& plan)
      : units_(units),
        series_(series),
        budget_(series.budget()),
        rounds_(rounds),
        plan_(plan),
        kept_(units.problem.graph, units.problem.costs) {
    rounds_.next.resize(series.streams().size());
  }

  double run() {
    const double left = budget_.seconds_left();
    step_us_ = kept_.decode(plan_);
    if (!budget_.counts_moves()) {
      const double one = left - budget_.seconds_left();
      reserve_seconds_ = std::min(kTrials * one, 0.3 * left);
    }
    // A round may have windows for spent streams alone.
    const size_t streams = series_.streams().size();
    for (size_t idle = 0; idle < streams && !all_spent();) {
      const int64_t before = series_.moves();
      continue_round();
      idle = series_.moves() == before ? idle + 1 : 0;
    }
    return step_us_;
  }

 private:
  bool spent(const SearchStream& stream) const {
    return stream.spent() >= 1 || budget_.seconds_left() < reserve_seconds_;
  }

  bool all_spent() const {
    return budget_.enough(step_us_) ||
           std::ranges::all_of(series_.streams(),
                               [&](const auto& s) { return spent(s); });
  }

  // Windows of every second round lie across the borders of the others.
  void continue_round() {
    const int32_t n = units_.num_ops;
    const int round = rounds_.round;
    const int32_t first = round % 2 == 0 ? 0 : -kOpsInWindow / 2;
    const int32_t count = (n - first + kOpsInWindow - 1) / kOpsInWindow;
    const int64_t most =
        kMovesInWindow *
        std::min<int64_t>(1 + round / kRoundsPerTime, kMostTimesMoves);
    const std::vector<double> latest = latest_starts(units_, kept_, plan_);
    std::vector<std::optional<Part>> parts(count);
    std::atomic<bool> done = true;
    series_.run([&](SearchStream& s) {
      const int32_t streams = std::ssize(rounds_.next);
      // The first one differs per round, as time may end in any round.
      for (int32_t& next = rounds_.next[s.number()];; ++next) {
        const int32_t k = (s.number() + round) % streams + next * streams;
        if (k >= count) return;
        if (spent(s)) break;
        const int32_t begin = first + k * kOpsInWindow;
        parts[k] = better(s, latest, std::max(begin, 0),
                          std::min(begin + kOpsInWindow, n), most);
      }
      done = false;
    });
    if (done || !all_spent())
      rounds_ = {round + 1, std::vector<int32_t>(rounds_.next.size())};
    std::erase_if(parts, [](const auto& part) { return !part; });
    try_parts(parts, 0, parts.size());
  }

  std::optional<Part> better(SearchStream& stream,
                             const std::vector<double>& latest, int32_t begin,
                             int32_t end, int64_t most) {
    Part part = {cut_window(units_, kept_, plan_, latest, begin, end), {}};
    const StepWindow& w = part.window;
    const StepUnits units(w.problem);
    StepAnnealer annealer(units, stream.random);
    annealer.free_only(w.first, w.last());
    const double us = annealer.start(w.plan);
    // The heat is a share of the whole step; only the window's part counts.
    const double hot =
        3 / std::pow(end - begin + 3, 1.5) * std::min(w.span_us / us, 1.0);
    most = std::min(most, stream.moves_left());
    const auto share = [&](int64_t moves) {
      if (budget_.seconds_left() < reserve_seconds_) return 1.0;
      return static_cast<double>(moves) / static_cast<double>(most);
    };
    stream.take(annealer.run({.hot = hot, .cold = hot / 200}, most, share));
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
  SearchSeries& series_;
  const Budget& budget_;
  WindowRounds& rounds_;
  PlacePlan& plan_;
  Decoder kept_;
  PlacePlan trial_;
  double step_us_ = 0;
  double reserve_seconds_ = 0;  // to put windows together
};

}  // namespace

double search_windows(const StepUnits& units, SearchSeries& series,
                      WindowRounds& rounds, PlacePlan& plan) {
  return WindowSearch(units, series, rounds, plan).run();
}

}  // namespace berth
