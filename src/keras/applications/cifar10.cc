// CIFAR-10.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/keras/datasets.h"
#include "io/cifar.h"
#include "keras/applications/image_data.h"

namespace berth::keras::datasets::cifar10 {

namespace {

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
  if (!options.draw_if_missing) {
    throw errors::NotFound(fmt::format(
        "CIFAR-10 was not found: {}; unpack "
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz into data_dir "
        "or $BERTH_DATA, or ask for gratings that the program draws: "
        "load_data({{.draw_if_missing = true}})",
        files.why));
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
