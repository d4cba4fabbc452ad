#include "base/where.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Where, NamesFilesWithoutTheirFolders) {
  EXPECT_STREQ(file_name({.file = "/home/me/net/model.cc", .line = 4}),
               "model.cc");
  EXPECT_STREQ(file_name({.file = "model.cc", .line = 4}), "model.cc");
  EXPECT_STREQ(file_name({}), "?");
  EXPECT_EQ(where_text("dense", {.file = "net/model.cc", .line = 4}),
            " (layer \"dense\", model.cc:4)");
  EXPECT_EQ(where_text(nullptr, {}), "");
  EXPECT_EQ(call_text("map", {.file = "net/model.cc", .line = 4}),
            "map (model.cc:4)");
  EXPECT_EQ(call_text("map", {}), "map");
  EXPECT_EQ(site_text({.file = "net/model.cc", .line = 4}), "model.cc:4");
  EXPECT_EQ(site_text({}), "");
}

}  // namespace
}  // namespace berth
