#include "berth/keras/from_directory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/errors_testing.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "io/temp_dir_testing.h"
#include "tensor/string_tensor.h"

namespace berth::keras::utils {
namespace {

using io::testing::TempDir;

// Pictures of even colour: cats are dark, dogs are light.
void write_pets(const TempDir& dir, int of_each) {
  for (const char* name : {"cats", "dogs"}) {
    std::filesystem::create_directory(dir / name);
    for (int i = 0; i < of_each; ++i) {
      const double level = (name[0] == 'c' ? 10 : 200) + i;
      const Tensor t = fill({12, 20, 3}, level, uint8);
      const std::string path =
          dir / name + "/" + std::to_string(i) + (i % 2 ? ".JPG" : ".png");
      io::write_file(path, i % 2 ? io::encode_jpeg(t) : io::encode_png(t));
    }
    io::testing::write_file(dir / name + "/notes.md", "no picture");
  }
}

TEST(ImageDatasetFromDirectory, GivesPicturesOfOneSizeWithTheirClass) {
  const TempDir dir;
  write_pets(dir, 5);
  const DirectoryDataset d = image_dataset_from_directory(
      dir.path(), {.batch_size = 4, .image_size = {6, 7}, .seed = 1});
  EXPECT_EQ(d.class_names, (std::vector<std::string>{"cats", "dogs"}));
  EXPECT_EQ(d.file_paths.size(), 10u);
  std::multiset<int> seen;
  std::vector<int64_t> sizes;
  for (const Tensors& e : d.dataset) {
    ASSERT_EQ(e[0].dtype(), float32);
    sizes.push_back(e[0].shape()[0]);
    EXPECT_EQ(e[1].dtype(), int32);
    for (int64_t i = 0; i < e[0].shape()[0]; ++i) {
      const Tensor one = e[0][{Index(i)}];
      ASSERT_EQ(one.shape(), (Shape{6, 7, 3}));
      const float level = one.to_vector<float>()[0];
      EXPECT_EQ(e[1][{Index(i)}].item<int>(), level > 100 ? 1 : 0);
      seen.insert(static_cast<int>(std::lround(level)) % 190 - 10);
    }
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(seen, (std::multiset<int>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST(ImageDatasetFromDirectory, SplitsWithoutOverlap) {
  const TempDir dir;
  write_pets(dir, 5);
  const auto paths = [&](const std::string& subset) {
    return image_dataset_from_directory(
               dir.path(),
               {.seed = 7, .validation_split = 0.3, .subset = subset})
        .file_paths;
  };
  auto train = paths("training");
  const auto held = paths("validation");
  EXPECT_EQ(train.size(), 7u);
  EXPECT_EQ(held.size(), 3u);
  EXPECT_EQ(paths("validation"), held);
  train.insert(train.end(), held.begin(), held.end());
  EXPECT_EQ(std::set<std::string>(train.begin(), train.end()).size(), 10u);
}

TEST(ImageDatasetFromDirectory, MakesLabelsColoursAndProportions) {
  const TempDir dir;
  write_pets(dir, 1);
  const auto first = [&](ImageDirectoryOptions o) {
    o.shuffle = false;
    o.image_size = {4, 4};
    const auto d = image_dataset_from_directory(dir.path(), o);
    return *d.dataset.make_iterator().next();
  };
  EXPECT_EQ(first({.label_mode = "categorical"})[1].to_vector<float>(),
            (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(first({.label_mode = "binary"})[1].shape(), (Shape{2, 1}));
  EXPECT_EQ(first({.labels = ""}).size(), 1u);
  EXPECT_EQ(first({.class_names = {"dogs", "cats"}})[0].to_vector<float>()[0],
            200);
  EXPECT_EQ(first({.color_mode = "grayscale"})[0].shape(), (Shape{2, 4, 4, 1}));
  EXPECT_EQ(first({.color_mode = "rgba"})[0].to_vector<float>()[3], 255);
  EXPECT_EQ(first({.crop_to_aspect_ratio = true})[0].to_vector<float>()[0], 10);
  // 12 x 20 becomes 2 x 4 (2.4 high); of 1.6 rows half a row would be above.
  const auto padded =
      first({.pad_to_aspect_ratio = true})[0].to_vector<float>();
  EXPECT_EQ(padded[0], 10);
  EXPECT_EQ(padded[1 * 4 * 3], 10);
  EXPECT_EQ(padded[2 * 4 * 3], 0);
  EXPECT_EQ(padded[4 * 4 * 3 - 1], 0);
  EXPECT_EQ(first({.batch_size = 0})[0].shape(), (Shape{4, 4, 3}));
}

TEST(ImageDatasetFromDirectory, NamesTheFileThatCannotBeRead) {
  const TempDir dir;
  write_pets(dir, 1);
  io::testing::write_file(dir / "dogs/bad.jpg", "not a picture");
  const auto d = image_dataset_from_directory(dir.path(), {.shuffle = false});
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>(
                       [&] { d.dataset.make_iterator().next(); }),
                   "dogs/bad.jpg"));
  EXPECT_THROW(image_dataset_from_directory(dir / "none"), errors::NotFound);
  EXPECT_THROW(image_dataset_from_directory(dir / "cats"), errors::NotFound);
  const auto problem = [&](const ImageDirectoryOptions& o) {
    return message_of<errors::InvalidArgument>(
        [&] { image_dataset_from_directory(dir.path(), o); });
  };
  EXPECT_TRUE(says(problem({.color_mode = "cmyk"}), "color_mode"));
  EXPECT_TRUE(says(problem({.label_mode = "x"}), "label_mode"));
  EXPECT_TRUE(says(problem({.class_names = {"mice"}}), "cats, dogs"));
  EXPECT_TRUE(says(problem({.validation_split = 0.5, .subset = "training"}),
                   "needs a seed"));
  EXPECT_TRUE(says(problem({.subset = "training"}), "validation_split"));
}

TEST(TextDatasetFromDirectory, GivesTextsWithTheirClass) {
  const TempDir dir;
  for (const char* name : {"neg", "pos"}) {
    std::filesystem::create_directory(dir / name);
    io::testing::write_file(dir / name + "/a.txt", std::string(name) + " text");
  }
  const auto d = text_dataset_from_directory(
      dir.path(), {.max_length = 5, .shuffle = false});
  const Tensors e = *d.dataset.make_iterator().next();
  EXPECT_EQ(strings_of(e[0]), (std::vector<std::string>{"neg t", "pos t"}));
  EXPECT_EQ(e[1].to_vector<int>(), (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace berth::keras::utils
