#include "io/cifar.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <system_error>

#include "base/environment.h"
#include "base/rng.h"
#include "berth/errors.h"
#include "io/byte_source.h"

namespace berth::io {

namespace {

constexpr int64_t kMaxImages = 1'000'000;
constexpr int kPlane = kCifarSide * kCifarSide;

void append_record(const std::array<uint8_t, 1 + kCifarBytes>& record,
                   CifarImages* to) {
  to->labels.push_back(record[0]);
  for (int i = 0; i < kPlane; ++i) {
    for (int c = 0; c < 3; ++c) {
      to->images.push_back(record[static_cast<size_t>(1 + c * kPlane + i)]);
    }
  }
}

// Fills in the files of one folder, if all are there; else names one that is
// missing.
std::string take(const std::string& folder, CifarFiles* files) {
  std::vector<std::string> train;
  const auto missing = [](const std::string& path) {
    std::error_code ignored;
    return !std::filesystem::is_regular_file(path, ignored);
  };
  for (int i = 1; i <= 5; ++i) {
    train.push_back(fmt::format("{}/data_batch_{}.bin", folder, i));
    if (missing(train.back())) return train.back();
  }
  const std::string test = folder + "/test_batch.bin";
  if (missing(test)) return test;
  files->train = std::move(train);
  files->test = {test};
  files->why = "CIFAR-10 from " + folder;
  return "";
}

// One image: a wave along the class's direction between two colours, and
// noise of up to 75 levels.
void draw_grating(uint64_t seed, uint64_t index, CifarImages* to) {
  const RandomStream random(seed, 0xC1FA, index);
  const auto label = static_cast<uint8_t>(random.word(0) % kCifarClasses);
  const double angle = (label + 0.6 * (random.uniform(1) - 0.5)) *
                       std::numbers::pi / kCifarClasses;
  const double waves = 3 + 3 * random.uniform(2);
  const double phase = 2 * std::numbers::pi * random.uniform(3);
  const double turn = 2 * std::numbers::pi * waves / kCifarSide;
  const double dx = std::cos(angle) * turn, dy = std::sin(angle) * turn;
  double low[3], range[3];
  for (uint64_t c = 0; c < 3; ++c) {
    low[c] = 255 * random.uniform(4 + c);
    range[c] = 255 * random.uniform(8 + c) - low[c];
  }
  PhiloxBlock noise{};
  for (int i = 0; i < kCifarBytes; ++i) {
    // A byte of noise per byte.
    if (i % 16 == 0) noise = random.block(static_cast<uint64_t>(4 + i / 16));
    const double byte = noise[i % 16 / 4] >> (i % 4 * 8) & 0xFF;
    const int x = i / 3 % kCifarSide, y = i / 3 / kCifarSide;
    const double wave = 0.5 + 0.5 * std::sin(dx * x + dy * y + phase);
    const double v =
        low[i % 3] + range[i % 3] * wave + (byte - 127.5) * (75 / 127.5);
    to->images.push_back(static_cast<uint8_t>(v < 0 ? 0 : (v > 255 ? 255 : v)));
  }
  to->labels.push_back(label);
}

}  // namespace

void read_cifar_file(const std::string& path, CifarImages* to) {
  const std::string name = fmt::format("\"{}\"", path);
  const auto source = gunzip_if_needed(file_source(path), name);
  std::array<uint8_t, 1 + kCifarBytes> record;
  for (;;) {
    const size_t got = source->read(record);
    if (got == 0) return;
    if (got < record.size()) {
      throw errors::DataLoss(fmt::format(
          "{}: ends {} bytes into a record at {}; expected records of {} "
          "bytes: fetch the file again",
          name, got, source->position(), record.size()));
    }
    if (record[0] >= kCifarClasses ||
        to->labels.size() >= static_cast<size_t>(kMaxImages)) {
      throw errors::InvalidArgument(fmt::format(
          "{}: label {} of image {}; expected labels 0 to 9 and at most {} "
          "images: is it CIFAR-10's binary version?",
          name, record[0], to->labels.size(), kMaxImages));
    }
    append_record(record, to);
  }
}

CifarFiles find_cifar(const std::string& directory, const std::string& cache) {
  const std::string home = environment("HOME");
  const std::string last =
      cache.empty() && !home.empty() ? home + "/.cache/berth" : cache;
  CifarFiles files;
  std::string missing;
  for (const std::string& folder :
       {directory, environment("BERTH_DATA"), last}) {
    if (folder.empty()) continue;
    for (const char* inner : {"", "/cifar-10-batches-bin"}) {
      const std::string lacks = take(folder + inner, &files);
      if (lacks.empty()) return files;
      if (missing.empty()) missing = lacks;
    }
  }
  files.why = missing.empty() ? "no folder to look in"
                              : fmt::format("there is no {}", missing);
  return files;
}

CifarImages draw_gratings(int64_t count, uint64_t seed) {
  if (count < 0 || count > kMaxImages) {
    throw errors::InvalidArgument(
        fmt::format("{} images to draw; expected 0 to {}", count, kMaxImages));
  }
  CifarImages d;
  d.images.reserve(static_cast<size_t>(count * kCifarBytes));
  for (int64_t i = 0; i < count; ++i) {
    draw_grating(seed, static_cast<uint64_t>(i), &d);
  }
  return d;
}

}  // namespace berth::io
