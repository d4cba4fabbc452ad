#include "device/device_name.h"

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "device/parse_among.h"
#include "device/request_text.h"

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

void existing_devices() {
  config::set_simulated_devices("GPUx2");
  config::list_logical_devices();
  for (const char* name : {"/TPU:0", "cuda:0"}) {
    fresh_process::refuses<errors::InvalidArgument>(
        [&] { DeviceName::parse(name); },
        "; there are CPU:0, GPU:0 (simulated), GPU:1 (simulated); expected");
    fresh_process::refuses<errors::InvalidArgument>(
        [&] { parse_among(name, "CPU:5"); }, "; there are CPU:5; expected");
  }
}
TEST(DeviceName, ListsTheDevicesThatExist) {
  IN_A_FRESH_PROCESS(existing_devices());
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
      {"/physical_device:GPU:1", "write '/GPU:1', or the name of a logical"},
      {"/physical_device:GPU", "name of a physical device"},
      {"/TPU:0", "write '/device:TPU:0'"},
      {"/GPU0", "write '/GPU:0'"},
      {"gpu12", "write '/GPU:12'"},
      {"cuda:0", "write '/GPU:0'; there are "},
      {"/CUDA:3", "write '/GPU:3'"},
      {"mps", "write '/GPU:0'"},
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

DeviceName name(const char* text) { return DeviceName::parse(text); }

std::string merged(const char* a, const char* b, MergeConflict conflict) {
  try {
    return merge(name(a), name(b), conflict).str();
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
}

TEST(DeviceName, MergingAddsPartsAndDealsWithConflictsAsAsked) {
  constexpr auto kFail = MergeConflict::kFail;
  constexpr auto kDrop = MergeConflict::kDrop;
  constexpr auto kOverride = MergeConflict::kOverride;
  const struct {
    const char *a, *b, *fail, *drop, *override_;
  } kCases[] = {
      {"/job:w", "/task:1/GPU:0", "/job:w/task:1/device:GPU:0",
       "/job:w/task:1/device:GPU:0", "/job:w/task:1/device:GPU:0"},
      {"", "", "", "", ""},
      {"/device:GPU", "/GPU:2", "/device:GPU:2", "/device:GPU:2",
       "/device:GPU:2"},
      // Types differ: type and number go. Numbers differ: the number goes.
      {"/job:w/GPU:0", "/CPU:1", "types", "/job:w", "/job:w/device:CPU:1"},
      {"/job:w/GPU:0", "/device:CPU", "types", "/job:w", "/job:w/device:CPU:*"},
      {"/GPU:0", "/task:3/GPU:1", "ids", "/task:3/device:GPU:*",
       "/task:3/device:GPU:1"},
      {"/job:a", "/job:b/GPU:0", "jobs", "jobs", "jobs"},
      {"/replica:1", "/replica:2", "replicas", "replicas", "replicas"},
      {"/task:1", "/task:2", "tasks", "tasks", "tasks"},
  };
  for (const auto& c : kCases) {
    const std::pair<MergeConflict, const char*> kExpected[] = {
        {kFail, c.fail}, {kDrop, c.drop}, {kOverride, c.override_}};
    for (const auto& [conflict, expected] : kExpected) {
      const std::string got = merged(c.a, c.b, conflict);
      if (*expected == '/' || *expected == '\0') {
        EXPECT_EQ(got, expected) << c.a << " " << c.b;
      } else {
        const std::string text =
            std::string("cannot merge devices with incompatible ") + expected +
            ": '" + name(c.a).str() + "' and '" + name(c.b).str() + "'";
        EXPECT_EQ(got.substr(0, text.size()), text);
      }
    }
  }
}

TEST(DeviceName, CanonicalNamesTakeOpenPartsFromAFullBase) {
  const char* base = "/job:w/replica:1/task:2/device:GPU:3";
  EXPECT_EQ(canonicalise("", base), base);
  EXPECT_EQ(canonicalise("/task:0", base),
            "/job:w/replica:1/task:0/device:GPU:3");
  EXPECT_EQ(canonicalise("gpu:0", base),
            "/job:w/replica:1/task:2/device:GPU:0");
  EXPECT_EQ(canonicalise("/device:GPU", base), base);
  EXPECT_EQ(canonicalise("/job:ps/CPU:1", base),
            "/job:ps/replica:1/task:2/device:CPU:1");
  EXPECT_EQ(canonicalise("/cpu", base), "/job:w/replica:1/task:2/device:CPU:0");
  EXPECT_THROW(canonicalise("/GPU:0", "/GPU:1"), errors::InvalidArgument);
  EXPECT_THROW(canonicalise("/GPU:x", base), errors::InvalidArgument);
}

TEST(DeviceName, CompatibleNamesContradictEachOtherNowhere) {
  EXPECT_TRUE(are_compatible(name(""), name("/GPU:2")));
  EXPECT_TRUE(are_compatible(name("/job:w"), name("/GPU:2")));
  EXPECT_TRUE(are_compatible(name("/device:GPU"), name("/job:w/GPU:2")));
  EXPECT_FALSE(are_compatible(name("/GPU:1"), name("/GPU:2")));
  EXPECT_FALSE(are_compatible(name("/CPU:1"), name("/GPU:1")));
  EXPECT_FALSE(are_compatible(name("/job:a"), name("/job:b/GPU:2")));
  EXPECT_FALSE(are_compatible(name("/task:0"), name("/task:1")));
  EXPECT_FALSE(are_compatible(name("/replica:0"), name("/replica:1")));
}

TEST(DeviceName, WhatAsksForADeviceIsReadAndNamesItAlone) {
  std::vector<std::string> all;
  for (const char* job : {"localhost", "a", "worker"}) {
    for (const char* task : {"0", "1"}) {
      for (const char* type : {"CPU", "GPU", "NPU"}) {
        for (const char* id : {"0", "3"}) {
          all.push_back(std::string("/job:") + job + "/replica:0/task:" + task +
                        "/device:" + type + ":" + id);
        }
      }
    }
  }
  for (const std::string& one : all) {
    const DeviceName here = name("/job:localhost/replica:0/task:0/CPU:0");
    const std::string text = request_text(name(one.c_str()));
    EXPECT_EQ(DeviceName::parse(text).merged_over(here).str(), one) << text;
  }
  EXPECT_EQ(request_text(name(all[0].c_str())), "/CPU:0");
  EXPECT_EQ(request_text(name("/job:a/replica:0/task:0/device:CPU:0")),
            "/job:a/task:0/device:CPU:0");
}

TEST(DeviceName, ShortNamesSayTheJobOnlyOfOthers) {
  EXPECT_EQ(name("/job:localhost/replica:0/task:0/device:GPU:1").short_str(),
            "GPU:1");
  EXPECT_EQ(name("/job:worker/replica:0/task:2/device:CPU:0").short_str(),
            "worker:2/CPU:0");
}

}  // namespace
}  // namespace berth
