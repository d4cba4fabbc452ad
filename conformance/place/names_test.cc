// The device names of names.txt: one check per line.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "berth/errors.h"
#include "conformance/place/case.h"
#include "device/device_name.h"

namespace berth::conformance {

namespace {

using Words = std::vector<std::string>;

// What `make` says; "error: MESSAGE" when it throws.
template <class Make>
std::string said(Make&& make) {
  try {
    return make();
  } catch (const errors::InvalidArgument& e) {
    return std::string("error: ") + e.what();
  }
}

DeviceName parsed(const std::string& text) { return DeviceName::parse(text); }

void check_name(const Words& w) {
  EXPECT_EQ(said([&] { return parsed(w[1]).str(); }), w[3]);
  EXPECT_EQ(said([&] { return parsed(w[3]).str(); }), w[3]) << "read again";
}

void check_error(const Words& w) {
  const std::string m = said([&] { return parsed(w[1]).str(); });
  EXPECT_TRUE(m.starts_with("error: ")) << m;
  EXPECT_NE(m.find("'" + w[1] + "'"), m.npos) << m;
  EXPECT_NE(m.find(w[2]), m.npos) << m;
}

void check_scope(const Words& w) {
  EXPECT_EQ(parsed(w[1]).merged_over(parsed(w[3])).str(), w[5]);
}

void check_canonical(const Words& w) {
  EXPECT_EQ(said([&] { return canonicalise(w[1], w[3]); }), w[5]);
}

// join [soft] A B -> C | error WORD
void check_join(const Words& w) {
  const bool soft = w[1] == "soft";
  const size_t at = soft ? 2 : 1;
  const MergeConflict on = soft ? MergeConflict::kDrop : MergeConflict::kFail;
  for (const bool swapped : {false, true}) {
    const std::string &a = w[at + swapped], &b = w[at + !swapped];
    const std::string got =
        said([&] { return merge(parsed(a), parsed(b), on).str(); });
    if (w[at + 3] != "error") {
      EXPECT_EQ(got, w[at + 3]);
      continue;
    }
    EXPECT_TRUE(got.starts_with("error: ")) << got;
    for (const std::string& word : {w[at + 4], parsed(a).str()}) {
      EXPECT_NE(got.find(word), got.npos) << got;
    }
  }
}

void check_predicate(const Words& w) {
  const DeviceName a = parsed(w[1]);
  const bool wanted = w.back() == "yes";
  if (w[0] == "complete") {
    EXPECT_EQ(a.is_complete(), wanted);
    return;
  }
  const DeviceName b = parsed(w[2]);
  if (w[0] == "matches") {
    EXPECT_EQ(a.matches(b), wanted);
  } else {
    EXPECT_EQ(are_compatible(a, b), wanted);
    EXPECT_EQ(are_compatible(b, a), wanted);
  }
}

void check_line(const Words& w) {
  if (w[0] == "name") return check_name(w);
  if (w[0] == "error") return check_error(w);
  if (w[0] == "scope") return check_scope(w);
  if (w[0] == "canonical") return check_canonical(w);
  if (w[0] == "join") return check_join(w);
  if (w[0] == "matches" || w[0] == "compatible" || w[0] == "complete") {
    return check_predicate(w);
  }
  FAIL() << "unknown check " << w[0];
}

TEST(DeviceNames, FollowTheRules) {
  std::ifstream in(place_folder() + "/names.txt");
  std::string line, rule;
  int number = 0, checks = 0;
  while (std::getline(in, line)) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const Words w = words_of(line);
    if (w[0] == "rule") {
      rule = w[1];
      continue;
    }
    SCOPED_TRACE(fmt::format("names.txt:{} {}: {}", number, rule, line));
    check_line(w);
    ++checks;
  }
  EXPECT_GT(checks, 90);
}

}  // namespace
}  // namespace berth::conformance
