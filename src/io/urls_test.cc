// What the readers and writers of files say about URLs.

#include "base/urls.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/data_files.h"
#include "berth/io.h"
#include "berth/saved_function.h"
#include "berth/train.h"
#include "io/temp_dir_testing.h"

namespace berth::io {
namespace {

TEST(Urls, AreSchemesAndNotPaths) {
  for (const char* url : {"s3://bucket/run", "gs://b", "abfs://c@a/x",
                          "file:///tmp/x", "chained+s3://b"}) {
    EXPECT_TRUE(is_url(url)) << url;
  }
  for (const char* path : {"", "://x", "/a/b", "a:/b", "dir/s3://b", "c:\\x",
                           "c://x", "name with: //"}) {
    EXPECT_FALSE(is_url(path)) << path;
  }
}

TEST(Urls, AreRefusedByNameWhereFilesAreReadOrWritten) {
  Variable w(zeros({1}), {.name = "w"});
  train::Checkpoint checkpoint({{"w", w}});
  const std::string url = "s3://bucket/run/ckpt";
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"save", [&] { checkpoint.save(url); }},
      {"write", [&] { checkpoint.write(url); }},
      {"restore", [&] { checkpoint.restore(url); }},
      {"manager", [&] { train::CheckpointManager(checkpoint, url); }},
      {"latest", [&] { train::latest_checkpoint(url); }},
      {"list", [&] { train::list_variables(url); }},
      {"load_function", [&] { load_function(url); }},
      {"TFRecordWriter", [&] { TFRecordWriter writer(url); }},
      {"write_file", [&] { io::write_file(url, constant("x")); }},
      {"matching_files", [&] { io::matching_files("s3://bucket/*"); }},
      {"read_file", [&] { io::read_file(url); }},
      {"records",
       [&] {
         for (const Tensors& e : data::TFRecordDataset(url)) (void)e;
       }},
      {"lines",
       [&] {
         for (const Tensors& e : data::TextLineDataset(url)) (void)e;
       }},
      {"snapshot", [&] { data::Dataset::range(2).snapshot(url); }},
      {"cache",
       [&] {
         for (const Tensors& e : data::Dataset::range(2).cache(url)) (void)e;
       }},
  };
  for (const auto& [name, call] : calls) {
    const std::string message = message_of<errors::InvalidArgument>(call);
    EXPECT_TRUE(says(message, "is a URL; C++ reads and writes mounted paths"))
        << name;
    EXPECT_TRUE(says(message, "s3://bucket/")) << name;
  }
  EXPECT_EQ(checkpoint.save_counter(), 0);
}

// Hooks are the whole process's: in one of its own.
TEST(Urls, AreReadAsTheCopiesThatAHookMakes) {
  IN_A_FRESH_PROCESS({
    const testing::TempDir dir;
    testing::write_file(dir / "copy", "one\ntwo\n");
    std::string asked;
    set_url_hooks({.fetch =
                       [&](const std::string& url) {
                         asked += url;
                         return dir / "copy";
                       },
                   .settle = {}});
    int lines = 0;
    for (const Tensors& e : data::TextLineDataset("s3://b/x.txt")) {
      lines += static_cast<int>(e.size());
    }
    set_url_hooks({});
    fresh_process::check(lines == 2, "the lines of the copy");
    fresh_process::check(asked == "s3://b/x.txt", asked);
  });
}

}  // namespace
}  // namespace berth::io
