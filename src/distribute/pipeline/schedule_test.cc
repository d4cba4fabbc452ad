// Schedules: lists as published, closed forms, and lists that are refused.

#include "distribute/pipeline/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "berth/errors.h"

namespace berth::distribute {
namespace {

using enum PipelineSchedule;

std::vector<ScheduleShape> shapes() {
  std::vector<ScheduleShape> all;
  for (const int p : {1, 2, 3, 4}) {
    for (const int m : {1, 2, 4, 8, 12}) {
      all.push_back({kGPipe, p, p, m});
      all.push_back({k1F1B, p, p, m});
      all.push_back({kZbH1, p, p, m});
      all.push_back({kZbV, p, 2 * p, m});
      if (m % p != 0) continue;
      all.push_back({kInterleaved1F1B, p, 2 * p, m});
      all.push_back({kInterleaved1F1B, p, 3 * p, m});
    }
  }
  return all;
}

// The lines of a list, without the numbers of micro-batches at its end.
std::string line(const ScheduleShape& shape, size_t device) {
  return str({actions_of(shape)[device]});
}

TEST(PipelineSchedule, ListsAreThePublishedOnes) {
  EXPECT_EQ(line({k1F1B, 4, 4, 8}, 2),
            "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 2B7"
            "\n");
  EXPECT_EQ(line({kInterleaved1F1B, 4, 8, 8}, 0),
            "0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 0F6 4B0 0F7 4B1 4F4 4B2 "
            "4F5 4B3 4F6 0B0 4F7 0B1 0B2 0B3 4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7"
            "\n");
  EXPECT_EQ(line({kZbH1, 4, 4, 8}, 1),
            "1F0 1F1 1F2 1I0 1F3 1I1 1W0 1F4 1I2 1W1 1F5 1I3 1W2 1F6 1I4 1W3 "
            "1F7 1I5 1W4 1I6 1W5 1I7 1W6 1W7\n");
  EXPECT_EQ(line({kZbV, 4, 8, 8}, 3),
            "3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 4I0 4W0 3F4 3I0 3W0 4F4 4I1 4W1 "
            "3F5 3I1 3W1 4F5 4I2 4W2 3F6 3I2 3W2 4F6 4I3 4W3 3F7 3I3 3W3 4F7 "
            "4I4 4W4 3I4 4I5 3I5 4I6 3I6 4I7 3I7 3W4 4W5 4W6 4W7 3W5 3W6 3W7"
            "\n");
}

TEST(PipelineSchedule, EveryListIsWholeAndEnds) {
  for (const ScheduleShape& shape : shapes()) {
    const PipelineActions actions = actions_of(shape);
    EXPECT_NO_THROW(check_actions(actions, shape)) << str(actions);
    EXPECT_EQ(parse_actions(str(actions)), actions);
  }
}

// f, i and w of a stage of which `chunks` are a device.
PipelineTimes equal(const ScheduleShape& s, double f, double i, double w) {
  const double chunks = static_cast<double>(s.stages) / s.devices;
  const auto n = static_cast<size_t>(s.stages);
  return {std::vector<double>(n, f / chunks),
          std::vector<double>(n, i / chunks),
          std::vector<double>(n, w / chunks)};
}

TEST(PipelineSchedule, StepsOfEqualStagesTakeTheClosedForm) {
  for (const ScheduleShape& shape : shapes()) {
    if (shape.micro_batches < 2 * shape.devices - 1) continue;
    EXPECT_NEAR(time_of(actions_of(shape), equal(shape, 6, 6, 6)).step_us,
                closed_form_us(shape, 6, 6, 6), 1e-9)
        << name_of(shape.schedule) << shape.devices << shape.micro_batches;
  }
  const ScheduleShape h1{kZbH1, 4, 4, 8};
  EXPECT_NEAR(time_of(actions_of(h1), equal(h1, 1, 1.2, 0.8)).step_us, 28.2,
              1e-9);
}

// GPipe's form for unequal stages.
TEST(PipelineSchedule, StepsOfUnequalStages) {
  std::mt19937 draw(5);
  for (int n = 0; n < 200; ++n) {
    const int p = 2 + static_cast<int>(draw() % 5);
    const int m = p + static_cast<int>(draw() % 11);
    PipelineTimes t;
    for (int s = 0; s < p; ++s) {
      t.forward.push_back(1 + draw() % 9);
      t.input.push_back(1 + draw() % 9);
      t.weight.push_back(1 + draw() % 9);
    }
    double sum = 0, f = 0, b = 0;
    for (size_t s = 0; s < t.forward.size(); ++s) {
      const double back = t.input[s] + t.weight[s];
      sum += t.forward[s] + back;
      f = std::max(f, t.forward[s]);
      b = std::max(b, back);
    }
    EXPECT_NEAR(time_of(actions_of({kGPipe, p, p, m}), t).step_us,
                sum + (m - 1) * (f + b), 1e-9);
  }
}

TEST(PipelineSchedule, MicroBatchesInFlight) {
  const auto held = [](const ScheduleShape& s) {
    return time_of(actions_of(s), equal(s, 1, 1, 1)).in_flight;
  };
  EXPECT_EQ(held({kGPipe, 4, 4, 8}), (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(held({k1F1B, 4, 4, 8}), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(held({kInterleaved1F1B, 4, 8, 8}), (std::vector<int>{11, 9, 7, 5}));
  EXPECT_EQ(held({kZbH1, 4, 4, 8}), (std::vector<int>{4, 4, 4, 4}));
  EXPECT_EQ(held({kZbV, 4, 8, 8}), (std::vector<int>{8, 8, 8, 8}));
}

std::string refusal(const std::string& text, const ScheduleShape& shape) {
  try {
    check_actions(parse_actions(text), shape);
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(PipelineSchedule, WrongListsAreRefusedByName) {
  const ScheduleShape two{k1F1B, 2, 2, 2};
  const auto says = [&](const char* first, const char* second,
                        const std::string& text) {
    const std::string got = refusal(std::string(first) + "\n" + second, two);
    EXPECT_NE(got.find(text), std::string::npos) << got;
  };
  const char* good0 = "0F0 0F1 0B0 0B1";
  const char* good1 = "1F0 1B0 1F1 1B1";
  EXPECT_EQ(refusal(std::string(good0) + "\n" + good1, two), "");
  says(good0, "1F0 1B0 1F1", "1B1 is missing on device 1");
  says(good0, "1F0 1B0 1F1 1I1", "1W1 is missing on device 1");
  says(good0, "1F0 1B0 1B1 1F1", "1B1 of device 1 comes before 1F1");
  says(good0, "1F0 1B0 1F1 1B1 1F0", "1F0 of device 1 is there twice");
  says(good0, "1F0 1B0 0F1 1B1", "0F1 of device 1: stage 0 is on device 0");
  says(good0, "1F0 1B0 1F2 1B2", "there are 2 stages and 2 micro-batches");
  says("0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0",
       "wait for each other; device 0 at 0B0 for 1B0; device 1 at 1F1 for 0F1");
  says(good0, "1F0 1X0", "\"1X0\" of device 1");
  EXPECT_NE(refusal(good0, two).find("instructions for 1 devices"),
            std::string::npos);
}

TEST(PipelineSchedule, ShapesThatDoNotFitAreRefused) {
  EXPECT_THROW(actions_of({k1F1B, 2, 4, 4}), errors::InvalidArgument);
  EXPECT_THROW(actions_of({kZbV, 2, 2, 4}), errors::InvalidArgument);
  EXPECT_THROW(actions_of({kInterleaved1F1B, 2, 2, 4}),
               errors::InvalidArgument);
  EXPECT_THROW(actions_of({kInterleaved1F1B, 2, 4, 3}),
               errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::distribute
