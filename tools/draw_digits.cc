// draw_digits FOLDER: writes the digits that programs draw where MNIST is
// missing as MNIST's four IDX files, for tests (BERTH_DATA=FOLDER).

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "berth/errors.h"
#include "berth/keras/datasets.h"

namespace {

void write_idx(const std::filesystem::path& path, const berth::Tensor& values) {
  std::string bytes{0, 0, 8, static_cast<char>(values.shape().rank())};
  for (const int64_t n : values.shape()) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes += static_cast<char>(n >> shift & 255);
    }
  }
  for (const uint8_t v : values.to_vector<uint8_t>()) {
    bytes += static_cast<char>(v);
  }
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.flush()) {
    throw berth::errors::Unavailable("cannot write " + path.string());
  }
}

void write_digits(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  unsetenv("BERTH_DATA");
  setenv("HOME", folder.c_str(), 1);  // no MNIST of this machine
  unsetenv("XDG_CACHE_HOME");
  const auto d = berth::keras::datasets::mnist::load_data(
      {.allow_download = false, .draw_if_missing = true});
  write_idx(folder / "train-images-idx3-ubyte", d.train.x);
  write_idx(folder / "train-labels-idx1-ubyte", d.train.y);
  write_idx(folder / "t10k-images-idx3-ubyte", d.test.x);
  write_idx(folder / "t10k-labels-idx1-ubyte", d.test.y);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: draw_digits FOLDER\n");
    return 2;
  }
  try {
    write_digits(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "draw_digits: %s\n", e.what());
    return 1;
  }
  return 0;
}
