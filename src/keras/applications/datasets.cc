// MNIST.

#include "berth/keras/datasets.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "io/drawn_digits.h"
#include "io/idx.h"
#include "io/mnist_files.h"
#include "keras/applications/image_data.h"

namespace berth::keras::datasets::mnist {

namespace {

Split drawn(int64_t count, uint64_t series) {
  io::DrawnDigits d = io::draw_digits(count, series);
  return {
      tensor_of(std::move(d.images), {count, io::kDigitSide, io::kDigitSide}),
      tensor_of(std::move(d.labels), {count})};
}

Tensor read(const std::string& path, int rank, const char* what) {
  io::IdxData idx = io::read_idx_file(path);
  const Shape shape(idx.dims);
  if (idx.dtype != io::IdxType::kUint8 || shape.rank() != rank) {
    throw errors::InvalidArgument(fmt::format(
        "{}: holds {} of shape {}; expected {}", path,
        idx.dtype == io::IdxType::kUint8 ? "bytes" : "other values than bytes",
        shape.str(), what));
  }
  return tensor_of(std::move(idx.bytes), shape);
}

}  // namespace

Split load_files(const std::string& images, const std::string& labels) {
  Split s{read(images, 3, "images, bytes [n, height, width]"),
          read(labels, 1, "labels, bytes [n]")};
  if (s.x.shape()[0] != s.y.shape()[0] || s.x.num_elements() == 0) {
    throw errors::InvalidArgument(fmt::format(
        "{} has {} images, {} has {} labels; expected as many, and some",
        images, s.x.shape().str(), labels, s.y.shape().str()));
  }
  return s;
}

Data load_data(const LoadOptions& options) {
  const io::MnistFiles files =
      io::find_or_fetch_mnist({.directory = options.data_dir,
                               .allow_download = options.allow_download});
  if (files.found()) {
    return {load_files(files.train_images, files.train_labels),
            load_files(files.test_images, files.test_labels), files.why, false};
  }
  if (!options.draw_if_missing) {
    throw errors::NotFound(fmt::format(
        "MNIST was not found: {}; put its four IDX files into data_dir or "
        "$BERTH_DATA, allow the download, or ask for digits that the program "
        "draws: load_data({{.draw_if_missing = true}})",
        files.why));
  }
  return {
      drawn(options.drawn_train, kTrainSeries),
      drawn(options.drawn_test, kTestSeries),
      "digits drawn by this program, since MNIST was not found: " + files.why,
      true};
}

}  // namespace berth::keras::datasets::mnist
