// NumPy's .npz files: a ZIP archive of arrays.
//
// Arrays of numbers of any shape, and one kind of objects: a list of lists of
// integers, as imdb.npz and reuters.npz have. Nothing else of a pickle is read
// and nothing of it is executed. Pure; thread-safe.

#ifndef BERTH_IO_NPZ_H_
#define BERTH_IO_NPZ_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "berth/dtype.h"

namespace berth::io {

struct NpyArray {
  DType dtype = DType::kInvalid;  // kInvalid: lists
  std::vector<int64_t> shape;
  std::string bytes;  // row-major
  std::vector<std::vector<int64_t>> lists;
};

struct NpzOptions {
  int64_t max_bytes = int64_t{1} << 31;  // of one array, decompressed
};

// Reads all arrays of an archive, by name ("x_train"). Throws InvalidArgument
// for what is no .npz file or holds other objects, DataLoss for damage,
// ResourceExhausted for arrays above the limit.
std::map<std::string, NpyArray> read_npz(std::string_view bytes,
                                         const NpzOptions& options = {});

// Reads one .npy array.
NpyArray read_npy(std::string_view bytes);

// Reads a pickled object array of lists of integers.
std::vector<std::vector<int64_t>> read_pickled_lists(std::string_view pickle);

}  // namespace berth::io

#endif  // BERTH_IO_NPZ_H_
