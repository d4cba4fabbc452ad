// Functions under the three policies of soft placement, on simulated GPUs
// without a kernel for Floor. Each test runs in its own process.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth {
namespace {

using fresh_process::check;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<debugging::Diagnostic>& told() {
  static std::vector<debugging::Diagnostic> list;
  return list;
}

void begin() {
  setenv("BERTH_SIM", "GPUx2", 1);
  setenv("BERTH_SIM_MISSING", "Floor", 1);
  debugging::set_diagnostic_handler(
      [](const debugging::Diagnostic& d) { told().push_back(d); });
}

// On GPU:1: add, floor, multiply.
Tensor soft_step(const Tensor& x) {
  const auto on = device("/GPU:1");
  return math::floor(x + 0.5f) * 2.0f;
}

std::vector<std::string> fallbacks() {
  std::vector<std::string> texts;
  for (const debugging::Diagnostic& d : told()) {
    if (d.id == "fallback") texts.push_back(d.text);
  }
  return texts;
}

void warns_once() {
  begin();
  auto f = function(soft_step);
  const Tensor y = f(constant({1.0f, 2.7f, -1.2f}));
  check(y.to_vector<float>() == std::vector<float>{2, 6, -2}, "the result");
  check(has(y.device(), "GPU:1"), "the result is on GPU:1");
  check(fallbacks().size() == 1, "one warning");
  const std::string text = fallbacks()[0];
  std::cerr << text << std::endl;
  check(has(text, "Floor"), "names the op");
  check(has(text, "soft_placement_test.cc:"), "names the line");
  check(has(text, "no kernel for float32 on GPU:1"), "says why");
  // Three floats go to the CPU and three come back.
  check(has(text, "24 B per step"), "says what it costs");
  auto g = function(soft_step);
  g(constant({1.0f, 2.0f, 3.0f}));
  check(fallbacks().size() == 1, "still one warning");
  check(debugging::diagnostic_counts()["fallback"] == 2, "counted twice");
}

void counts_silently() {
  begin();
  config::set_soft_device_placement(config::SoftPlacement::kSilent);
  auto f = function(soft_step);
  f(constant({1.0f, 2.7f, -1.2f}));
  check(fallbacks().empty(), "silence");
  check(debugging::diagnostic_counts()["fallback"] == 1, "counted");
}

void throws_named_error() {
  begin();
  config::set_soft_device_placement(false);
  auto f = function(soft_step);
  try {
    f(constant({1.0f, 2.7f, -1.2f}));
    check(false, "an error");
  } catch (const errors::Unimplemented& e) {
    std::cerr << e.what() << std::endl;
    check(has(e.what(), "Floor"), "names the op");
    check(has(e.what(), "soft_placement_test.cc:"), "names the line");
    check(has(e.what(), "have one: CPU:0"), "says who can");
  }
}

// What the graph rewrites could compute, or drop, before placement sees it.
void no_rewrite_hides_a_missing_kernel() {
  begin();
  setenv("BERTH_SIM_MISSING", "Floor,Neg,AddV2", 1);
  using Step = std::function<Tensor(const Tensor&)>;
  const std::vector<std::pair<std::string, Step>> steps = {
      {"Floor",
       [](const Tensor& x) { return x * math::floor(constant(2.5f)); }},
      {"Neg",
       [](const Tensor& x) { return math::negative(math::negative(x)); }},
      {"AddV2", [](const Tensor& x) { return x * 3.0f + -0.0f; }},
  };
  for (const auto& [op, step] : steps) {
    const auto on_gpu = [&step = step](const Tensor& x) {
      const auto on = device("/GPU:1");
      return step(x);
    };
    auto f = function(on_gpu);
    config::set_soft_device_placement(true);
    check(f(constant({1.0f, 2.0f})).num_elements() == 2, op + ", softly");
    // The plan of before does not count.
    config::set_soft_device_placement(false);
    try {
      f(constant({1.0f, 2.0f}));
      check(false, "an error for " + op);
    } catch (const errors::Unimplemented& e) {
      check(has(e.what(), op), op + ": " + e.what());
      check(has(e.what(), "have one: CPU:0"), e.what());
    }
    // Where nobody asked for a device that lacks it, it runs.
    auto anywhere = function(step);
    check(anywhere(constant({1.0f, 2.0f})).num_elements() == 2, op);
  }
  // What the device can compute is still computed once.
  auto kept = function([](const Tensor& x) {
    const auto on = device("/GPU:1");
    return x * math::sqrt(constant(9.0f));
  });
  check(kept(constant({1.0f, 2.0f})).to_vector<float>() ==
            std::vector<float>{3, 6},
        "the product");
  check(!has(kept.text("optimize"), "= Sqrt("), kept.text("optimize"));
}

void logs_one_line_per_node() {
  begin();
  debugging::set_log_device_placement(true);
  auto f = function(soft_step);
  f(constant({1.0f, 2.7f, -1.2f}));
  int floors = 0;
  for (const debugging::Diagnostic& d : told()) {
    floors += d.id == "placement" && has(d.text, ": (Floor): CPU:0");
  }
  check(floors == 1, "one line for Floor");
}

TEST(SoftPlacement, WarnsOnceWithLineReasonAndBytes) {
  IN_A_FRESH_PROCESS(warns_once());
}
TEST(SoftPlacement, CountsSilently) { IN_A_FRESH_PROCESS(counts_silently()); }
TEST(SoftPlacement, OffIsAnErrorThatNamesOpLineAndDevices) {
  IN_A_FRESH_PROCESS(throws_named_error());
}
TEST(SoftPlacement, OffIsAnErrorForOpsThatRewritesWouldTakeAway) {
  IN_A_FRESH_PROCESS(no_rewrite_hides_a_missing_kernel());
}
TEST(SoftPlacement, PlacementIsLoggedWhenAStepIsCompiled) {
  IN_A_FRESH_PROCESS(logs_one_line_per_node());
}

}  // namespace
}  // namespace berth
