// Compares the third model with a second, slow implementation of its rules, and
// with the best of all plans of small problems.

#include "cli/planner/pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "base/infinity.h"
#include "berth/errors.h"
#include "cli/planner/path_pieces.h"
#include "place/planner/check.h"
#include "place/planner/models.h"
#include "place/planner/problem_testing.h"

namespace berth {
namespace {

using testing::ProblemMaker;

class RandomProblems {
 public:
  explicit RandomProblems(uint32_t seed) : random_(seed) {}

  // Two accelerators, sometimes unequal, one CPU; some limits, groups, masks.
  PlanProblem next(int least_ops, int most_ops) {
    ProblemMaker m(PlanModel::kOther, &kPiecesRules);
    const int slow = m.device_class("CPU"), fast = m.device_class("ACC");
    const int other = below(4) == 0 ? m.device_class("ACC2") : fast;
    const int classes = other == fast ? 2 : 3;
    const int ops = least_ops + below(most_ops - least_ops + 1);
    const int64_t limit = below(4) == 0 ? 0 : 10 + below(10 * ops / 2);
    m.device("ACC:0", fast, limit);
    m.device("ACC:1", other, below(3) == 0 ? limit / 2 : limit);
    m.device("CPU", slow, 0, CopyRule::kReceiving, true);
    for (int i = 0; i < ops; ++i) add_op(m, i, classes);
    for (int k = below(3); k > 0; --k) m.together(below(ops), below(ops));
    if (below(3) == 0)
      m.allow(below(ops), DeviceSet(1 + static_cast<uint64_t>(below(7))));
    return m.make();
  }

 private:
  int below(int n) {
    return static_cast<int>(random_() % static_cast<uint32_t>(n));
  }
  void add_op(ProblemMaker& m, int i, int classes) {
    std::vector<int> inputs;
    for (int j = std::max(0, i - 4); j < i; ++j) {
      if (below(5) < 2) inputs.push_back(j);
    }
    const double fast = below(4) == 0 ? 0 : 1 + below(9);
    std::vector<double> us = {below(4) == 0 ? 0 : fast * (1 + below(4)), fast};
    if (below(12) == 0) us[1] = kNoKernel;
    if (classes == 3) us.push_back(1 + below(9));
    m.op("op" + std::to_string(i), us, inputs, 0, below(3) == 0 ? 0 : below(8));
    m.hold(i, below(3) == 0 ? 0 : below(11));
  }

  std::mt19937 random_;
};

// The rules of pieces.h again, with sets of op numbers.
class Slow {
 public:
  Slow(const PlanProblem& p, const std::vector<int32_t>& device)
      : p_(p), device_(device) {
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      pieces_[{device[i], is_cpu(i) ? i : depth(device[i], i)}].insert(i);
    }
  }
  double value() {
    double last = 0;
    for (const auto& [key, ops] : pieces_) last = std::max(last, end(key));
    return last;
  }

 private:
  using Key = std::pair<int32_t, int32_t>;
  bool is_cpu(int32_t op) const { return p_.free_of_touch[device_[op]]; }
  bool reads(int32_t op, int32_t from) const {
    for (const int32_t v : p_.graph.reads[op]) {
      if (p_.graph.producer[v] == from) return true;
    }
    return false;
  }
  // Returns the pieces of `d` on the way to `op`, inclusive.
  int32_t depth(int32_t d, int32_t op) const {
    const bool inside = device_[op] == d;
    int32_t most = inside ? 1 : 0;
    for (const int32_t v : p_.graph.reads[op]) {
      const int32_t u = p_.graph.producer[v];
      most = std::max(most, depth(d, u) + (inside && device_[u] != d));
    }
    return most;
  }
  double end(const Key& key) {
    if (const auto it = ends_.find(key); it != ends_.end()) return it->second;
    ends_[key] = kInfinity;  // while waiting
    const std::set<int32_t>& ops = pieces_[key];
    const bool cpu = p_.free_of_touch[key.first];
    double start = 0, length = 0;
    for (const auto& [other, theirs] : pieces_) {
      if (other == key) continue;
      for (const int32_t u : theirs) {
        bool in = false;
        for (const int32_t op : ops) in |= reads(op, u);
        if (in) {
          start = std::max(start, end(other));
          if (!cpu) length += p_.touch_us[u];
        }
      }
    }
    for (const int32_t op : ops) {
      length += p_.costs.time(op, key.first).us;
      bool leaves = false;
      for (int32_t r = 0; r < p_.num_ops(); ++r) {
        leaves |= !ops.contains(r) && reads(r, op);
      }
      if (leaves && !cpu) length += p_.touch_us[op];
    }
    return ends_[key] = start + length;
  }

  const PlanProblem& p_;
  const std::vector<int32_t>& device_;
  std::map<Key, std::set<int32_t>> pieces_;
  std::map<Key, double> ends_;
};

// Calls fn(device per op) for every plan that respects masks and groups.
template <class Fn>
void each_plan(const PlanProblem& p, Fn&& fn) {
  const std::vector<DeviceSet> allowed = allowed_of_groups(p);
  std::vector<int32_t> of_group(static_cast<size_t>(p.num_groups), 0);
  std::vector<int32_t> device(static_cast<size_t>(p.num_ops()));
  for (;;) {
    bool good = true;
    for (int32_t g = 0; g < p.num_groups; ++g) {
      good &= (allowed[g] & device_bit(of_group[g])) != 0;
    }
    if (good) {
      for (int32_t i = 0; i < p.num_ops(); ++i) {
        device[i] = of_group[p.group[i]];
      }
      fn(device);
    }
    int32_t g = 0;
    while (g < p.num_groups && ++of_group[g] == p.num_devices()) {
      of_group[g++] = 0;
    }
    if (g == p.num_groups) return;
  }
}

bool keeps_limits(const PlanProblem& p, const std::vector<int32_t>& device) {
  for (int32_t d = 0; d < p.num_devices(); ++d) {
    double bytes = 0;
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      if (device[i] == d) bytes += p.resident_bytes[i];
    }
    const auto limit = static_cast<double>(p.costs.devices[d].memory_limit);
    if (limit > 0 && bytes > limit) return false;
  }
  return true;
}

// Returns the least value of all plans; the first test verifies the evaluator.
double least_value(const PlanProblem& p) {
  const PiecesProblem pieces(p);
  PiecesEvaluator evaluator(pieces);
  double least = kInfinity;
  std::vector<int32_t> device(static_cast<size_t>(p.num_ops()));
  each_plan(p, [&](const std::vector<int32_t>& of_op) {
    if (!keeps_limits(p, of_op)) return;
    for (int32_t k = 0; k < p.num_ops(); ++k) {
      device[k] = of_op[pieces.original[k]];
    }
    least = std::min(least, evaluator.value(device));
  });
  return least;
}

TEST(Pieces, ValuesAreThoseOfTheRules) {
  RandomProblems problems(1);
  std::mt19937 random(2);
  int impossible = 0, good = 0;
  for (int k = 0; k < 2000; ++k) {
    const PlanProblem p = problems.next(4, 12);
    PlacePlan plan;
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      plan.device.push_back(static_cast<int32_t>(random() % 3));
    }
    const double expected = Slow(p, plan.device).value();
    const Evaluation e = evaluate_pieces(p, plan);
    if (std::isinf(expected)) {
      ++impossible;
      EXPECT_TRUE(std::isinf(e.value));
    } else {
      ++good;
      EXPECT_NEAR(e.value, expected, 1e-9 * (1 + expected));
    }
  }
  EXPECT_GT(impossible, 50);
  EXPECT_GT(good, 500);
}

// Four consecutive ops on ACC, CPU, ACC, ACC.
TEST(Pieces, APathThatComesBackBeginsAnotherPiece) {
  ProblemMaker m(PlanModel::kOther, &kPiecesRules);
  const int slow = m.device_class("CPU"), fast = m.device_class("ACC");
  m.device("ACC:0", fast, 100);
  m.device("CPU", slow, 0, CopyRule::kReceiving, true);
  m.op("a", {10, 1}, {}, 0, 0.5);
  m.op("b", {10, 1}, {0}, 0, 0.25);
  m.op("c", {10, 1}, {1}, 0, 8);
  m.op("d", {10, 1}, {2}, 0, 8);
  m.hold(0, 60);
  m.hold(3, 50);
  const PlanProblem p = m.make();
  const Evaluation e = evaluate(p, {{0, 1, 0, 0}, {0, 1, 2, 3}});
  // 1 + 0.5 sent; 10; 0.25 received + 2.
  EXPECT_DOUBLE_EQ(e.value, 13.75);
  EXPECT_DOUBLE_EQ(e.devices[0].busy, 3.75);
  EXPECT_DOUBLE_EQ(e.devices[1].busy, 10);
  ASSERT_EQ(e.violations.size(), 1u);
  EXPECT_EQ(e.violations[0], "ACC:0 needs 110 B; its limit is 100 B");
}

TEST(Pieces, CountAsDeepAsAChainIsLong) {
  ProblemMaker m(PlanModel::kOther, &kPiecesRules);
  const int slow = m.device_class("CPU"), fast = m.device_class("ACC");
  m.device("ACC:0", fast, 0);
  m.device("CPU", slow, 0, CopyRule::kReceiving, true);
  constexpr int kOps = 70'000;
  PlacePlan plan;
  for (int i = 0; i < kOps; ++i) {
    m.op("", {10, 1}, i > 0 ? std::vector<int>{i - 1} : std::vector<int>{}, 0,
         0.5);
    plan.device.push_back(i % 2);
  }
  // Pairs of 1 on the accelerator, 0.5 each received and sent, and 10 on the
  // CPU; the first receives nothing.
  EXPECT_DOUBLE_EQ(evaluate_pieces(m.make(), plan).value,
                   12.0 * kOps / 2 - 0.5);
}

TEST(Pieces, PiecesThatWaitForEachOtherAreNoPlan) {
  ProblemMaker m(PlanModel::kOther, &kPiecesRules);
  const int fast = m.device_class("ACC");
  m.device("ACC:0", fast);
  m.device("ACC:1", fast);
  m.op("a1", {1}, {}, 0, 0);
  m.op("b1", {1}, {0}, 0, 0);
  m.op("b2", {1}, {}, 0, 0);
  m.op("a2", {1}, {2}, 0, 0);
  const PlanProblem p = m.make();
  const Evaluation e = evaluate(p, {{0, 1, 1, 0}, {0, 1, 2, 3}});
  EXPECT_TRUE(std::isinf(e.value));
  ASSERT_EQ(e.violations.size(), 1u);
  EXPECT_NE(e.violations[0].find("pieces of ACC:0, ACC:1 wait for each other"),
            std::string::npos);
}

TEST(SearchPieces, FindsTheBestOfAllPlansOfSmallProblems) {
  RandomProblems problems(3);
  int planned = 0, best = 0;
  for (int k = 0; k < 1000; ++k) {
    const PlanProblem p = problems.next(5, 8);
    const double least = least_value(p);
    const Found f = search_pieces(p, Budget::of_moves(8 * 3000, 1), 1);
    EXPECT_EQ(f.any(), std::isfinite(least)) << k;
    if (!f.any()) continue;
    ++planned;
    const Evaluation e = evaluate(p, f.plan);
    EXPECT_TRUE(e.violations.empty()) << e.violations[0];
    EXPECT_NEAR(e.value, f.value, 1e-9 * (1 + f.value));
    EXPECT_GE(f.value, least - 1e-9 * (1 + least)) << k;
    best += f.value <= least + 1e-9 * (1 + least);
  }
  EXPECT_GT(planned, 700);
  EXPECT_GE(best, planned * 199 / 200) << "in 3,000 moves a stream";
}

TEST(SearchPieces, MovesAndSeedDecideOnAnyNumberOfThreads) {
  const PlanProblem p = RandomProblems(5).next(60, 60);
  const auto search = [&](int threads, uint64_t seed) {
    return search_pieces(p, Budget::of_moves(40'000, threads), seed);
  };
  const Found one = search(1, 7);
  ASSERT_TRUE(one.any());
  for (const int threads : {2, 5}) {
    const Found other = search(threads, 7);
    EXPECT_EQ(other.plan.device, one.plan.device);
    EXPECT_EQ(other.value, one.value);
    EXPECT_EQ(other.moves, one.moves);
  }
  EXPECT_GE(one.moves, 40'000);
  EXPECT_LE(one.moves, 40'000 + 8 * 64);
}

TEST(BoundPieces, IsBelowAllPlansOfSmallProblems) {
  RandomProblems problems(3);
  double gaps = 0;
  int planned = 0, tight = 0;
  for (int k = 0; k < 1000; ++k) {
    const PlanProblem p = problems.next(5, 8);
    const double least = least_value(p);
    if (std::isinf(least)) continue;
    const Bound b = bound_pieces(p, Budget::of_moves(800, 1), 1.3 * least);
    EXPECT_LE(b.value, least * (1 + 1e-9)) << k;
    EXPECT_EQ(check_pieces(p, b.witness), "") << k;
    ++planned;
    tight += b.value > least * (1 - 1e-5);
    if (least > 0) gaps += 1 - b.value / least;
  }
  EXPECT_GT(tight, planned / 2);
  EXPECT_LT(gaps, 0.12 * planned);
}

// A claim beyond the proof, or no claim, makes no witness.
TEST(CheckPieces, RejectsMutatedWitnesses) {
  RandomProblems problems(9);
  std::mt19937 random(4);
  const double odd[] = {-1, 0.5, 1e300, NAN, INFINITY};
  int raised = 0;
  for (int k = 0; k < 300; ++k) {
    const PlanProblem p = problems.next(6, 12);
    const Bound b = bound_pieces(p, Budget::of_moves(1600, 1), kInfinity);
    if (b.value <= 0) continue;
    Witness w = b.witness;
    w.target *= 1.0001;
    EXPECT_NE(check_pieces(p, w), "") << k;
    ++raised;
    for (size_t array = 0; array < w.arrays.size(); ++array) {
      Witness m = b.witness;
      std::vector<double>& numbers = m.arrays[array].second;
      if (numbers.empty()) continue;
      numbers[random() % numbers.size()] = odd[random() % 5];
      // A fractional price may be valid.
      const std::string said = check_pieces(p, m);
      if (array != 2) {
        EXPECT_NE(said, "") << k;
      }
      numbers.pop_back();
      check_pieces(p, m);
    }
    w = b.witness;
    std::vector<double>& path = w.arrays[0].second;
    if (path.size() < 3) continue;
    path.erase(path.begin() + 1);
    const auto reads = p.graph.reads[static_cast<int32_t>(path[1])];
    if (std::count(reads.begin(), reads.end(), static_cast<int32_t>(path[0])) ==
        0) {
      EXPECT_NE(check_pieces(p, w), "") << k;
    }
  }
  EXPECT_GT(raised, 200);
}

// If a path is too long for all its pieces, an op outside of the part may be in
// a piece of the part: its time must count once.
TEST(BoundPieces, CountAnOpOutsideOfThePartOnce) {
  ProblemMaker m(PlanModel::kOther, &kPiecesRules);
  const int slow = m.device_class("CPU"), fast = m.device_class("ACC");
  m.device("ACC:0", fast);
  m.device("CPU", slow, 0, CopyRule::kReceiving, true);
  m.op("a", {90, 10}, {}, 0, 50);
  m.op("b", {90, 10}, {0}, 0, 50);
  m.op("c", {90, 10}, {0, 1}, 0, 0);
  const PlanProblem p = m.make();
  ASSERT_DOUBLE_EQ(least_value(p), 30);
  const PiecesProblem pieces(p);
  PathPieces paths(pieces);
  const auto more = [] { return true; };
  EXPECT_NEAR(paths.least({0, 1}, more, {2}), 20, 1e-6);
  EXPECT_NEAR(paths.least({0, 1}, more), 30, 1e-6);
  const Witness w = {
      "pieces",
      30 * (1 - 1e-8),
      {{"path", {0, 1, 2}}, {"part", {0, 2}}, {"cuts", {0, 1, 0}}}};
  EXPECT_EQ(check_pieces(p, w), "");
  Witness twice = w;
  twice.target = 31;
  EXPECT_NE(check_pieces(p, twice), "");
}

TEST(BoundPieces, AreThatOfTheOnlyPlanOfAChain) {
  // Three ops of which any two fit: the cheapest cut is behind the first.
  ProblemMaker m(PlanModel::kOther, &kPiecesRules);
  const int slow = m.device_class("CPU"), fast = m.device_class("ACC");
  m.device("ACC:0", fast, 100);
  m.device("ACC:1", fast, 100);
  m.device("CPU", slow, 0, CopyRule::kReceiving, true);
  m.op("a", {90, 10}, {}, 0, 2);
  m.op("b", {90, 10}, {0}, 0, 3);
  m.op("c", {90, 10}, {1}, 0, 5);
  for (int i = 0; i < 3; ++i) m.hold(i, 40);
  const PlanProblem p = m.make();
  const Bound b = bound_pieces(p, Budget::of_moves(800, 1), kInfinity);
  EXPECT_NEAR(b.value, 34, 1e-6);
  EXPECT_EQ(check_pieces(p, b.witness), "");
  const Found f = search_pieces(p, Budget::of_moves(8000, 1), 1);
  EXPECT_DOUBLE_EQ(f.value, 34);
}

TEST(SearchPieces, BeginsWithCandidatesAndNeverEndsWorse) {
  PlanProblem p = RandomProblems(11).next(40, 40);
  const Found good = search_pieces(p, Budget::of_moves(80'000, 2), 3);
  ASSERT_TRUE(good.any());
  p.candidates.push_back({"good", good.plan});
  const Found again = search_pieces(p, Budget::of_moves(8, 1), 4);
  ASSERT_TRUE(again.any());
  EXPECT_LE(again.value, good.value);
}

}  // namespace
}  // namespace berth
