// Data sets in files.

#include <gtest/gtest.h>

#include <fstream>

#include "berth/berth.h"
#include "io/temp_dir_testing.h"

namespace berth::keras::datasets::mnist {
namespace {

// An IDX file of bytes.
void write_idx(const std::string& path, const std::vector<uint32_t>& dims,
               size_t bytes) {
  std::string s{0, 0, 8, static_cast<char>(dims.size())};
  for (uint32_t d : dims) {
    for (int shift : {24, 16, 8, 0}) s += static_cast<char>(d >> shift);
  }
  for (size_t i = 0; i < bytes; ++i) s += static_cast<char>(i);
  std::ofstream(path, std::ios::binary) << s;
}

TEST(Mnist, ReadsAPairOfFiles) {
  const io::testing::TempDir dir;
  const std::string images = dir.path() + "/images";
  const std::string labels = dir.path() + "/labels";
  write_idx(images, {3, 2, 2}, 12);
  write_idx(labels, {3}, 3);
  const Split s = load_files(images, labels);
  EXPECT_EQ(s.x.shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(s.x.dtype(), uint8);
  EXPECT_EQ(s.x.to_vector<int>()[11], 11);
  EXPECT_EQ(s.y.to_vector<int>(), (std::vector<int>{0, 1, 2}));
}

TEST(Mnist, RefusesFilesThatDoNotFit) {
  const io::testing::TempDir dir;
  const std::string images = dir.path() + "/images";
  const std::string labels = dir.path() + "/labels";
  write_idx(images, {3, 2, 2}, 12);
  write_idx(labels, {4}, 4);
  EXPECT_THROW(load_files(images, labels), errors::InvalidArgument);
  EXPECT_THROW(load_files(labels, labels), errors::InvalidArgument);
  EXPECT_THROW(load_files(images, dir.path() + "/none"), errors::NotFound);
  write_idx(labels, {4}, 3);
  EXPECT_THROW(load_files(images, labels), errors::DataLoss);
}

TEST(Mnist, IsNotFoundUnlessDrawnDigitsAreAskedFor) {
  const io::testing::TempDir dir;
  const io::testing::ScopedEnv home("HOME", dir.path());
  const io::testing::ScopedEnv data("BERTH_DATA", "");
  try {
    load_data({.allow_download = false});
    FAIL();
  } catch (const errors::NotFound& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("BERTH_DATA"), std::string::npos) << what;
    EXPECT_NE(what.find("draw_if_missing"), std::string::npos) << what;
  }
  EXPECT_THROW(cifar10::load_data(), errors::NotFound);
}

TEST(Mnist, DrawsDigitsWhenThereAreNone) {
  const io::testing::TempDir dir;
  const io::testing::ScopedEnv home("HOME", dir.path());
  const io::testing::ScopedEnv data("BERTH_DATA", "");
  const Data d = load_data({.allow_download = false,
                            .draw_if_missing = true,
                            .drawn_train = 20,
                            .drawn_test = 10});
  EXPECT_TRUE(d.drawn);
  EXPECT_NE(d.source.find("drawn"), std::string::npos) << d.source;
  EXPECT_EQ(d.train.x.shape(), (Shape{20, 28, 28}));
  EXPECT_EQ(d.test.y.shape(), (Shape{10}));
  EXPECT_NE(d.train.x[{slice(0, 10)}].to_vector<int>(),
            d.test.x.to_vector<int>());
}

}  // namespace
}  // namespace berth::keras::datasets::mnist
