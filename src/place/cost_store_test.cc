// What is kept on disk, and the effect of broken, foreign and shared files.

#include "place/cost_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "berth/errors.h"
#include "graph/graph_text.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

// A temporary folder.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/berth_costs_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file() const { return path_ + "/sub/costs.json"; }

 private:
  std::string path_;
};

OpTime measured(double us) { return {us, 0.25f, CostOrigin::kMeasured}; }

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(CostStore, KeepsWhatWasMeasured) {
  Folder folder;
  {
    CostStore s(folder.file(), "1");
    s.add_op("a", measured(3.5));
    DeviceClass c;
    c.name = "big";
    c.type = "CPU";
    c.flops_per_us = 7;
    c.bytes_per_us = 8;
    c.launch_us = 9;
    c.cached_bytes_per_us = 10;
    c.cache_bytes = 11;
    s.add_class(c);
    s.add_link("big -> big", {2, 3, -1, CostOrigin::kMeasured, 0.5f});
    EXPECT_TRUE(s.save());
  }
  const CostStore s(folder.file(), "1");
  ASSERT_TRUE(s.find_op("a"));
  EXPECT_EQ(s.find_op("a")->us, 3.5);
  EXPECT_EQ(s.find_op("a")->spread, 0.25f);
  EXPECT_EQ(s.find_op("a")->origin, CostOrigin::kMeasured);
  EXPECT_FALSE(s.find_op("b"));
  ASSERT_TRUE(s.find_class("big"));
  EXPECT_EQ(s.find_class("big")->type, "CPU");
  EXPECT_EQ(s.find_class("big")->flops_per_us, 7);
  EXPECT_EQ(s.find_class("big")->launch_us, 9);
  EXPECT_EQ(s.find_class("big")->moving_us(21), 11.0 / 10 + 10.0 / 8);
  ASSERT_TRUE(s.find_link("big -> big"));
  EXPECT_EQ(s.find_link("big -> big")->latency_us, 2);
  EXPECT_EQ(s.find_link("big -> big")->bytes_per_us, 3);
}

TEST(CostStore, VersionsShareAFileAndReadTheirOwn) {
  Folder folder;
  CostStore one(folder.file(), "1"), two(folder.file(), "2");
  one.add_op("a", measured(1));
  two.add_op("a", measured(2));
  EXPECT_TRUE(one.save());
  EXPECT_TRUE(two.save());
  EXPECT_EQ(CostStore(folder.file(), "1").find_op("a")->us, 1);
  EXPECT_EQ(CostStore(folder.file(), "2").find_op("a")->us, 2);
  EXPECT_FALSE(CostStore(folder.file(), "3").find_op("a"));
}

TEST(CostStore, TwoStoresOfOneFileMerge) {
  Folder folder;
  CostStore one(folder.file(), "1"), two(folder.file(), "1");
  one.add_op("a", measured(1));
  two.add_op("b", measured(2));
  one.record_prediction(1, 2);
  two.record_prediction(3, 2);
  EXPECT_TRUE(one.save());
  EXPECT_TRUE(two.save());
  EXPECT_TRUE(two.find_op("a"));  // learnt while saving
  const CostStore s(folder.file(), "1");
  EXPECT_TRUE(s.find_op("a") && s.find_op("b"));
  EXPECT_EQ(s.error(), 0.5);
  EXPECT_TRUE(one.save());  // and nothing is there twice
  EXPECT_EQ(read(folder.file()).find("\"a\""),
            read(folder.file()).rfind("\"a\""));
}

TEST(CostStore, ProcessesThatSaveAtTheSameTimeLoseNothing) {
  Folder folder;
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    const pid_t pid = fork();
    if (pid == 0) {
      CostStore s(folder.file(), "1");
      for (int k = 0; k < 10; ++k) {
        s.add_op(fmt::format("{}.{}", p, k), measured(k));
        s.save();
      }
      _exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) waitpid(pid, nullptr, 0);
  const CostStore s(folder.file(), "1");
  for (int p = 0; p < 4; ++p) {
    for (int k = 0; k < 10; ++k) {
      EXPECT_TRUE(s.find_op(fmt::format("{}.{}", p, k))) << p << "." << k;
    }
  }
}

TEST(CostStore, BrokenFilesCountAsEmptyAndAreReplaced) {
  const char* const kBroken[] = {
      "",
      "{",
      "[]",
      "null",
      "\xff\xfe",
      R"({"berth_costs": 1})",
      R"({"berth_costs": 1, "versions": 7})",
      R"({"berth_costs": 1, "versions": {"1": []}})",
      R"({"berth_costs": 1, "versions": {"1": {"ops": [], "links": 3}}})",
      R"({"berth_costs": 1, "versions": {"1": {"ops": {"a": {"us": -1}},
          "classes": {"c": {"flops_per_us": 0}}, "links": {"l": null},
          "predictions": [1, [1], ["x", 2], [0, 0], {}]}}})",
      R"({"berth_costs": 1, "versions": {"1": {"ops": {"a": {"us": 1e999}}}}})",
  };
  for (const char* text : kBroken) {
    Folder folder;
    write(folder.file(), text);
    CostStore s(folder.file(), "1");
    EXPECT_FALSE(s.find_op("a")) << text;
    EXPECT_FALSE(s.find_class("c")) << text;
    EXPECT_FALSE(s.find_link("l")) << text;
    EXPECT_EQ(s.error(), -1) << text;
    s.add_op("b", measured(1));
    EXPECT_TRUE(s.save()) << text;
    EXPECT_TRUE(CostStore(folder.file(), "1").find_op("b")) << text;
  }
}

TEST(CostStore, AFileOfAnotherFormatIsLeftAlone) {
  Folder folder;
  const std::string later = R"({"berth_costs": 2, "more": true})";
  write(folder.file(), later);
  CostStore s(folder.file(), "1");
  s.add_op("a", measured(1));
  EXPECT_FALSE(s.save());
  EXPECT_TRUE(s.find_op("a"));
  EXPECT_EQ(read(folder.file()), later);
}

TEST(CostStore, WithoutAPathItStaysInMemory) {
  CostStore s("", "1");
  s.add_op("a", measured(1));
  EXPECT_TRUE(s.find_op("a"));
  EXPECT_FALSE(s.save());
}

TEST(CostStore, WhatCannotBeWrittenChangesNothing) {
  for (const char* path : {"/proc/none/costs.json", "/dev/null/costs.json"}) {
    CostStore s(path, "1");
    s.add_op("a", measured(1));
    EXPECT_FALSE(s.save()) << path;
    EXPECT_TRUE(s.find_op("a")) << path;
  }
  Folder folder;
  fs::create_directories(folder.file());  // a folder with the file's name
  CostStore s(folder.file(), "1");
  s.add_op("a", measured(1));
  EXPECT_FALSE(s.save());
  for (const auto& e :
       fs::directory_iterator(fs::path(folder.file()).parent_path())) {
    EXPECT_NE(e.path().extension(), fmt::format(".{}", getpid()));
  }
}

TEST(CostStore, TheErrorIsTheMedianOfTheLastPredictions) {
  CostStore s("", "1");
  EXPECT_EQ(s.error(), -1);
  EXPECT_EQ(s.record_prediction(3, 2), 0.5);
  EXPECT_DOUBLE_EQ(s.record_prediction(9, 10), (0.5 + (1 - 0.9)) / 2);
  EXPECT_DOUBLE_EQ(s.record_prediction(10, 10), 1 - 0.9);
  s.record_prediction(0, 1);  // ignored
  s.record_prediction(1, -1);
  EXPECT_DOUBLE_EQ(s.error(), 1 - 0.9);
  for (int i = 0; i < 32; ++i) s.record_prediction(4, 2);
  EXPECT_EQ(s.error(), 1);  // the first three are forgotten
}

TEST(OpKey, TellsWhatMattersApart) {
  const auto key = [](const std::string& more) {
    const Graph g = parse_graph(
        "berth-graph 1\n"
        "node x = _Arg() {index = 0, dtype = float32, shape = shape[4,4]} -> "
        "float32[4,4]\n"
        "node y = _Arg() {index = 1, dtype = float32, shape = shape[4,?]} -> "
        "float32[4,?]\n" +
        more);
    return op_key(g, g.size() - 1, "here");
  };
  const std::string plain = key("node z = MatMul(x:0, x:0) -> float32[4,4]\n");
  EXPECT_EQ(plain, key("node other = MatMul(x:0, x:0) -> float32[4,4]\n"));
  EXPECT_NE(plain, key("node z = MatMul(x:0, x:0) {transpose_a = true} -> "
                       "float32[4,4]\n"));
  EXPECT_NE(plain, key("node z = AddV2(x:0, x:0) -> float32[4,4]\n"));
  EXPECT_EQ(key("node z = MatMul(x:0, y:0) -> float32[4,?]\n"), "");
  EXPECT_NE(plain.find("here"), std::string::npos);
}

}  // namespace
}  // namespace berth
