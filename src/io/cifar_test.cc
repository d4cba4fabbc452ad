#include "io/cifar.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "berth/errors.h"
#include "io/temp_dir_testing.h"

namespace berth::io {
namespace {

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Red 1, green 2, blue 3 everywhere.
std::string record(char label) {
  std::string s(1, label);
  for (char c = 1; c <= 3; ++c) s += std::string(1024, c);
  return s;
}

TEST(Cifar, ReadsPlanesAsPixels) {
  const testing::TempDir dir;
  write(dir.path() + "/a.bin", record(7) + record(2));
  CifarImages d;
  read_cifar_file(dir.path() + "/a.bin", &d);
  EXPECT_EQ(d.labels, (std::vector<uint8_t>{7, 2}));
  ASSERT_EQ(d.images.size(), 2u * kCifarBytes);
  for (size_t i = 0; i < d.images.size(); ++i) {
    ASSERT_EQ(d.images[i], 1 + i % 3);
  }
}

TEST(Cifar, DamagedFilesAreNamed) {
  const testing::TempDir dir;
  CifarImages d;
  write(dir.path() + "/short.bin", record(0) + std::string(100, 'x'));
  EXPECT_THROW(read_cifar_file(dir.path() + "/short.bin", &d),
               errors::DataLoss);
  write(dir.path() + "/label.bin", record(10));
  EXPECT_THROW(read_cifar_file(dir.path() + "/label.bin", &d),
               errors::InvalidArgument);
  EXPECT_THROW(read_cifar_file(dir.path() + "/none.bin", &d), errors::NotFound);
}

TEST(Cifar, FindsAllSixFilesOrSaysWhatIsMissing) {
  const testing::TempDir dir;
  const std::string inner = dir.path() + "/cifar-10-batches-bin";
  std::filesystem::create_directory(inner);
  for (int i = 1; i <= 5; ++i) {
    write(inner + "/data_batch_" + std::to_string(i) + ".bin", record(1));
  }
  CifarFiles files = find_cifar(dir.path(), dir.path());
  EXPECT_TRUE(files.train.empty());
  EXPECT_NE(files.why.find("data_batch_1.bin"), std::string::npos);
  write(inner + "/test_batch.bin", record(1));
  files = find_cifar(dir.path());
  EXPECT_EQ(files.train.size(), 5u);
  EXPECT_EQ(files.test, std::vector<std::string>{inner + "/test_batch.bin"});
}

TEST(Cifar, DrawnImagesFollowSeedAndIndex) {
  const CifarImages a = draw_gratings(200, 1), b = draw_gratings(20, 1);
  EXPECT_EQ(a.images.size(), 200u * kCifarBytes);
  EXPECT_TRUE(std::equal(b.images.begin(), b.images.end(), a.images.begin()));
  EXPECT_NE(draw_gratings(20, 2).images, b.images);
  EXPECT_EQ(std::set<uint8_t>(a.labels.begin(), a.labels.end()).size(), 10u);
  EXPECT_THROW(draw_gratings(-1, 1), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::io
