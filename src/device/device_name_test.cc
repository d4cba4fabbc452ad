#include "device/device_name.h"

#include <gtest/gtest.h>

#include "berth/errors.h"

namespace berth {
namespace {

std::string canonical(const char* text) {
  return DeviceName::parse(text).str();
}

TEST(DeviceName, AcceptsWhatIsUnambiguous) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", ""},
      {"/", ""},
      {"GPU:0", "/device:GPU:0"},
      {"gpu:1", "/device:GPU:1"},
      {"GPU", "/device:GPU:*"},
      {"/cpu", "/device:CPU:*"},
      {"/Gpu:0", "/device:GPU:0"},
      {"/cpu:0", "/device:CPU:0"},
      {"/GPU:3", "/device:GPU:3"},
      {"/device:GPU", "/device:GPU:*"},
      {"/device:gpu:0", "/device:GPU:0"},
      {"/device:GPU:*", "/device:GPU:*"},
      {"/device:*", ""},
      {"/device:*:*", ""},
      {"/job:*/replica:4/gpu:*", "/replica:4/device:GPU:*"},
      {"/job:worker/replica:1/task:2/device:GPU:3",
       "/job:worker/replica:1/task:2/device:GPU:3"},
      {"/device:GPU:3/task:2/job:worker", "/job:worker/task:2/device:GPU:3"},
      {"/job:ps_2/task:10", "/job:ps_2/task:10"},
      {"/device:TPU_v4:0", "/device:TPU_V4:0"},
      {"/GPU:0/device:GPU:0", "/device:GPU:0"},
      {"/task:*", ""},
  };
  for (const auto& [text, expected] : kCases) {
    EXPECT_EQ(canonical(text), expected) << text;
    // What is printed is read back.
    EXPECT_EQ(canonical(expected), expected);
  }
}

TEST(DeviceName, RefusesTheRestWithAReason) {
  const std::pair<const char*, const char*> kCases[] = {
      {"/device:GPU:0/cpu:0", "two values for the device type"},
      {"/GPU:0/GPU:1", "two values for the device number"},
      {"/job:a/job:b", "two values for the job"},
      {"/task:1/task:2", "two values for the task"},
      {"/task:-2/GPU:0", "task is '-2', expected a number"},
      {"/task:1x", "expected a number"},
      {"/job:123/GPU:0", "job '123' is not a word"},
      {"/job:/GPU:0", "job '' is not a word"},
      {"/job:a-b", "is not a word"},
      {"/physical_device:GPU:0", "has no meaning"},
      {"/physical_device:GPU", "neither a part"},
      {"/TPU:0", "write '/device:TPU:0'"},
      {"/GPU:", "the device number is ''"},
      {"/GPU:0:1", "has no meaning"},
      {"/GPU:1.5", "expected a number"},
      {"/GPU:-1", "expected a number"},
      {"/GPU:99999999999999999999", "expected a number"},
      {"/device:0", "device type '0' is not a word"},
      {"/device:*:1", "a device number needs a device type"},
      {"/device", "has no meaning"},
      {"//", "has no meaning"},
      {"/GPU:0/", "has no meaning"},
      {" /GPU:0", "has no meaning"},
      {"/replica:a", "expected a number"},
      {"the fast one", "has no meaning"},
  };
  for (const auto& [text, reason] : kCases) {
    try {
      DeviceName::parse(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const errors::InvalidArgument& e) {
      const std::string m = e.what();
      EXPECT_NE(m.find(reason), m.npos) << text << ": " << m;
      EXPECT_NE(m.find("'" + std::string(text) + "'"), m.npos) << m;
    }
  }
}

TEST(DeviceName, InnerPartsWinPartByPart) {
  auto merged = [](const char* inner, const char* outer) {
    return DeviceName::parse(inner).merged_over(DeviceName::parse(outer)).str();
  };
  EXPECT_EQ(merged("/GPU:1", "/job:worker/task:3/GPU:0"),
            "/job:worker/task:3/device:GPU:1");
  EXPECT_EQ(merged("/task:2", "/job:worker/task:3/GPU:0"),
            "/job:worker/task:2/device:GPU:0");
  EXPECT_EQ(merged("/device:GPU", "/GPU:2"), "/device:GPU:2");
  // The number belonged to another type.
  EXPECT_EQ(merged("/device:CPU", "/GPU:2"), "/device:CPU:*");
  EXPECT_EQ(merged("", "/GPU:2"), "/device:GPU:2");
}

TEST(DeviceName, MatchesWhenEveryPartThatIsSetAgrees) {
  const DeviceName full =
      DeviceName::parse("/job:worker/replica:0/task:1/device:GPU:2");
  for (const char* yes :
       {"", "/GPU:2", "/device:GPU", "/task:1", "/job:worker/GPU:2"}) {
    EXPECT_TRUE(DeviceName::parse(yes).matches(full)) << yes;
  }
  for (const char* no : {"/GPU:1", "/CPU:2", "/task:0", "/job:ps/GPU:2"}) {
    EXPECT_FALSE(DeviceName::parse(no).matches(full)) << no;
  }
  EXPECT_TRUE(full.is_complete());
  EXPECT_FALSE(DeviceName::parse("/GPU:2").is_complete());
}

}  // namespace
}  // namespace berth
