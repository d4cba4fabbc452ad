#include <fmt/format.h>

#include <memory>

#include "berth/errors.h"
#include "berth/keras/datasets.h"
#include "io/cifar.h"

namespace berth::keras::datasets::cifar10 {

namespace {

// Series of the drawn images: test images are others than training images.
constexpr uint64_t kTrainSeries = 1;
constexpr uint64_t kTestSeries = 2;

Tensor tensor_of(std::vector<uint8_t> bytes, const Shape& shape) {
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  return wrap_memory(owner->data(), shape, uint8, [owner] {});
}

Split split_of(io::CifarImages d) {
  const auto n = static_cast<int64_t>(d.labels.size());
  const Shape shape{n, io::kCifarSide, io::kCifarSide, 3};
  return {tensor_of(std::move(d.images), shape),
          tensor_of(std::move(d.labels), {n})};
}

}  // namespace

Split load_files(const std::vector<std::string>& paths) {
  io::CifarImages d;
  for (const std::string& path : paths) io::read_cifar_file(path, &d);
  if (d.labels.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "CIFAR-10: {} files hold no image; expected some", paths.size()));
  }
  return split_of(std::move(d));
}

Data load_data(const LoadOptions& options) {
  const io::CifarFiles files = io::find_cifar(options.data_dir);
  if (!files.train.empty()) {
    return {load_files(files.train), load_files(files.test), files.why, false};
  }
  return {split_of(io::draw_gratings(options.drawn_train, kTrainSeries)),
          split_of(io::draw_gratings(options.drawn_test, kTestSeries)),
          "gratings drawn by this program, since CIFAR-10 was not found: " +
              files.why +
              " (https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, "
              "unpacked)",
          true};
}

}  // namespace berth::keras::datasets::cifar10
