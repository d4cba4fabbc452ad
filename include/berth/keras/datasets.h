// datasets: small data sets by name (tf.keras.datasets).
//
// They act at once. Thread-safe as long as no thread changes the environment.

#ifndef BERTH_KERAS_DATASETS_H_
#define BERTH_KERAS_DATASETS_H_

#include <cstdint>
#include <string>

#include "berth/tensor.h"

namespace berth::keras::datasets {

struct Split {
  Tensor x;  // uint8 [n, 28, 28]
  Tensor y;  // uint8 [n]
};

namespace mnist {

struct LoadOptions {
  // Looked up here, in $BERTH_DATA, in ~/.cache/berth; then downloaded.
  std::string data_dir = {};
  bool allow_download = true;
  // Without the files, digits that the program draws itself take their place.
  int64_t drawn_train = 10'000;
  int64_t drawn_test = 2'000;
};

struct Data {
  Split train, test;
  // Where it comes from, and why not from elsewhere, in a line.
  std::string source;
  bool drawn = false;
};

Data load_data(const LoadOptions& options = {});

// Reads one pair of IDX files, plain or gzip. Throws errors::NotFound,
// errors::DataLoss, errors::InvalidArgument, naming the file.
Split load_files(const std::string& images, const std::string& labels);

}  // namespace mnist
}  // namespace berth::keras::datasets

#endif  // BERTH_KERAS_DATASETS_H_
