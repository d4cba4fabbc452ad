// Every case of placing and partitioning: in this process and by `berth place`.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ostream>

#include "conformance/place/outcome.h"

namespace berth::conformance {

struct CaseRun {
  const PlaceCase* place_case;
  PlacePolicy policy;
};

// "B4_5a_a_node_joins_.../tensorflow" and where it stands.
void PrintTo(const CaseRun& run, std::ostream* out) {
  *out << run.place_case->file << ".txt:" << run.place_case->line;
}

namespace {

std::vector<CaseRun> all_runs() {
  std::vector<CaseRun> runs;
  for (const PlaceCase& c : all_place_cases()) {
    if (c.kind == CaseKind::kEager) continue;
    for (PlacePolicy p : {PlacePolicy::kBerth, PlacePolicy::kTensorFlow}) {
      if (c.expected(p).given) runs.push_back({&c, p});
    }
  }
  return runs;
}

std::string name_of_run(const testing::TestParamInfo<CaseRun>& info) {
  const PlaceCase& c = *info.param.place_case;
  std::string name = c.rules[0] + "_" + c.title;
  for (char& ch : name) {
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  }
  return fmt::format(
      "{}_{}_{}", name, c.line,
      info.param.policy == PlacePolicy::kBerth ? "default" : "tensorflow");
}

class Place : public testing::TestWithParam<CaseRun> {};
class PlaceCommand : public testing::TestWithParam<CaseRun> {};

// A case known to fail must fail: its fix removes the mark.
void judge(const CaseRun& run, const Outcome& outcome) {
  const PlaceCase& c = *run.place_case;
  const Expected& expected = c.expected(run.policy);
  const std::string wrong = difference(c, expected, outcome);
  if (expected.known.empty()) {
    EXPECT_EQ(wrong, "");
  } else {
    EXPECT_NE(wrong, "") << "holds now: take 'known' away";
  }
}

TEST_P(Place, FollowsTheRule) {
  judge(GetParam(), run_here(*GetParam().place_case, GetParam().policy));
}

TEST_P(PlaceCommand, FollowsTheRule) {
  judge(GetParam(),
        run_command_line(*GetParam().place_case, GetParam().policy));
}

INSTANTIATE_TEST_SUITE_P(Rules, Place, testing::ValuesIn(all_runs()),
                         name_of_run);
INSTANTIATE_TEST_SUITE_P(Rules, PlaceCommand, testing::ValuesIn(all_runs()),
                         name_of_run);

}  // namespace
}  // namespace berth::conformance
