#include "distribute/pipeline/balance.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace berth::distribute {

namespace {

template <class T>
std::vector<T> sums_before(const std::vector<T>& of) {
  std::vector<T> sums(of.size() + 1, T{});
  for (size_t i = 0; i < of.size(); ++i) sums[i + 1] = sums[i] + of[i];
  return sums;
}

class Balance {
 public:
  Balance(const UnitCosts& units, const std::vector<StageOn>& stages)
      : units_(units),
        stages_(stages),
        kept_(sums_before(units.kept_bytes)),
        passing_(sums_before(units.passing_bytes)) {
    for (const auto& us : units.us) us_.push_back(sums_before(us));
  }

  PipelineCut run() {
    const size_t n = units_.kept_bytes.size(), stages = stages_.size();
    // The best cut of the first `end` units into the stages up to s.
    std::vector<std::vector<Value>> best(stages,
                                         std::vector<Value>(n + 1, kNone));
    std::vector<std::vector<int32_t>> from(stages,
                                           std::vector<int32_t>(n + 1, 0));
    for (size_t s = 0; s < stages; ++s) {
      for (size_t end = s + 1; end + (stages - 1 - s) <= n; ++end) {
        for (size_t begin = s; begin < end; ++begin) {
          if (s == 0 && begin > 0) break;
          Value v = value(s, begin, end);
          if (s > 0) {
            const Value& before = best[s - 1][begin];
            v = {v.first + before.first, std::max(v.second, before.second)};
          }
          if (v >= best[s][end]) continue;
          best[s][end] = v;
          from[s][end] = static_cast<int32_t>(begin);
        }
      }
    }
    PipelineCut cut;
    cut.begin.resize(stages);
    size_t end = n;
    for (size_t s = stages; s-- > 0;) {
      cut.begin[s] = from[s][end];
      end = static_cast<size_t>(cut.begin[s]);
    }
    for (size_t s = 0; s < stages; ++s) {
      const auto begin = static_cast<size_t>(cut.begin[s]);
      const size_t to =
          s + 1 < stages ? static_cast<size_t>(cut.begin[s + 1]) : n;
      cut.us.push_back(value(s, begin, to).second);
      cut.bytes.push_back(bytes(s, begin, to));
    }
    cut.missing_bytes = best.back()[n].first;
    return cut;
  }

 private:
  // Bytes beyond limits, then microseconds of the slowest stage.
  using Value = std::pair<int64_t, double>;
  static constexpr Value kNone = {std::numeric_limits<int64_t>::max(), 0};

  int64_t bytes(size_t s, size_t begin, size_t end) const {
    return kept_[end] - kept_[begin] +
           (passing_[end] - passing_[begin]) * stages_[s].in_flight;
  }

  Value value(size_t s, size_t begin, size_t end) const {
    const StageOn& on = stages_[s];
    const auto& us = us_[static_cast<size_t>(on.device)];
    const double computes = us[end] - us[begin];
    const double receives =
        begin > 0 ? on.receives(units_.sent_bytes[begin - 1]) : 0;
    const int64_t over =
        on.memory_limit > 0 ? bytes(s, begin, end) - on.memory_limit : 0;
    return {std::max<int64_t>(over, 0),
            on.overlaps ? std::max(computes, receives) : computes + receives};
  }

  const UnitCosts& units_;
  const std::vector<StageOn>& stages_;
  std::vector<std::vector<double>> us_;
  std::vector<int64_t> kept_, passing_;
};

}  // namespace

PipelineCut balanced_cut(const UnitCosts& units,
                         const std::vector<StageOn>& stages) {
  return Balance(units, stages).run();
}

}  // namespace berth::distribute
