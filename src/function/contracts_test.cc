// Contracts of functions and blocks: each kind is kept by one program and
// broken by another.

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "function/sim_testing.h"
#include "ops/training.h"

namespace berth {
namespace {

using placement::Contract;

template <class Error = errors::FailedPrecondition, class Fn>
std::string message_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

testing::AssertionResult says(const std::string& text,
                              std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    if (text.find(part) == text.npos) {
      return testing::AssertionFailure() << "'" << part << "' not in: " << text;
    }
  }
  return testing::AssertionSuccess();
}

// The square of x + 1, each op on a device of its own.
Tensor program(const char* first, const char* second, const Tensor& x) {
  Tensor y;
  {
    const auto on = device(first);
    y = math::add(x, x);
  }
  const auto on = device(second);
  return math::square(y);
}

auto step(const char* first, const char* second, Contract contract) {
  return function(
      [=](const Tensor& x) { return program(first, second, x); },
      {.name = "step", .contract = placement::Contracts(std::move(contract))});
}

TEST(Contracts, StaysOnLetsArgumentsAndResultsAloneCross) {
  const Contract c{.name = "here", .stays_on = "/GPU:0"};
  auto kept = step("/GPU:0", "/GPU:0", c);
  EXPECT_EQ(kept(on_device("/CPU:0", {4}, 3)).to_vector<float>()[0], 36);
  auto broken = step("/GPU:0", "/GPU:1", c);
  const std::string m = message_of([&] { broken(on_device("/GPU:0", {4})); });
  EXPECT_TRUE(says(m, {"contract \"here\"", "\"/GPU:0\"", "function \"step\"",
                       "Square \"Square\"", "contracts_test.cc:",
                       "runs on GPU:1", "16 B GPU:0 -> GPU:1"}));
}

TEST(Contracts, ABrokenOneStopsBeforeTheFirstStep) {
  Variable v(on_device("/GPU:0", {4}));
  auto broken = function(
      [&](const Tensor& x) {
        v.assign_add(x);
        return program("/GPU:0", "/GPU:1", x);
      },
      {.contract = Contract{.stays_on = "/GPU:0"}});
  EXPECT_THROW(broken(on_device("/GPU:0", {4})), errors::FailedPrecondition);
  EXPECT_EQ(v.value().to_vector<float>()[0], 1);
}

TEST(Contracts, TransfersAddUpPerStep) {
  auto with = [](int64_t bytes) {
    return Contract{.transfers = {{"/GPU:0", "/GPU:1", bytes}}};
  };
  auto kept = step("/GPU:0", "/GPU:1", with(16));
  kept(on_device("/GPU:0", {4}));
  kept(on_device("/GPU:0", {4}));
  auto broken = step("/GPU:0", "/GPU:1", with(15));
  EXPECT_TRUE(says(message_of([&] { broken(on_device("/GPU:0", {4})); }),
                   {"at most 15 B per step", "not 16 B", "AddV2:0",
                    "16 B GPU:0 -> GPU:1", "read by \"Square\""}));
  // Nothing is sent the other way.
  auto other = step("/GPU:1", "/GPU:0", with(0));
  other(on_device("/GPU:1", {4}));
}

TEST(Contracts, TheBatchThatComesFromTheHostCounts) {
  const Contract c{.transfers = {{"CPU", "GPU", 0}}};
  auto f = step("/GPU:0", "/GPU:0", c);
  f(on_device("/GPU:0", {4}));
  EXPECT_TRUE(says(message_of([&] { f(on_device("/CPU:0", {4})); }),
                   {"at most 0 B", "an argument", "CPU:0 -> GPU:0"}));
  f(on_device("/GPU:0", {4}));  // still good
}

TEST(Contracts, PeakMemoryListsWhoHoldsIt) {
  const Variable w(on_device("/GPU:0", {1000}));
  auto limited = [&](int64_t bytes) {
    return function(
        [&](const Tensor& x) {
          const auto on = device("/GPU:0");
          return math::multiply(x, w);
        },
        {.contract = Contract{.peak_memory = {{"/GPU:0", bytes}}}});
  };
  // The variable, the argument and the result.
  auto kept = limited(12000);
  kept(on_device("/GPU:0", {1000}));
  auto broken = limited(11999);
  EXPECT_TRUE(says(message_of([&] { broken(on_device("/GPU:0", {1000})); }),
                   {"at most 11999 B", "not 12000 B on GPU:0", "variable",
                    "argument 0: 3.9 KiB", "result \"Mul\""}));
}

TEST(Contracts, OpsRunWhereTheyAreSaidTo) {
  auto kept = step("/GPU:0", "/GPU:1", {.ops = {{"Square", "/GPU:1"}}});
  kept(on_device("/GPU:0", {4}));
  auto broken = step("/GPU:0", "/GPU:0", {.ops = {{"Square", "/GPU:1"}}});
  EXPECT_TRUE(says(message_of([&] { broken(on_device("/GPU:0", {4})); }),
                   {"\"Square\" runs on \"/GPU:1\"", "runs on GPU:0"}));
}

// 40 updates become one op, which does not remember all their names.
TEST(Contracts, SeeEveryOpThatWasMerged) {
  std::vector<Variable> variables;
  for (int i = 0; i < 40; ++i) {
    variables.emplace_back(on_device("/CPU:0", {4}));
  }
  auto with = [&](const char* where) {
    return function(
        [&](const Tensor& x) {
          const auto on = device("/CPU:0");
          for (const Variable& v : variables) {
            training::apply_gradient_descent(v.handle(), constant(0.1f), x);
          }
        },
        {.contract =
             Contract{.ops = {{"ResourceApplyGradientDescent_38", where}}}});
  };
  auto kept = with("/CPU:0");
  kept(on_device("/CPU:0", {4}));
  EXPECT_LT(kept.placement().ops.size(), 40u);
  auto broken = with("/GPU:1");
  EXPECT_TRUE(says(message_of([&] { broken(on_device("/CPU:0", {4})); }),
                   {"ResourceApplyGradientDescent_38", "runs on CPU:0"}));
}

TEST(Contracts, ANameThatNoOpHasIsATypo) {
  auto f = step("/GPU:0", "/GPU:0", {.ops = {{"Sqare", "/GPU:0"}}});
  EXPECT_TRUE(says(
      message_of<errors::InvalidArgument>([&] { f(on_device("/GPU:0", {4})); }),
      {"no op \"Sqare\"", "\"Square\""}));
}

TEST(Contracts, MalformedDevicesAndLimitsAreRefusedAtOnce) {
  EXPECT_THROW(step("", "", {.stays_on = "/GPU:x"}), errors::InvalidArgument);
  EXPECT_THROW(step("", "", {.transfers = {{"CPU", "GPU", -1}}}),
               errors::InvalidArgument);
}

TEST(Contracts, SeveralHoldTogether) {
  auto f =
      function([](const Tensor& x) { return program("/GPU:0", "/GPU:1", x); },
               {.contract = std::vector<Contract>{
                    {.name = "a", .no_fallback = true},
                    {.name = "b", .transfers = {{"", "", 0}}}}});
  EXPECT_TRUE(says(message_of([&] { f(on_device("/GPU:0", {4})); }),
                   {"contract \"b\""}));
}

TEST(Contracts, AnOpThatFollowsItsVariableAndMovesNothingIsNoFallback) {
  const auto on_host = [](float v) {
    return with_device("/CPU:0", [&] { return Variable(constant(v)); });
  };
  const Variable count = on_host(0), rate = on_host(0.5f);
  auto f = function(
      [&](const Tensor& x) {
        const auto on = device("/GPU:0");
        count.assign_add(rate);
        return math::square(x);
      },
      {.contract = Contract{.no_fallback = true}});
  f(on_device("/GPU:0", {4}));
  EXPECT_EQ(count.value().item<double>(), 0.5);
  EXPECT_FALSE(f.placement().moved.empty());
}

TEST(Contracts, ABranchCountsWhenItIsTaken) {
  auto f = function(
      [](const Tensor& x, const Tensor& far) {
        const auto on = device("/GPU:0");
        const auto away = [&] {
          const auto elsewhere = device("/GPU:1");
          return math::square(x);
        };
        return cond(far, away, [&] { return math::add(x, x); });
      },
      {.contract = Contract{.transfers = {{"/GPU:0", "/GPU:1", 0}}}});
  const Tensor x = on_device("/GPU:0", {4});
  f(x, constant(false));
  EXPECT_TRUE(says(message_of([&] { f(x, constant(true)); }),
                   {"16 B GPU:0 -> GPU:1", "If/then_branch/"}));
}

TEST(ContractBlocks, CoverTheOpsTracedInside) {
  auto f = [](const char* inside, const char* outside) {
    return function([=](const Tensor& x) {
      Tensor y;
      {
        auto keep = placement::contract({.stays_on = "/GPU:0"});
        const auto on = device(inside);
        y = math::add(x, x);
      }
      const auto on = device(outside);
      return math::square(y);
    });
  };
  auto kept = f("/GPU:0", "/GPU:1");
  kept(on_device("/GPU:0", {4}));
  auto broken = f("/GPU:1", "/GPU:0");
  EXPECT_TRUE(says(message_of([&] { broken(on_device("/GPU:0", {4})); }),
                   {"everything must stay on \"/GPU:0\"", "AddV2", "GPU:1"}));
}

TEST(Contracts, OnADeviceThatIsNotThereSaySo) {
  auto f = function([](const Tensor& x) { return x + x; },
                    {.contract = placement::Contract{.stays_on = "/GPU:7"}});
  EXPECT_TRUE(
      says(message_of([&] { f(on_device("/GPU:0", {4})); }),
           {"must stay on \"/GPU:7\", which is not there: there are CPU:0, "
            "GPU:0"}));
}

TEST(ContractBlocks, ReachBodiesAndCountTheirTurns) {
  auto f = [](int64_t bytes) {
    return function([=](const Tensor& x, const Tensor& n) {
      auto keep =
          placement::contract({.transfers = {{"/GPU:0", "/GPU:1", bytes}}});
      const auto on = device("/GPU:0");
      return while_loop([&](const Tensors& v) { return math::less(v[0], n); },
                        [](const Tensors& v) {
                          const auto elsewhere = device("/GPU:1");
                          const Tensor y = math::square(v[1]);
                          return Tensors{v[0] + 1, y};
                        },
                        Tensors{constant(0), x})[1];
    });
  };
  const Tensor x = on_device("/GPU:0", {25});
  // The counter is sent too: v[0] + 1 is requested there.
  auto kept = f(3 * 104);
  kept(x, constant(3));
  auto broken = f(2 * 104);
  broken(x, constant(2));
  EXPECT_TRUE(
      says(message_of([&] { broken(x, constant(3)); }), {"While/body/"}));
  broken(x, constant(2));  // each step is counted separately
}

TEST(ContractBlocks, HoldWhenTheFunctionIsInlinedOrDifferentiated) {
  auto inner = function([](const Tensor& x) {
    auto keep = placement::contract({.stays_on = "/GPU:0"});
    const auto on = device("/GPU:1");
    return math::square(x);
  });
  auto outer = function([&](const Tensor& x) { return inner(x) + 1; });
  const Tensor x = on_device("/GPU:0", {4});
  EXPECT_THROW(outer(x), errors::FailedPrecondition);
  GradientTape tape;
  tape.watch(x);
  EXPECT_THROW(inner(x), errors::FailedPrecondition);
}

TEST(ContractBlocks, CheckEagerOpsBeforeTheyRun) {
  const Tensor x = on_device("/GPU:0", {4});
  auto keep = placement::contract({.name = "eager", .stays_on = "/GPU:0"});
  {
    const auto on = device("/GPU:0");
    math::add(x, x);
  }
  const auto on = device("/GPU:1");
  EXPECT_TRUE(says(
      message_of([&] { math::add(x, x); }),
      {"contract \"eager\"", "AddV2", "runs on GPU:1", "contracts_test.cc:"}));
}

TEST(ContractBlocks, EagerBytesAddUpOverTheBlock) {
  const Tensor x = on_device("/CPU:0", {25});
  auto keep = placement::contract({.transfers = {{"CPU", "GPU", 200}}});
  const auto on = device("/GPU:0");
  math::square(x);
  math::square(x);
  EXPECT_EQ(keep.moved_bytes(), 200);
  EXPECT_TRUE(says(message_of([&] { math::square(x); }),
                   {"at most 200 B", "not 300 B", "200 B moved before",
                    "100 B from CPU:0 to GPU:0"}));
}

TEST(ContractBlocks, CoverCallsOfFunctions) {
  auto f = function([](const Tensor& x) {
    const auto on = device("/GPU:1");
    return math::square(x);
  });
  const Tensor x = on_device("/CPU:0", {25});
  f(x);
  {
    auto keep = placement::contract({.transfers = {{"CPU", "GPU", 250}}});
    f(x);
    f(x);
    EXPECT_THROW(f(x), errors::FailedPrecondition);
  }
  auto keep = placement::contract({.stays_on = "/GPU:0"});
  EXPECT_THROW(f(x), errors::FailedPrecondition);
}

TEST(ContractBlocks, MayCloseInAnyOrder) {
  const Tensor x = on_device("/GPU:0", {4});
  auto a = std::make_unique<placement::ContractScope>(
      Contract{.stays_on = "/GPU:1"}, Site{});
  auto b = std::make_unique<placement::ContractScope>(
      Contract{.stays_on = "/GPU:0"}, Site{});
  const auto on = device("/GPU:0");
  EXPECT_THROW(math::add(x, x), errors::FailedPrecondition);
  a.reset();
  math::add(x, x);
  b.reset();
  const auto elsewhere = device("/GPU:1");
  math::add(x, x);
}

TEST(ContractBlocks, KnowWhenANameNeverCame) {
  auto keep = placement::contract({.ops = {{"Sqare", "/GPU:0"}}});
  math::square(on_device("/GPU:0", {4}));
  EXPECT_THROW(keep.check(), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth
