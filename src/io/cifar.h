// Files of CIFAR-10's binary version, and images in their place.
//
// A record is a label from 0 to 9, then 32 x 32 bytes of red, of green, of
// blue. Thread-safe as long as no thread changes the environment.

#ifndef BERTH_IO_CIFAR_H_
#define BERTH_IO_CIFAR_H_

#include <cstdint>
#include <string>
#include <vector>

namespace berth::io {

constexpr int kCifarSide = 32;
constexpr int kCifarClasses = 10;
constexpr int kCifarBytes = kCifarSide * kCifarSide * 3;  // of an image

struct CifarImages {
  std::vector<uint8_t> images;  // [count, 32, 32, 3]
  std::vector<uint8_t> labels;  // [count]
};

// Appends the records of a file, plain or gzip. Throws NotFound,
// PermissionDenied, DataLoss for a file that ends within a record,
// InvalidArgument for a label above 9 or more than a million records.
void read_cifar_file(const std::string& path, CifarImages* to);

struct CifarFiles {
  std::vector<std::string> train, test;  // empty when not found
  std::string why;                       // one line: what was found or missing
};

// Looks for the six files in `directory`, $BERTH_DATA, `cache` (empty:
// ~/.cache/berth), each also in its folder cifar-10-batches-bin.
CifarFiles find_cifar(const std::string& directory,
                      const std::string& cache = {});

// Draws images 0 to `count` - 1 of the series `seed`: noisy gratings in two
// colours, whose direction is the class. Image i is a pure function of
// (seed, i). Throws InvalidArgument unless 0 <= count <= 10^6.
CifarImages draw_gratings(int64_t count, uint64_t seed);

}  // namespace berth::io

#endif  // BERTH_IO_CIFAR_H_
