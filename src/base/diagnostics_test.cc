#include "base/diagnostics.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth {
namespace {

class Diagnostics : public ::testing::Test {
 protected:
  Diagnostics() {
    reset_diagnostics_for_testing();
    debugging::set_diagnostic_handler(
        [this](const debugging::Diagnostic& d) { got_.push_back(d.text); });
  }
  ~Diagnostics() override {
    debugging::set_diagnostic_handler({});
    reset_diagnostics_for_testing();
  }
  std::vector<std::string> got_;
};

TEST_F(Diagnostics, GoToTheHandlerEachTime) {
  report({"a", debugging::Severity::kWarning, "one"});
  report({"a", debugging::Severity::kWarning, "one"});
  EXPECT_EQ(got_, (std::vector<std::string>{"one", "one"}));
}

TEST_F(Diagnostics, AreReportedOncePerIdAndKeyAndCountedAlways) {
  EXPECT_TRUE(report_once("k", {"a", debugging::Severity::kLint, "1"}));
  EXPECT_FALSE(report_once("k", {"a", debugging::Severity::kLint, "2"}));
  EXPECT_TRUE(report_once("k", {"b", debugging::Severity::kLint, "3"}));
  EXPECT_TRUE(report_once("l", {"a", debugging::Severity::kLint, "4"}));
  EXPECT_EQ(got_, (std::vector<std::string>{"1", "3", "4"}));
  EXPECT_EQ(debugging::diagnostic_counts().at("a"), 3);
  EXPECT_EQ(debugging::diagnostic_counts().at("b"), 1);
}

TEST_F(Diagnostics, ANewHandlerReturnsTheOldOne) {
  const auto old = debugging::set_diagnostic_handler({});
  old({"x", debugging::Severity::kInfo, "through the old one"});
  EXPECT_EQ(got_.size(), 1u);
}

}  // namespace
}  // namespace berth
