// more_datasets: data sets read from their published files
// (tf.keras.datasets.fashion_mnist, cifar100, imdb, reuters,
// california_housing).
//
// Each looks for its files in data_dir, $BERTH_DATA and ~/.cache/berth, and in
// the folder named below in each of these, then downloads them, checks them and
// keeps them in ~/.cache/berth. BERTH_OFFLINE=1 forbids the network. Throw
// errors::NotFound, naming the places searched, what to fetch and where to put
// it; errors::DataLoss, InvalidArgument for damaged or wrong files. They act at
// once. Thread-safe as long as no thread changes the environment.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_MORE_DATASETS_H_
#define BERTH_KERAS_MORE_DATASETS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::keras::datasets {

struct Arrays {
  Tensor x, y;
};
struct ArrayData {
  Arrays train, test;
};

struct FilesOptions {
  std::string data_dir = {};
  bool allow_download = true;
};

// 70,000 images of clothes: uint8 [n, 28, 28] and [n]. Files with MNIST's
// names, in a folder fashion-mnist.
namespace fashion_mnist {
ArrayData load_data(const FilesOptions& options = {}, Site site = Site::here());
}  // namespace fashion_mnist

// 60,000 small images of 100 classes in 20 groups: uint8 [n, 32, 32, 3] and
// [n]. train.bin and test.bin of the binary version, in a folder
// cifar-100-binary; nothing is downloaded.
namespace cifar100 {
struct LoadOptions {
  std::string label_mode = "fine";  // or "coarse": the groups
  std::string data_dir = {};
};
ArrayData load_data(const LoadOptions& options = {}, Site site = Site::here());
}  // namespace cifar100

// Texts as word numbers, the most frequent first.
struct Sequences {
  std::vector<std::vector<int64_t>> x;
  Tensor y;  // int64 [n]
};
struct SequenceData {
  Sequences train, test;
};
struct SequenceOptions {
  std::optional<int64_t> num_words = std::nullopt;  // the others are oov_char
  int64_t skip_top = 0;  // and so are the first skip_top
  std::optional<int64_t> maxlen = std::nullopt;  // longer texts are omitted
  int64_t seed = 113;                            // of NumPy's shuffle
  std::optional<int64_t> start_char = 1;
  std::optional<int64_t> oov_char = 2;  // none: such words are omitted
  int64_t index_from = 3;               // added to all words
  std::string data_dir = {};
  bool allow_download = true;
};

// 50,000 reviews, good (1) or bad (0): imdb.npz, converted by tools/plain_npz.
namespace imdb {
SequenceData load_data(const SequenceOptions& options = {},
                       Site site = Site::here());
}  // namespace imdb

// 11,228 newswires of 46 topics: reuters.npz, converted by tools/plain_npz.
namespace reuters {
SequenceData load_data(const SequenceOptions& options = {},
                       double test_split = 0.2, Site site = Site::here());
}  // namespace reuters

// Prices of houses with 8 features: x [n, 8], y [n]. california_housing.npz.
namespace california_housing {
struct LoadOptions {
  std::string version = "large";  // 20,640 houses; "small": 600
  double test_split = 0.2;
  int64_t seed = 113;  // of NumPy's shuffle
  std::string data_dir = {};
  bool allow_download = true;
};
ArrayData load_data(const LoadOptions& options = {}, Site site = Site::here());
}  // namespace california_housing

}  // namespace berth::keras::datasets

namespace berth::keras::utils {

struct PadSequencesOptions {
  std::optional<int64_t> maxlen = std::nullopt;  // none: the longest
  DType dtype = int32;                           // or int64
  std::string padding = "pre";                   // or "post"
  std::string truncating = "pre";
  int64_t value = 0;
};
// Sequences as rows of equal length [n, maxlen].
Tensor pad_sequences(const std::vector<std::vector<int64_t>>& sequences,
                     const PadSequencesOptions& options = {},
                     Site site = Site::here());

}  // namespace berth::keras::utils

#endif  // BERTH_KERAS_MORE_DATASETS_H_
