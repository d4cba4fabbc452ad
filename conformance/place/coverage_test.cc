// README.md lists the rules; each has cases, and each case has a rule.

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "conformance/place/case.h"

namespace berth::conformance {

namespace {

using Counts = std::map<std::string, int>;  // file -> cases

// Rule -> files with cases of it. Programs count too: their test suites are
// named B2_6 for rule B2.6.
std::map<std::string, Counts> cases_of_rules() {
  std::map<std::string, Counts> rules;
  for (const PlaceCase& c : all_place_cases()) {
    for (const std::string& rule : c.rules) ++rules[rule][c.file];
  }
  std::ifstream names(place_folder() + "/names.txt");
  std::string line, rule;
  while (std::getline(names, line)) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> w = words_of(line);
    if (w[0] == "rule") {
      rule = w[1];
    } else {
      ++rules[rule]["names"];
    }
  }
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    std::string name = suite.name();
    if (name.size() < 4 || name[0] != 'B' || name[2] != '_') continue;
    name[2] = '.';
    rules[name]["rules_test.cc"] += suite.total_test_count();
  }
  return rules;
}

std::string str(const Counts& counts) {
  std::string s;
  for (const auto& [file, n] : counts) {
    s += (s.empty() ? "" : ", ") + file + " " + std::to_string(n);
  }
  return s;
}

// The rows "| B4.6c | what it says | groups 3, kernels 1 |".
std::map<std::string, std::string> table() {
  std::ifstream in(place_folder() + "/README.md");
  std::map<std::string, std::string> rows;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| B")) continue;
    const size_t rule_end = line.find(" |", 2);
    const size_t end = line.rfind(" |");
    const size_t last = line.rfind("| ", end - 1);
    const bool first = rows.emplace(line.substr(2, rule_end - 2),
                                    line.substr(last + 2, end - last - 2))
                           .second;
    EXPECT_TRUE(first) << "again: " << line;
  }
  return rows;
}

TEST(PlaceRules, EveryRuleHasCasesAndTheTableSaysWhich) {
  const auto rows = table();
  const auto rules = cases_of_rules();
  EXPECT_GT(rows.size(), 50u);
  for (const auto& [rule, listed] : rows) {
    const auto it = rules.find(rule);
    ASSERT_NE(it, rules.end()) << rule << " has no case";
    EXPECT_EQ(listed, str(it->second)) << rule;
  }
  for (const auto& [rule, counts] : rules) {
    EXPECT_TRUE(rows.contains(rule)) << rule << " is not in README.md";
  }
}

TEST(PlaceRules, ThereAreManyCases) {
  EXPECT_GE(all_place_cases().size(), 180u);
}

}  // namespace
}  // namespace berth::conformance
