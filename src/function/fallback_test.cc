// Fallbacks in reports and contracts, where a simulated GPU lacks a kernel.

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fresh_process.h"
#include "berth/berth.h"

namespace berth {
namespace {

using fresh_process::check;

bool has(const std::string& text, const char* part) {
  return text.find(part) != text.npos;
}

// 100 floats: doubled, squared and halved again, all asked for on GPU:0, which
// cannot square.
auto without_square(placement::Contracts contract) {
  setenv("BERTH_SIM", "GPUx2", 1);
  setenv("BERTH_SIM_MISSING", "Square", 1);
  config::set_soft_device_placement(config::SoftPlacement::kSilent);
  return function(
      [](const Tensor& x) {
        const auto on = device("/GPU:0");
        return math::sqrt(math::square(math::add(x, x)));
      },
      {.name = "step", .contract = std::move(contract)});
}

Tensor hundred() {
  const auto on = device("/GPU:0");
  return ones({100});
}

void report_counts_them() {
  auto f = without_square({});
  f(hundred());
  const placement::Report r = f.placement();
  check(r.fallbacks.size() == 1, "one fallback");
  const placement::FallbackRow& row = r.fallbacks[0];
  check(row.op == "Square" && has(row.device, "CPU:0"), row.op + row.device);
  check(has(row.requested, "GPU:0"), row.requested);
  check(has(row.reason, "no kernel"), row.reason);
  check(row.site.line > 0, "its line is known");
  check(row.bytes == 800, "400 bytes go, and 400 come back");
  check(has(r.device_of("Square"), "CPU:0"), "it ran there");
  check(r.summary() == "fallbacks: 1 op, 800 B per step", r.summary());
  check(has(r.str(), "no kernel"), r.str());
}

void no_fallback_refuses() {
  auto f = without_square(placement::Contract{.no_fallback = true});
  try {
    f(hundred());
    check(false, "it must throw");
  } catch (const errors::FailedPrecondition& e) {
    const std::string m = e.what();
    check(has(m, "no op runs elsewhere than asked for") && has(m, "Square") &&
              has(m, "CPU:0") && has(m, "800 B per step") &&
              has(m, "fallback_test.cc:"),
          m);
  }
}

void a_block_refuses() {
  auto f = without_square({});
  const Tensor x = hundred();
  f(x);
  auto keep = placement::contract({.no_fallback = true});
  try {
    f(x);
    check(false, "the call must throw");
  } catch (const errors::FailedPrecondition&) {
  }
  const auto on = device("/GPU:0");
  math::add(x, x);
  try {
    math::square(x);
    check(false, "the eager call must throw");
  } catch (const errors::FailedPrecondition& e) {
    check(has(e.what(), "runs on CPU:0"), e.what());
  }
}

void stays_on_tells_why() {
  auto f = without_square(placement::Contract{.stays_on = "GPU:0"});
  try {
    f(hundred());
    check(false, "it must throw");
  } catch (const errors::FailedPrecondition& e) {
    check(has(e.what(), "no kernel") && has(e.what(), "400 bytes"), e.what());
  }
}

TEST(Fallbacks, AreCountedWithTheirBytes) {
  IN_A_FRESH_PROCESS(report_counts_them());
}
TEST(Fallbacks, BreakAContractThatForbidsThem) {
  IN_A_FRESH_PROCESS(no_fallback_refuses());
}
TEST(Fallbacks, BreakABlockThatForbidsThem) {
  IN_A_FRESH_PROCESS(a_block_refuses());
}
TEST(Fallbacks, AreTheReasonWhyAnOpLeavesItsDevice) {
  IN_A_FRESH_PROCESS(stays_on_tells_why());
}

}  // namespace
}  // namespace berth
