#include "profiler/snapshot_page.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "berth/errors.h"

namespace berth::profiler {
namespace {

constexpr const char* kSnapshot =
    R"({"memory_snapshot":"GPU:0","asked_bytes":4194304,"current_bytes":3145728,
"peak_bytes":3145728,"reserved_bytes":6291456,"limit_bytes":8388608,
"free_bytes":2097152,"largest_free_bytes":1048576,"fragmentation":0.5,
"segments":[{"bytes":4194304,"blocks":[
{"offset":0,"bytes":1048576,"state":"live","holder":"MatMul","line":"/a/train.py:7"},
{"offset":1048576,"bytes":1048576,"state":"free"},
{"offset":2097152,"bytes":2097152,"state":"live","holder":"the arena of plan 's'",
"line":"","parts":[{"offset":0,"bytes":1572864,"holder":"<b>","line":"/a/train.py:9"}]}]},
{"bytes":2097152,"blocks":[{"offset":0,"bytes":1048576,"state":"idle","holder":"x"},
{"offset":1048576,"bytes":1048576,"state":"free"}]}]})";

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != text.npos;
       at = text.find(word, at + 1)) {
    ++n;
  }
  return n;
}

TEST(SnapshotPage, DrawsEveryBlockAndListsTheBiggestFirst) {
  const std::string page = snapshot_page(kSnapshot, "oom");
  EXPECT_EQ(count(page, "<svg"), 2u);
  // MatMul, a hole, the arena and its part; idle, a hole.
  EXPECT_EQ(count(page, "<rect"), 6u);
  // Rectangles of the first bar, 1000 px for 4 MiB.
  EXPECT_NE(page.find("x=\"250.00\" width=\"249.60\""), page.npos) << page;
  const size_t part =
      page.find("<td>A</td><td>1.5 MiB</td><td>&lt;b&gt; (/a/train.py:9)</td>");
  const size_t matmul =
      page.find("<td>B</td><td>1 MiB</td><td>MatMul (/a/train.py:7)</td>");
  const size_t rest = page.find("<td>C</td><td>512 KiB</td><td>the arena");
  EXPECT_NE(part, page.npos) << page;
  EXPECT_LT(part, matmul);
  EXPECT_LT(matmul, rest);
  EXPECT_NE(rest, page.npos);
  EXPECT_EQ(page.find("<b>"), page.npos) << "names are escaped";
  EXPECT_NE(page.find("4 MiB were asked for"), page.npos);
  EXPECT_NE(page.find("fragmentation 50 %"), page.npos);
}

TEST(SnapshotPage, NeedsNothingElse) {
  const std::string page = snapshot_page(kSnapshot, "oom");
  EXPECT_EQ(page.find("http:"), page.npos);
  EXPECT_EQ(page.find("https:"), page.npos);
  EXPECT_EQ(page.find("<script"), page.npos);
}

TEST(SnapshotPage, ManySmallBlocksAreDrawnAsFew) {
  std::string blocks;
  for (int i = 0; i < 20000; ++i) {
    blocks +=
        std::string(i ? "," : "") + "{\"offset\":" + std::to_string(i * 64) +
        ",\"bytes\":64,\"state\":\"live\",\"holder\":\"Add\",\"line\":\"\"}";
  }
  const std::string page = snapshot_page(
      R"({"memory_snapshot":"CPU:0","asked_bytes":0,"current_bytes":1,)"
      R"("peak_bytes":1,"reserved_bytes":1,"limit_bytes":0,"free_bytes":0,)"
      R"("largest_free_bytes":0,"fragmentation":0,"segments":[{"bytes":1280000,)"
      R"("blocks":[)" +
          blocks + "]}]}",
      "small");
  EXPECT_LT(count(page, "<rect"), 1400u);
  EXPECT_GT(count(page, "<rect"), 300u);
  EXPECT_NE(page.find("<td>1.2 MiB</td><td>Add</td>"), page.npos) << page;
}

TEST(SnapshotPage, FilesAreToldApartByTheirBegin) {
  const std::string path = testing::TempDir() + "/snapshot_page.json";
  std::ofstream(path) << kSnapshot;
  EXPECT_TRUE(is_memory_snapshot(path));
  std::ofstream(path) << "{\"traceEvents\":[]}";
  EXPECT_FALSE(is_memory_snapshot(path));
  std::filesystem::remove(path);
  EXPECT_FALSE(is_memory_snapshot(path));
}

TEST(SnapshotPage, OtherTextsAreRefused) {
  for (const char* text : {"", "[]", "{\"memory_snapshot\":1}", "{"}) {
    EXPECT_THROW(snapshot_page(text, "x"), errors::InvalidArgument) << text;
  }
}

}  // namespace
}  // namespace berth::profiler
