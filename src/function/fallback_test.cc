// Fallbacks in reports and contracts, where a simulated GPU lacks a kernel.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "base/diagnostics.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth {
namespace {

using fresh_process::check;

bool has(const std::string& text, const char* part) {
  return text.find(part) != text.npos;
}

// 100 floats: doubled, squared and halved again, all requested on GPU:0, which
// has no kernel to square.
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

// The bytes of one fallback: in the warning, in the report, and as the sum of
// the transfers whose cause names it.
struct Told {
  int64_t report = 0, transfers = 0;
  std::string warning, cause;
};

Told told_of(const std::function<Tensor(const Tensor&)>& body, int runs) {
  setenv("BERTH_SIM", "GPUx2", 1);
  setenv("BERTH_SIM_MISSING", "Square", 1);
  Told told;
  reset_diagnostics_for_testing();  // a warning is reported once
  debugging::set_diagnostic_handler([&](const debugging::Diagnostic& d) {
    if (d.id == "fallback") told.warning += d.text;
  });
  auto f = function(body, {.name = "step"});
  const Tensor x = hundred();
  for (int i = 0; i < runs; ++i) f(x);
  const placement::Report r = f.placement();
  check(r.fallbacks.size() == 1, r.str());
  told.report = r.fallbacks.at(0).bytes;
  for (const placement::TransferRow& t : r.transfers) {
    const bool argument = has(t.cause, "an argument");
    if (!argument) told.transfers += std::llround(t.bytes * t.runs_per_step);
    if (has(t.cause, "Square")) told.cause += t.cause + "; ";
  }
  debugging::set_diagnostic_handler({});
  return told;
}

void bytes_agree() {
  const auto on_gpu = [](const Tensor& x) {
    const auto on = device("/GPU:0");
    return math::sqrt(math::square(math::add(x, x)));
  };
  // 400 bytes there and 400 back.
  for (const int runs : {1, 5}) {
    const Told t = told_of(on_gpu, runs);
    check(t.report == 800 && t.transfers == 800, "both ways");
    check(has(t.warning, "; 800 B per step move because of it"), t.warning);
    check(has(t.cause, "on CPU:0, asked for \"/device:GPU:0\": no kernel for "),
          t.cause);
  }
  // What the caller holds elsewhere counts as an argument's transfer.
  const Told argument = told_of(
      [](const Tensor& x) {
        const auto on = device("/GPU:0");
        return math::square(x);
      },
      3);
  check(argument.report == 0 && argument.transfers == 0, "an argument");
  check(!has(argument.warning, "move because of it"), argument.warning);
  // Fused with its neighbours on the host.
  const Told fused = told_of(
      [](const Tensor& x) {
        Tensor y;
        {
          const auto on = device("/GPU:0");
          y = math::square(math::add(x, x));
        }
        const auto on = device("/CPU:0");
        return math::negative(math::sqrt(y) + 1.0f);
      },
      3);
  check(fused.report == 400 && fused.transfers == 400,
        "fused: " + std::to_string(fused.report));
  check(has(fused.warning, "; 400 B per step"), fused.warning);
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
    check(has(e.what(), "no kernel") && has(e.what(), "400 B"), e.what());
  }
}

TEST(Fallbacks, AreCountedWithTheirBytes) {
  IN_A_FRESH_PROCESS(report_counts_them());
}
TEST(Fallbacks, BytesAgreeInWarningReportAndTransfers) {
  IN_A_FRESH_PROCESS(bytes_agree());
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
