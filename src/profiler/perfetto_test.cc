// perfetto() and read(): all that events have, nesting, and hostile files.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/wire_reader.h"
#include "berth/errors.h"
#include "berth/profiler.h"
#include "profiler/layout.h"
#include "profiler/read_perfetto.h"

namespace berth::profiler {
namespace {

const std::string kGpu = "/job:localhost/replica:0/task:0/device:GPU:0";

// Two tasks, a simulated device, overlaps, hostile names, every field.
std::vector<TimelineEvent> many_events() {
  std::vector<TimelineEvent> e(8);
  e[0] = {.track = "/CPU:0",
          .name = "dense/MatMul",
          .kind = "MatMul",
          .site = {"a:b/net.cc", 7, "dense"},
          .begin_us = 7e10 + 0.125,
          .end_us = 7e10 + 30.5,
          .detail = "x, y",
          .bytes = 1 << 20,
          .flops = 1e9,
          .predicted_us = 29.75,
          .run = 3};
  e[1] = {.track = "/GPU:0",
          .name = "copy",
          .kind = "copy",
          .begin_us = 7e10 + 31,
          .end_us = 7e10 + 50,
          .detail = "/CPU:0 -> /GPU:0",
          .bytes = -5,
          .after = {0}};
  e[2] = {.track = "/GPU:0",
          .name = "overlaps",
          .kind = "copy",
          .begin_us = 7e10 + 40,
          .end_us = 7e10 + 60,
          .flops = 0.5,
          .predicted_us = 0,
          .after = {0, 1},
          .task = "worker:1"};
  e[3] = {.track = "/GPU:0",
          .name = "overlaps, too",
          .kind = "copy",
          .begin_us = 7e10 + 45,
          .end_us = 7e10 + 60};
  e[4] = {.track = kGpu,
          .name = "virtual",
          .kind = "MatMul",
          .begin_us = -3,
          .end_us = 4,
          .simulated = true};
  e[5] = {.track = "/GPU:0",
          .name = "step 1",
          .kind = "memory",
          .begin_us = 7e10 + 45,
          .end_us = 7e10 + 46,
          .bytes = 4096};
  e[6] = {.track = std::string("n\0ul;\"\x01\xff\n", 9),
          .name = "\xf0\x28",
          .kind = "",
          .begin_us = 7e10 + 2,
          .end_us = 7e10 + 2,
          .after = {7, 5}};
  e[7] = {.track = "",
          .name = "",
          .kind = "wait",
          .begin_us = 7e10,
          .end_us = 7e10 + 100,
          .run = 1 << 30};
  return e;
}

void expect_equal(const TimelineEvent& a, const TimelineEvent& b) {
  EXPECT_EQ(a.track, b.track);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_STREQ(a.site.file, b.site.file);
  EXPECT_EQ(a.site.line, b.site.line);
  EXPECT_STREQ(a.site.frame, b.site.frame);
  EXPECT_EQ(a.begin_us, b.begin_us) << a.name;
  EXPECT_EQ(a.end_us, b.end_us) << a.name;
  EXPECT_EQ(a.detail, b.detail);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_EQ(a.predicted_us, b.predicted_us);
  EXPECT_EQ(a.run, b.run);
  EXPECT_EQ(a.after, b.after);
  EXPECT_EQ(a.task, b.task);
  EXPECT_EQ(a.simulated, b.simulated);
}

TEST(Perfetto, ReadGivesBackEveryFieldOfEveryEvent) {
  const Timeline t(many_events(), 17);
  TaskEvents read = read_perfetto(t.perfetto(), "t");
  const Timeline back(std::move(read.events), read.dropped);
  EXPECT_EQ(back.dropped(), 17);
  ASSERT_EQ(back.events().size(), t.events().size());
  for (size_t k = 0; k < t.events().size(); ++k) {
    expect_equal(t.events()[k], back.events()[k]);
  }
  EXPECT_EQ(back.perfetto(), t.perfetto());
  EXPECT_TRUE(read_perfetto(Timeline().perfetto(), "t").events.empty());
}

TEST(Perfetto, FilesAreReadAndOthersAreNamed) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "berth_perfetto_test";
  std::filesystem::create_directories(folder);
  const std::string path = folder / "t.pftrace", other = folder / "t.json";
  const Timeline t(many_events());
  t.write(path);
  EXPECT_EQ(Timeline::read(path).perfetto(), t.perfetto());
  t.write(other);
  for (const std::string& wrong : {other, folder.string() + "/none"}) {
    try {
      Timeline::read(wrong);
      FAIL() << wrong;
    } catch (const errors::InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find(wrong), std::string::npos);
      EXPECT_NE(std::string(e.what()).find("expected"), std::string::npos);
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(Perfetto, CutFilesAreErrors) {
  const std::string whole = Timeline(many_events()).perfetto();
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_THROW(read_perfetto(whole.substr(0, n), "t"),
                 errors::InvalidArgument)
        << n;
  }
}

TEST(Perfetto, ChangedFilesAreReadOrErrors) {
  const std::string whole = Timeline(many_events()).perfetto();
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (uint32_t flips = 1 + random() % 4; flips > 0; --flips) {
      text[random() % text.size()] ^= static_cast<char>(1 << random() % 8);
    }
    try {
      read += read_perfetto(text, "t").events.size() == 8;
    } catch (const errors::InvalidArgument&) {
    }
  }
  EXPECT_GT(read, 0);  // names and times may have changed
}

TEST(Layout, SlicesOfALaneNestOrFollow) {
  std::mt19937 random(3);
  std::vector<TimelineEvent> events;
  for (int i = 0; i < 500; ++i) {
    const double begin = static_cast<double>(random() % 300);
    const double us = static_cast<double>(random() % 20);
    events.push_back({"/CPU:0", "op", "op", {}, begin, begin + us});
  }
  const Layout layout(events);
  ASSERT_EQ(layout.rows.size(), 1u);
  const auto lies_in = [&](size_t a, size_t b) {
    return layout.begin_ns[a] >= layout.begin_ns[b] &&
           layout.end_ns[a] <= layout.end_ns[b];
  };
  for (size_t a = 0; a < events.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (layout.lane[a] != layout.lane[b]) continue;
      EXPECT_TRUE(layout.end_ns[a] <= layout.begin_ns[b] ||
                  layout.end_ns[b] <= layout.begin_ns[a] || lies_in(a, b) ||
                  lies_in(b, a));
    }
    const int32_t in = layout.within[a];
    EXPECT_TRUE(in < 0 || lies_in(a, static_cast<size_t>(in)));
  }
}

}  // namespace
}  // namespace berth::profiler
