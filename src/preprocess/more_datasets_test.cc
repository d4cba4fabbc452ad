#include "berth/keras/more_datasets.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/errors_testing.h"
#include "berth/errors.h"
#include "io/npz_file_testing.h"
#include "io/temp_dir_testing.h"
#include "preprocess/named_files.h"

namespace berth::keras::datasets {
namespace {

using io::testing::little;
using io::testing::npy;
using io::testing::npz;
using io::testing::ScopedEnv;
using io::testing::TempDir;
using io::testing::write_file;
using Lists = std::vector<std::vector<int64_t>>;
using Longs = std::vector<int64_t>;

TEST(NumpyShuffles, AreNumPys) {
  // numpy.random.RandomState(113).shuffle(numpy.arange(10))
  EXPECT_EQ(numpy_shuffles(113, {10})[0],
            (Longs{9, 3, 6, 1, 0, 7, 4, 8, 2, 5}));
}

// The lists [1, 2, 300], [70000, -5] and [] with the labels 0, 1, 2.
std::string words() {
  std::string all;
  for (const int64_t w : {1, 2, 300, 70000, -5}) {
    all += little(static_cast<uint64_t>(w), 4);
  }
  return npy("'<i4'", "(5,)", all);
}
std::string lengths(int first = 3) {
  return npy(
      "'<i8'", "(3,)",
      little(static_cast<uint64_t>(first), 8) + little(2, 8) + little(0, 8));
}
std::string labels() {
  return npy("'<i8'", "(3,)", little(0, 8) + little(1, 8) + little(2, 8));
}

TEST(Imdb, NumbersWordsAsKerasDoes) {
  const TempDir dir;
  write_file(dir / "imdb-plain.npz", npz({{"x_train_words", words()},
                                          {"x_train_lengths", lengths()},
                                          {"y_train", labels()},
                                          {"x_test_words", words()},
                                          {"x_test_lengths", lengths()},
                                          {"y_test", labels()}}));
  const SequenceData d = imdb::load_data({.data_dir = dir.path()});
  // Each label's text has a start mark, and words three further.
  const auto y = d.train.y.to_vector<int64_t>();
  ASSERT_EQ(y.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Lists wanted{{1, 4, 5, 303}, {1, 2, 2}, {1}};
    // 70003, the largest word, and -2 are out of 0 ... num_words - 1.
    EXPECT_EQ(d.train.x[i], wanted[static_cast<size_t>(y[i])]) << i;
  }
  const SequenceData few = imdb::load_data({.num_words = 5,
                                            .skip_top = 2,
                                            .maxlen = 4,
                                            .start_char = std::nullopt,
                                            .oov_char = std::nullopt,
                                            .index_from = 0,
                                            .data_dir = dir.path()});
  EXPECT_EQ(few.test.x.size(), 3u);
  for (const auto& words : few.test.x) {
    EXPECT_TRUE(words.empty() || words == Longs{2});
  }
  EXPECT_THROW(imdb::load_data({.maxlen = 1, .data_dir = dir.path()}),
               errors::InvalidArgument);
}

TEST(Reuters, SplitsInTwo) {
  const TempDir dir;
  write_file(
      dir / "reuters-plain.npz",
      npz({{"x_words", words()}, {"x_lengths", lengths()}, {"y", labels()}}));
  const SequenceData d = reuters::load_data({.data_dir = dir.path()}, 0.34);
  EXPECT_EQ(d.train.x.size(), 1u);
  EXPECT_EQ(d.test.x.size(), 2u);
  EXPECT_THROW(reuters::load_data({.data_dir = dir.path()}, 1),
               errors::InvalidArgument);
}

TEST(Reuters, NamesTheToolForThePublishedFile) {
  const TempDir dir;
  write_file(dir / "reuters.npz", npz({{"x", npy("'|O'", "(1,)", "N.")}}));
  const std::string why = message_of<errors::InvalidArgument>(
      [&] { reuters::load_data({.data_dir = dir.path()}); });
  EXPECT_TRUE(says(why, dir / "reuters.npz"));
  EXPECT_TRUE(says(why, "convert the file once by tools/plain_npz"));
}

TEST(Reuters, RefusesLengthsThatDoNotFit) {
  const TempDir dir;
  for (const int first : {2, 4, -1}) {
    write_file(dir / "reuters-plain.npz", npz({{"x_words", words()},
                                               {"x_lengths", lengths(first)},
                                               {"y", labels()}}));
    EXPECT_TRUE(says(message_of<errors::InvalidArgument>(
                         [&] { reuters::load_data({.data_dir = dir.path()}); }),
                     "x_lengths"));
  }
}

TEST(CaliforniaHousing, KeepsRowsTogether) {
  const TempDir dir;
  std::string x, y;
  for (uint64_t i = 0; i < 10; ++i) {
    x += little(2 * i, 8) + little(2 * i + 1, 8);
    y += little(i, 8);
  }
  write_file(dir / "california_housing.npz",
             npz({{"x", npy("'<i8'", "(10, 2)", x)},
                  {"y", npy("'<i8'", "(10,)", y)}}));
  const ArrayData d = california_housing::load_data({.data_dir = dir.path()});
  EXPECT_EQ(d.train.x.shape(), (Shape{8, 2}));
  EXPECT_EQ(d.train.y.to_vector<int64_t>(), (Longs{9, 3, 6, 1, 0, 7, 4, 8}));
  EXPECT_EQ(d.test.x.to_vector<int64_t>(), (Longs{4, 5, 10, 11}));
}

TEST(Cifar100, ReadsBothLabels) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "cifar-100-binary");
  std::string record{3, 77};
  for (int i = 0; i < 3072; ++i) record += static_cast<char>(i / 1024);
  write_file(dir / "cifar-100-binary/train.bin", record + record);
  write_file(dir / "cifar-100-binary/test.bin", record);
  const ArrayData fine = cifar100::load_data({.data_dir = dir.path()});
  EXPECT_EQ(fine.train.x.shape(), (Shape{2, 32, 32, 3}));
  EXPECT_EQ(fine.train.y.to_vector<int>(), (std::vector<int>{77, 77}));
  const auto pixels = fine.test.x.to_vector<int>();
  EXPECT_EQ((std::vector<int>{pixels[0], pixels[1], pixels[2], pixels[3]}),
            (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(
      cifar100::load_data({.label_mode = "coarse", .data_dir = dir.path()})
          .test.y.item<int>(),
      3);
  write_file(dir / "cifar-100-binary/test.bin", "short");
  EXPECT_THROW(cifar100::load_data({.data_dir = dir.path()}), errors::DataLoss);
}

TEST(FashionMnist, IsNotTakenForMnist) {
  const TempDir dir;
  const ScopedEnv home("HOME", dir.path()), offline("BERTH_OFFLINE", "1");
  const ScopedEnv data("BERTH_DATA", dir.path());
  const std::string idx3("\0\0\x08\3\0\0\0\1\0\0\0\1\0\0\0\1\5", 17);
  const std::string idx1("\0\0\x08\1\0\0\0\1\7", 9);
  const auto write = [&](const std::string& folder) {
    for (const char* part : {"train", "t10k"}) {
      write_file(folder + "/" + part + "-images-idx3-ubyte", idx3);
      write_file(folder + "/" + part + "-labels-idx1-ubyte", idx1);
    }
  };
  write(dir.path());  // MNIST's own files would lie here
  const std::string why =
      message_of<errors::NotFound>([] { fashion_mnist::load_data(); });
  EXPECT_TRUE(says(why, "BERTH_OFFLINE forbids the download"));
  EXPECT_TRUE(says(why, "fashion-mnist"));
  EXPECT_TRUE(says(why, "train-images-idx3-ubyte.gz"));
  std::filesystem::create_directory(dir / "fashion-mnist");
  write(dir / "fashion-mnist");
  const ArrayData d = fashion_mnist::load_data();
  EXPECT_EQ(d.train.x.to_vector<int>(), (std::vector<int>{5}));
  EXPECT_EQ(d.test.y.to_vector<int>(), (std::vector<int>{7}));
}

TEST(PadSequences, PadsAndCutsEitherSide) {
  const Lists s{{1, 2, 3}, {4}};
  const auto padded = [&](const utils::PadSequencesOptions& o) {
    return utils::pad_sequences(s, o).to_vector<int64_t>();
  };
  EXPECT_EQ(padded({}), (Longs{1, 2, 3, 0, 0, 4}));
  EXPECT_EQ(padded({.padding = "post", .value = 9}), (Longs{1, 2, 3, 4, 9, 9}));
  EXPECT_EQ(padded({.maxlen = 2}), (Longs{2, 3, 0, 4}));
  EXPECT_EQ(padded({.maxlen = 2, .dtype = int64, .truncating = "post"}),
            (Longs{1, 2, 0, 4}));
  EXPECT_THROW(padded({.padding = "left"}), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::keras::datasets
