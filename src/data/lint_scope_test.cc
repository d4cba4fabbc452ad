// Loops over datasets inside device scopes.

#include <gtest/gtest.h>

#include "base/diagnostics_testing.h"
#include "berth/data.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "data/testing.h"

namespace berth::data {
namespace {

const char* const kId = "dataset-in-device-scope";

int64_t count(const Dataset& d) {
  int64_t n = 0;
  for (const Tensors& element : d) n += element.size() == 1;
  return n;
}

TEST(LintScope, NamesTheLoopTheDatasetAndTheScope) {
  const Heard heard;
  const auto rows = Dataset::range(6).batch(2);
  const int made = __LINE__ - 1;
  const auto on = device("/GPU:1");
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Tensors& element : rows) EXPECT_EQ(element[0].shape()[0], 2);
  }
  const std::string text = heard.text_of(kId);
  const auto line = [](int n) {
    return "(lint_scope_test.cc:" + std::to_string(n) + ")";
  };
  EXPECT_NE(text.find("dataset " + line(made)), std::string::npos) << text;
  EXPECT_NE(text.find("iterated " + line(made + 4)), std::string::npos) << text;
  EXPECT_NE(text.find("scope of GPU:1"), std::string::npos) << text;
}

TEST(LintScope, AScopeInsideTheLoopIsWhatIsMeant) {
  const Heard heard;
  for (const Tensors& element : Dataset::range(3)) {
    const auto on = device("/GPU:0");
    EXPECT_EQ(element.size(), 1u);
  }
  EXPECT_EQ(heard.text_of(kId), "0");
}

TEST(LintScope, AScopeAroundTheMakingOfADatasetIsLeftAlone) {
  const Heard heard;
  std::optional<Dataset> d;
  with_device("/GPU:0", [&] { d = Dataset::range(3).shuffle(3); });
  EXPECT_EQ(count(*d), 3);
  EXPECT_EQ(heard.text_of(kId), "0");
}

TEST(LintScope, AHostScopeIsLeftAlone) {
  const Heard heard;
  const auto on = device("/CPU:0");
  EXPECT_EQ(count(Dataset::range(3)), 3);
  EXPECT_EQ(heard.text_of(kId), "0");
}

TEST(LintScope, ShuffleRefusesAutotuneByName) {
  try {
    Dataset::range(3).shuffle(AUTOTUNE);
    FAIL() << "expected an error";
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("buffer_size is AUTOTUNE"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace berth::data
