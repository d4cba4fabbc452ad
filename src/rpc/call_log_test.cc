#include "rpc/call_log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

namespace berth::rpc {
namespace {

using Json = nlohmann::json;

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

TEST(CallLog, SaysWhatIsOpenAndWhatHasEnded) {
  const auto log = std::make_unique<CallLog>();
  const uint64_t sum =
      log->begin("all_reduce", "gradients 1 of 2", "", 7, 4096);
  log->begin("call", "parameters", "ps:0", 0, 12);
  log->end(sum);
  const std::vector<Json> lines = lines_of(log->text("worker:1", "lost"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["calls_of"], "worker:1");
  EXPECT_EQ(lines[0]["failure"], "lost");
  EXPECT_EQ(lines[1]["what"], "gradients 1 of 2");
  EXPECT_EQ(lines[1]["sequence"], 7);
  EXPECT_EQ(lines[1]["bytes"], 4096);
  EXPECT_GE(lines[1]["end_us"], lines[1]["begin_us"]);
  EXPECT_EQ(lines[2]["to"], "ps:0");
  EXPECT_TRUE(lines[2]["end_us"].is_null());
  EXPECT_LE(lines[2]["begin_us"], lines[0]["now_us"]);
}

TEST(CallLog, KeepsTheLastThousand) {
  const auto log = std::make_unique<CallLog>();
  const uint64_t first = log->begin("call", "", "", 0, 0);
  for (int i = 1; i < 1234; ++i) {
    log->begin("call", "", "", static_cast<uint64_t>(i), 0);
  }
  log->end(first);  // its place is another's: nothing ends
  const std::vector<Json> lines = lines_of(log->text("worker:0", ""));
  ASSERT_EQ(lines.size(), 1001u);
  EXPECT_EQ(lines[0]["forgotten"], 234);
  EXPECT_EQ(lines[1]["sequence"], 234);
  EXPECT_EQ(lines[1000]["sequence"], 1233);
  for (size_t i = 1; i < lines.size(); ++i) {
    ASSERT_TRUE(lines[i]["end_us"].is_null());
  }
}

TEST(CallLog, LongNamesAreCut) {
  const auto log = std::make_unique<CallLog>();
  log->begin("call", std::string(500, 'x'), std::string(100, 'y'), 0, 0);
  const Json call = lines_of(log->text("worker:0", ""))[1];
  EXPECT_EQ(call["what"], std::string(55, 'x'));
  EXPECT_EQ(call["to"], std::string(23, 'y'));
}

TEST(CallLog, WritesOnlyWhereItIsAsked) {
  const auto log = std::make_unique<CallLog>();
  log->begin("barrier", "", "", 1, 0);
  unsetenv("BERTH_CALL_LOG");
  unsetenv("BERTH_PROFILE");
  EXPECT_EQ(log->write("worker:1", "lost"), "");
  const std::string folder = std::filesystem::path(testing::TempDir() + "/.")
                                 .lexically_normal()
                                 .parent_path();
  setenv("BERTH_CALL_LOG", (folder + "/calls.json").c_str(), 1);
  const std::string path = folder + "/calls.worker-1.json";
  EXPECT_EQ(log->write("worker:1", "lost"),
            "\n  the last calls of worker:1: " + path);
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(lines_of(text.str()).size(), 2u);
  std::filesystem::remove(path);
  unsetenv("BERTH_CALL_LOG");
}

TEST(CallLogThreads, CallsAreNotedWhileTheyAreRead) {
  const auto log = std::make_unique<CallLog>();
  std::thread calls([&] {
    for (int i = 0; i < 5000; ++i) log->end(log->begin("call", "a", "b", 0, 0));
  });
  for (int i = 0; i < 5; ++i) lines_of(log->text("worker:0", ""));
  calls.join();
}

}  // namespace
}  // namespace berth::rpc
