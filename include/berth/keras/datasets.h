// datasets: small data sets by name (tf.keras.datasets).
//
// They act at once. Thread-safe as long as no thread changes the environment.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_DATASETS_H_
#define BERTH_KERAS_DATASETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::keras::datasets {

struct Split {
  Tensor x;  // uint8 [n, 28, 28], or of CIFAR-10 [n, 32, 32, 3]
  Tensor y;  // uint8 [n]
};

namespace mnist {

struct LoadOptions {
  // Looked up here, in $BERTH_DATA, in ~/.cache/berth; then downloaded.
  std::string data_dir = {};
  bool allow_download = true;
  // If the files are missing, the program draws digits itself.
  bool draw_if_missing = false;
  int64_t drawn_train = 10'000;
  int64_t drawn_test = 2'000;
};

struct Data {
  Split train, test;
  // The origin of the data, and why other sources failed, in a line.
  std::string source;
  bool drawn = false;
};

// Throws errors::NotFound, which lists where it looked and what to do, unless
// `draw_if_missing`.
Data load_data(const LoadOptions& options = {});

// Reads one pair of IDX files, plain or gzip. Throws errors::NotFound,
// errors::DataLoss, errors::InvalidArgument, naming the file.
Split load_files(const std::string& images, const std::string& labels);

}  // namespace mnist

// Small colour images of ten classes (Krizhevsky 2009), from the binary
// version: https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, unpacked.
namespace cifar10 {

struct LoadOptions {
  // Looked up here, in $BERTH_DATA, in ~/.cache/berth, each also in its
  // folder cifar-10-batches-bin. Nothing is downloaded.
  std::string data_dir = {};
  // If the files are missing, the program draws gratings of ten directions
  // itself.
  bool draw_if_missing = false;
  int64_t drawn_train = 10'000;
  int64_t drawn_test = 2'000;
};

struct Data {
  Split train, test;
  std::string source;  // the origin of the data, in a line
  bool drawn = false;
};

// Throws errors::NotFound, which lists where it looked and what to do, unless
// `draw_if_missing`.
Data load_data(const LoadOptions& options = {});

// Reads files of records of a label and 32 x 32 pixels, one after the other.
// Throws errors::NotFound, errors::DataLoss, errors::InvalidArgument, naming
// the file.
Split load_files(const std::vector<std::string>& paths);

}  // namespace cifar10
}  // namespace berth::keras::datasets

#endif  // BERTH_KERAS_DATASETS_H_
