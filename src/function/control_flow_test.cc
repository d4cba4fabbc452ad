// cond and while_loop against closed forms, eagerly and in traces.

#include "berth/ops/control_flow.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/berth.h"

namespace berth {
namespace {

std::string text_of_error(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const errors::Error& e) {
    return e.what();
  }
  return "(no error)";
}

Tensor f64(double v) { return math::cast(constant(v), float64); }

// x^n by n multiplications.
Tensor power(const Tensor& x, const Tensor& n, int64_t most) {
  const auto [i, p] = while_loop(
      [&](const Tensor& i, const Tensor&) { return math::less(i, n); },
      [&](const Tensor& i, const Tensor& p) {
        return std::tuple(i + 1, p * x);
      },
      std::tuple(constant(int64_t{0}), ones_like(x)), {.max_iterations = most});
  return p;
}

TEST(Cond, TakesTheBranchThatThePredicateSays) {
  auto f = function([](const Tensor& x, const Tensor& y) {
    return cond(
        math::less(x, y), [&] { return x * y; }, [&] { return x - y; });
  });
  EXPECT_EQ(f(f64(2), f64(5)).item<double>(), 10);
  EXPECT_EQ(f(f64(7), f64(5)).item<double>(), 2);
  EXPECT_EQ(f.num_traces(), 1);
  const Tensor x = f64(2), y = f64(5);
  EXPECT_EQ(cond(
                math::less(x, y), [&] { return x * y; }, [&] { return x - y; })
                .item<double>(),
            10);
}

TEST(Cond, ReturnsStructures) {
  using Pair = std::pair<Tensor, std::vector<Tensor>>;
  auto f = function([](const Tensor& x) {
    return cond(
        math::greater(x, f64(0)),
        [&] {
          return Pair{x, {x + 1.0, x + 2.0}};
        },
        [&] {
          return Pair{-x, {x, f64(9)}};
        });
  });
  const Pair a = f(f64(3)), b = f(f64(-3));
  EXPECT_EQ(a.second[1].item<double>(), 5);
  EXPECT_EQ(b.first.item<double>(), 3);
  EXPECT_EQ(b.second[0].item<double>(), -3);
  EXPECT_EQ(b.second[1].item<double>(), 9);
}

TEST(Cond, WritesVariablesInTheBranchTaken) {
  const Variable count(f64(0)), other(f64(100));
  auto f = function([&](const Tensor& x) {
    const Tensor before = count.value();
    cond(
        math::greater(x, f64(0)), [&] { count.assign_add(x); },
        [&] { other.assign_sub(f64(1)); });
    return before + count.value();
  });
  EXPECT_EQ(f(f64(3)).item<double>(), 3);
  EXPECT_EQ(f(f64(4)).item<double>(), 10);
  EXPECT_EQ(f(f64(-1)).item<double>(), 14);
  EXPECT_EQ(count.value().item<double>(), 7);
  EXPECT_EQ(other.value().item<double>(), 99);
}

TEST(Cond, DifferentBranchesAreErrorsThatNameTheOutput) {
  auto f = function([](const Tensor& x) {
    return cond(
        math::greater(x, f64(0)),
        [&] { return std::pair(x, zeros({2}, float64)); },
        [&] { return std::pair(x, zeros({3}, float64)); });
  });
  const std::string m = text_of_error([&] { f(f64(1)); });
  EXPECT_NE(m.find("output 1"), std::string::npos) << m;
  EXPECT_NE(m.find("[2]"), std::string::npos) << m;
  EXPECT_NE(m.find("[3]"), std::string::npos) << m;
  EXPECT_NE(m.find("control_flow_test.cc"), std::string::npos) << m;
}

TEST(Cond, PredicatesMustBeABool) {
  const std::string m = text_of_error([] {
    cond(
        f64(1), [] { return f64(1); }, [] { return f64(2); });
  });
  EXPECT_NE(m.find("bool[]"), std::string::npos) << m;
  auto f = function([](const Tensor& x) {
    return cond(
        x, [&] { return x; }, [&] { return x; });
  });
  EXPECT_NE(text_of_error([&] { f(f64(1)); }).find("bool"), std::string::npos);
}

// x^3 and e^x: the branch taken decides.
Tensor branchy(const Tensor& x) {
  return cond(
      math::greater(x, f64(0)), [&] { return x * x * x; },
      [&] { return math::exp(x); });
}

TEST(Cond, GradientsAreThoseOfTheBranchTaken) {
  auto f = function([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = branchy(x);
    return tape.gradient(y, x);
  });
  EXPECT_NEAR(f(f64(2)).item<double>(), 12, 1e-12);
  EXPECT_NEAR(f(f64(-2)).item<double>(), std::exp(-2.0), 1e-12);
}

TEST(Cond, GradientsOfATapeAroundTheFunction) {
  auto f = function(&branchy);
  for (const double v : {2.0, -2.0}) {
    GradientTape tape;
    const Tensor x = f64(v);
    tape.watch(x);
    const Tensor y = f(x);
    EXPECT_NEAR(tape.gradient(y, x).item<double>(),
                v > 0 ? 3 * v * v : std::exp(v), 1e-12);
  }
}

TEST(Cond, SecondAndThirdDerivatives) {
  auto f = function([](const Tensor& x) {
    GradientTape t3;
    t3.watch(x);
    GradientTape t2;
    t2.watch(x);
    GradientTape t1;
    t1.watch(x);
    const Tensor d1 = t1.gradient(branchy(x), x);
    const Tensor d2 = t2.gradient(d1, x);
    return std::pair(d2, t3.gradient(d2, x));
  });
  const auto a = f(f64(2)), b = f(f64(-2));
  EXPECT_NEAR(a.first.item<double>(), 12, 1e-12);
  EXPECT_NEAR(a.second.item<double>(), 6, 1e-12);
  EXPECT_NEAR(b.first.item<double>(), std::exp(-2.0), 1e-12);
  EXPECT_NEAR(b.second.item<double>(), std::exp(-2.0), 1e-12);
}

TEST(Cond, SecondDerivativesAcrossAFunction) {
  auto f = function(&branchy);
  for (const double v : {2.0, -2.0}) {
    const Tensor x = f64(v);
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    const Tensor d = inner.gradient(f(x), x);
    EXPECT_NEAR(outer.gradient(d, x).item<double>(),
                v > 0 ? 6 * v : std::exp(v), 1e-12);
  }
}

TEST(Cond, GradientsOfVariables) {
  const Variable w(f64(3)), b(f64(1));
  auto f = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor y = cond(
        math::greater(x, f64(0)), [&] { return w * w * x; },
        [&] { return b * x; });
    return tape.gradient(
        y, std::vector<Variable>{w, b},
        {.unconnected_gradients = UnconnectedGradients::kZero});
  });
  const Tensors pos = f(f64(2)), neg = f(f64(-2));
  EXPECT_EQ(pos[0].item<double>(), 12);
  EXPECT_EQ(pos[1].item<double>(), 0);
  EXPECT_EQ(neg[0].item<double>(), 0);
  EXPECT_EQ(neg[1].item<double>(), -2);
}

// The gradient belongs to the value that was read, not to a later one.
TEST(Cond, GradientsUseTheValuesOfTheForwardRun) {
  const Variable w(f64(3));
  auto f = function([&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = cond(
        math::greater(x, f64(0)),
        [&] {
          w.assign_add(f64(2));
          const Tensor r = w * x;
          w.assign(f64(100));
          return r;
        },
        [&] { return x; });
    w.assign(f64(1000));
    return tape.gradient(y, x);
  });
  EXPECT_EQ(f(f64(2)).item<double>(), 5);
  EXPECT_EQ(w.value().item<double>(), 1000);
}

TEST(Cond, Nested) {
  auto f = function([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = cond(
        math::greater(x, f64(0)),
        [&] {
          const Tensor z = x * 2.0;
          return cond(
              math::greater(z, f64(10)), [&] { return z * z; },
              [&] { return z * x; });
        },
        [&] { return -x; });
    return std::pair(y, tape.gradient(y, x));
  });
  const auto a = f(f64(6)), b = f(f64(3)), c = f(f64(-3));
  EXPECT_EQ(a.first.item<double>(), 144);
  EXPECT_EQ(a.second.item<double>(), 48);
  EXPECT_EQ(b.first.item<double>(), 18);
  EXPECT_EQ(b.second.item<double>(), 12);
  EXPECT_EQ(c.first.item<double>(), 3);
  EXPECT_EQ(c.second.item<double>(), -1);
}

TEST(Cond, UnknownDimensions) {
  auto f = function(
      [](const Tensor& x) {
        GradientTape tape;
        tape.watch(x);
        const Tensor y = cond(
            math::greater(math::reduce_sum(x), f64(0)),
            [&] { return math::tanh(x) * x; }, [&] { return x * x; });
        return tape.gradient(y, x);
      },
      {.input_signature = {{{-1}, float64, "x"}}});
  for (const int64_t n : {1, 3}) {
    const Tensor x = fill({n}, -2, float64);
    for (const double v : f(x).to_vector<double>()) EXPECT_EQ(v, -4);
  }
  const double t = std::tanh(0.5);
  EXPECT_NEAR(f(fill({2}, 0.5, float64)).to_vector<double>()[1],
              t + 0.5 * (1 - t * t), 1e-12);
  EXPECT_EQ(f.num_traces(), 1);
}

TEST(Case, TakesTheFirstThatHolds) {
  auto f = function([](const Tensor& x) {
    return case_<Tensor>({{math::less(x, f64(0)), [&] { return -x; }},
                          {math::less(x, f64(10)), [&] { return x * 2.0; }}},
                         [&] { return f64(0); });
  });
  EXPECT_EQ(f(f64(-4)).item<double>(), 4);
  EXPECT_EQ(f(f64(4)).item<double>(), 8);
  EXPECT_EQ(f(f64(40)).item<double>(), 0);
}

TEST(SwitchCase, OutOfRangeTakesTheLast) {
  const auto pick = [](const Tensor& i) {
    return switch_case<Tensor>(i,
                               {[] { return f64(10); }, [] { return f64(20); },
                                [] { return f64(30); }});
  };
  auto f = function(pick);
  const int64_t index[] = {0, 1, 2, 3, -1};
  const double want[] = {10, 20, 30, 30, 30};
  for (int k = 0; k < 5; ++k) {
    EXPECT_EQ(f(constant(index[k])).item<double>(), want[k]) << k;
    EXPECT_EQ(pick(constant(index[k])).item<double>(), want[k]) << k;
  }
}

// Traced by halves: neither the stack depth nor the time grows quadratically.
TEST(SwitchCase, TakesThousandsOfBranches) {
  constexpr int64_t kBranches = 5000;
  std::vector<std::function<Tensor()>> branches;
  for (int64_t i = 0; i < kBranches; ++i) {
    branches.push_back([i] { return f64(3.0 * static_cast<double>(i)); });
  }
  auto f = function(
      [&](const Tensor& i) { return switch_case<Tensor>(i, branches); });
  for (const int64_t i : {0, 1, 2499, 2500, 4998, 4999}) {
    EXPECT_EQ(f(constant(i)).item<double>(), 3.0 * static_cast<double>(i));
  }
  for (const int64_t i : {-1, -5000, 5000, 1000000}) {
    EXPECT_EQ(f(constant(i)).item<double>(), 3.0 * (kBranches - 1)) << i;
  }
}

TEST(Case, TakesHundredsOfPairs) {
  auto f = function([&](const Tensor& x) {
    std::vector<std::pair<Tensor, std::function<Tensor()>>> pairs;
    for (int i = 0; i < 300; ++i) {
      pairs.push_back({math::less(x, f64(i)), [i] { return f64(10 * i); }});
    }
    return case_<Tensor>(pairs, [] { return f64(-1); });
  });
  EXPECT_EQ(f(f64(-7)).item<double>(), 0);
  EXPECT_EQ(f(f64(41)).item<double>(), 420);
  EXPECT_EQ(f(f64(299)).item<double>(), -1);
}

Tensor nested_conds(const Tensor& x, int depth) {
  if (depth == 0) return x;
  return cond(
      math::greater(x, f64(0)),
      [&] { return nested_conds(x + 1.0, depth - 1); }, [&] { return x; });
}

TEST(Cond, DeeperThanTheLimitIsAnErrorThatNamesTheLine) {
  auto fits = function([](const Tensor& x) { return nested_conds(x, 63); });
  EXPECT_EQ(fits(f64(1)).item<double>(), 64);
  for (const int depth : {64, 5000}) {
    auto f = function([&](const Tensor& x) { return nested_conds(x, depth); });
    try {
      f(f64(1));
      ADD_FAILURE() << "no error for " << depth;
    } catch (const errors::InvalidArgument& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("more than 63 conds and loops"), text.npos) << text;
      EXPECT_NE(text.find("control_flow_test.cc"), text.npos) << text;
    }
  }
}

TEST(While, PowerByLoop) {
  auto f = function(
      [](const Tensor& x, const Tensor& n) { return power(x, n, -1); });
  for (const int64_t n : {0, 1, 2, 7, 30}) {
    EXPECT_EQ(f(f64(1.5), constant(n)).item<double>(), std::pow(1.5, n));
    EXPECT_EQ(power(f64(1.5), constant(n), -1).item<double>(),
              std::pow(1.5, n));
  }
}

TEST(While, MaxIterationsEndIt) {
  const auto count = [](const Tensor& start) {
    return while_loop([](const Tensor&) { return constant(true); },
                      [](const Tensor& i) { return i + 1; }, start,
                      {.max_iterations = 5});
  };
  EXPECT_EQ(function(count)(constant(int64_t{10})).item<int64_t>(), 15);
  EXPECT_EQ(count(constant(int64_t{10})).item<int64_t>(), 15);
}

TEST(While, NewtonsIterationFindsTheRoot) {
  auto root = function([](const Tensor& a) {
    return while_loop(
        [&](const Tensor& x) {
          return math::greater(math::abs(x * x - a), f64(1e-12));
        },
        [&](const Tensor& x) { return 0.5 * (x + a / x); }, a);
  });
  EXPECT_NEAR(root(f64(2)).item<double>(), std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(root(f64(9)).item<double>(), 3, 1e-12);
}

TEST(While, GradientOfAPower) {
  auto f = function([](const Tensor& x, const Tensor& n) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = power(x, n, 10);
    return tape.gradient(y, x);
  });
  for (const int64_t n : {0, 1, 2, 7, 10}) {
    EXPECT_NEAR(f(f64(1.5), constant(n)).item<double>(),
                n * std::pow(1.5, n - 1), 1e-12)
        << n;
  }
}

TEST(While, GradientsOfATapeAroundTheFunction) {
  auto f = function(
      [](const Tensor& x, const Tensor& n) { return power(x, n, 10); });
  for (const int64_t n : {0, 1, 3}) {
    GradientTape tape;
    const Tensor x = f64(1.5);
    tape.watch(x);
    EXPECT_NEAR(
        tape.gradient(f(x, constant(n)), x,
                      {.unconnected_gradients = UnconnectedGradients::kZero})
            .item<double>(),
        n * std::pow(1.5, n - 1), 1e-12);
  }
}

TEST(While, SecondDerivatives) {
  auto f = function([](const Tensor& x, const Tensor& n) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    const Tensor d = inner.gradient(power(x, n, 8), x);
    return outer.gradient(d, x);
  });
  for (const int64_t n : {2, 3, 8}) {
    EXPECT_NEAR(f(f64(1.5), constant(n)).item<double>(),
                n * (n - 1) * std::pow(1.5, n - 2), 1e-11);
  }
}

TEST(While, GradientWithoutLimitIsANamedError) {
  auto f = function([](const Tensor& x, const Tensor& n) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(power(x, n, -1), x);
  });
  const std::string m = text_of_error([&] { f(f64(2), constant(int64_t{2})); });
  EXPECT_NE(m.find("max_iterations"), std::string::npos) << m;
}

TEST(While, ChangingShapesAreErrorsThatNameTheVariable) {
  const auto grow = [](const Tensor& x) {
    return while_loop(
        [](const Tensor& i, const Tensor&) {
          return math::less(i, constant(int64_t{3}));
        },
        [](const Tensor& i, const Tensor& v) {
          return std::tuple(i + 1, concat({v, v}, 0));
        },
        std::tuple(constant(int64_t{0}), x));
  };
  auto f = function([&](const Tensor& x) { return std::get<1>(grow(x)); });
  for (const std::string& m :
       {text_of_error([&] { f(zeros({2}, float64)); }),
        text_of_error([&] { grow(zeros({2}, float64)); })}) {
    EXPECT_NE(m.find("loop variable 1"), std::string::npos) << m;
    EXPECT_NE(m.find("[2]"), std::string::npos) << m;
    EXPECT_NE(m.find("[4]"), std::string::npos) << m;
    EXPECT_NE(m.find("control_flow_test.cc"), std::string::npos) << m;
  }
}

// h' = tanh(x_t W + h U), with the loss sum(h_T^2).
struct Rnn {
  Variable w{random::normal({3, 4}, {.dtype = float64, .seed = 1})};
  Variable u{random::normal({4, 4}, {.dtype = float64, .seed = 2})};

  Tensor turn(const Tensor& x, const Tensor& h) const {
    return math::tanh(matmul(x, w) + matmul(h, u));
  }
  Tensor unrolled(const Tensor& xs, int64_t steps) const {
    Tensor h = zeros({2, 4}, float64);
    for (int64_t t = 0; t < steps; ++t) h = turn(xs[{t}], h);
    return math::reduce_sum(h * h);
  }
  Tensor looped(const Tensor& xs, const Tensor& steps) const {
    const auto [t, h] = while_loop(
        [&](const Tensor& t, const Tensor&) { return math::less(t, steps); },
        [&](const Tensor& t, const Tensor& h) {
          return std::tuple(t + 1, turn(gather(xs, t), h));
        },
        std::tuple(constant(int64_t{0}), zeros({2, 4}, float64)),
        {.max_iterations = 6});
    return math::reduce_sum(h * h);
  }
};

TEST(While, RnnEqualsItsUnrolledForm) {
  const Rnn rnn;
  const Tensor xs = random::normal({6, 2, 3}, {.dtype = float64, .seed = 3});
  auto step = function([&](const Tensor& xs, const Tensor& steps) {
    GradientTape tape;
    tape.watch(xs);
    const Tensor loss = rnn.looped(xs, steps);
    Tensors all = tape.gradient(loss, {rnn.w, rnn.u, xs});
    all.push_back(loss);
    return all;
  });
  for (const int64_t steps : {1, 4, 6}) {
    GradientTape tape;
    tape.watch(xs);
    const Tensor loss = rnn.unrolled(xs, steps);
    Tensors want = tape.gradient(loss, {rnn.w, rnn.u, xs});
    want.push_back(loss);
    const Tensors have = step(xs, constant(steps));
    for (size_t k = 0; k < want.size(); ++k) {
      const auto a = want[k].to_vector<double>();
      const auto b = have[k].to_vector<double>();
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_NEAR(a[i], b[i], 1e-12) << k << " at " << i;
      }
    }
  }
}

TEST(While, WritesVariablesEachTurn) {
  const Variable total(f64(0));
  auto f = function([&](const Tensor& n) {
    const Tensor i =
        while_loop([&](const Tensor& i) { return math::less(i, n); },
                   [&](const Tensor& i) {
                     total.assign_add(math::cast(i, float64));
                     return i + 1;
                   },
                   constant(int64_t{0}));
    return total.value();
  });
  EXPECT_EQ(f(constant(int64_t{5})).item<double>(), 10);
  EXPECT_EQ(f(constant(int64_t{3})).item<double>(), 13);
}

TEST(While, LoopsInLoopsAndBranchesInLoops) {
  // Collatz: the number of iterations until 1.
  auto turns = function([](const Tensor& start) {
    return std::get<1>(while_loop(
        [](const Tensor& n, const Tensor&) { return math::greater(n, f64(1)); },
        [](const Tensor& n, const Tensor& k) {
          const Tensor next = cond(
              math::equal(math::floor(n / 2.0) * 2.0, n),
              [&] { return n / 2.0; }, [&] { return 3.0 * n + 1.0; });
          return std::tuple(next, k + 1);
        },
        std::tuple(start, constant(int64_t{0}))));
  });
  EXPECT_EQ(turns(f64(27)).item<int64_t>(), 111);
  EXPECT_EQ(turns(f64(1)).item<int64_t>(), 0);

  // (x^3)^2 by nested loops, with its gradient.
  auto nested = function([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = std::get<1>(while_loop(
        [](const Tensor& i, const Tensor&) {
          return math::less(i, constant(int64_t{2}));
        },
        [&](const Tensor& i, const Tensor& p) {
          return std::tuple(i + 1, p * power(x, constant(int64_t{3}), 4));
        },
        std::tuple(constant(int64_t{0}), f64(1)), {.max_iterations = 3}));
    return std::pair(y, tape.gradient(y, x));
  });
  const auto r = nested(f64(1.5));
  EXPECT_NEAR(r.first.item<double>(), std::pow(1.5, 6), 1e-12);
  EXPECT_NEAR(r.second.item<double>(), 6 * std::pow(1.5, 5), 1e-11);
}

// Each iteration keeps only what the gradient of the loop reads: for x p, only
// p.
TEST(While, KeepsOnlyWhatTheGradientReads) {
  auto f = function([](const Tensor& x, const Tensor& n) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(power(x, n, 10), x);
  });
  EXPECT_EQ(f(f64(2), constant(int64_t{3})).item<double>(), 12);
  const std::string text = f.text("optimize");
  const size_t at = text.find("node While ");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string line = text.substr(at, text.find('\n', at) - at);
  size_t stacks = 0;
  for (size_t p = 0; (p = line.find("float64[10]", p)) != std::string::npos;
       ++p) {
    ++stacks;
  }
  EXPECT_EQ(stacks, 1u) << line;
}

TEST(Cond, KnownPredicatesLeaveTheirBranch) {
  const Variable v(f64(0));
  auto f = function([&](const Tensor& x) {
    const Tensor one = zeros_like(x) + 1.0;  // folded
    const Tensor y = cond(
        math::greater(one, f64(0)),
        [&] {
          v.assign(x);
          return x * 2.0;
        },
        [&] { return x; });
    return y + v.value();
  });
  EXPECT_EQ(f(f64(3)).item<double>(), 9);
  EXPECT_EQ(f.text("optimize").find("= If("), std::string::npos)
      << f.text("optimize");
}

TEST(While, DeadLoopVariablesGo) {
  auto f = function([](const Tensor& x) {
    return std::get<1>(while_loop(
        [](const Tensor& i, const Tensor&, const Tensor&) {
          return math::less(i, constant(int64_t{4}));
        },
        [](const Tensor& i, const Tensor& a, const Tensor& dead) {
          return std::tuple(i + 1, a * 2.0, dead * a);
        },
        std::tuple(constant(int64_t{0}), x, x + 5.0)));
  });
  EXPECT_EQ(f(f64(3)).item<double>(), 48);
  EXPECT_NE(f.text("optimize").find("num_vars = 2"), std::string::npos);
}

// The error of a kernel names the node in the body and the user's line.
TEST(While, ErrorsInsideNameNodeAndLine) {
  auto f = function([](const Tensor& x) {
    return while_loop(
        [](const Tensor& i) { return math::less(i, constant(int64_t{9})); },
        [&](const Tensor& i) {
          return i + 1 + math::cast(gather(x, i), int64);  // 3 rows
        },
        constant(int64_t{0}));
  });
  // A simulated accelerator would stay in an error state.
  const auto on = device("/CPU:0");
  const std::string m = text_of_error([&] { f(zeros({3}, float64)); });
  EXPECT_NE(m.find("Gather"), std::string::npos) << m;
  EXPECT_NE(m.find("control_flow_test.cc"), std::string::npos) << m;
}

// The body sees in each iteration what cond writes.
TEST(While, ConditionsMayWriteVariables) {
  const Variable v(f64(0));
  const auto run = [&](const Tensor& x) {
    return while_loop(
        [&](const Tensor& s) {
          v.assign_add(f64(1));
          return math::less(s, f64(10));
        },
        [&](const Tensor& s) { return s + v * x; }, zeros_like(x));
  };
  // 1 + 2 + 3 + 4 >= 10; the condition runs a fifth time.
  EXPECT_EQ(function(run)(f64(1)).item<double>(), 10);
  EXPECT_EQ(v.value().item<double>(), 5);
}

}  // namespace
}  // namespace berth
