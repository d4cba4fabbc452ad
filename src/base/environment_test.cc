#include "base/environment.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "berth/errors.h"

namespace berth {
namespace {

constexpr const char* kName = "BERTH_TEST_OF_ENVIRONMENT";

TEST(Environment, ASwitchIsOneOrZeroAndEmptyIsNotSet) {
  unsetenv(kName);
  EXPECT_TRUE(environment_switch(kName, true));
  EXPECT_FALSE(environment_switch(kName, false));
  for (const bool otherwise : {false, true}) {
    setenv(kName, "", 1);
    EXPECT_EQ(environment_switch(kName, otherwise), otherwise);
    setenv(kName, "1", 1);
    EXPECT_TRUE(environment_switch(kName, otherwise));
    setenv(kName, "0", 1);
    EXPECT_FALSE(environment_switch(kName, otherwise));
  }
  for (const char* bad : {"2", "yes", "maybe", "01", "1 ", "x"}) {
    setenv(kName, bad, 1);
    const std::string m = message_of<errors::InvalidArgument>(
        [] { environment_switch(kName, true); });
    EXPECT_TRUE(says(m, kName)) << bad;
    EXPECT_TRUE(says(m, "expected '1' or '0'")) << bad;
  }
  unsetenv(kName);
}

TEST(Environment, AChoiceIsOneOfAListAndElseItsFirst) {
  unsetenv(kName);
  EXPECT_EQ(environment_choice(kName, {"virtual", "real"}), "virtual");
  setenv(kName, "real", 1);
  EXPECT_EQ(environment_choice(kName, {"virtual", "real"}), "real");
  setenv(kName, "Real", 1);
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>([] {
                     environment_choice(kName, {"virtual", "real"});
                   }),
                   "is 'Real'; expected 'virtual' or 'real'"));
  unsetenv(kName);
}

}  // namespace
}  // namespace berth
