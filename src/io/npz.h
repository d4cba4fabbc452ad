// NumPy's .npz files: a ZIP archive of arrays.
//
// Arrays of numbers of any shape. Arrays of Python objects are refused: they
// are pickles, which are programs. Pure; thread-safe.

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
  DType dtype = DType::kInvalid;
  std::vector<int64_t> shape;
  std::string bytes;  // row-major
};

struct NpzOptions {
  int64_t max_bytes = int64_t{1} << 31;  // of one array, decompressed
};

// Reads all arrays of an archive, by name ("x_train"). Throws InvalidArgument
// for what is not a .npz file or holds objects, DataLoss for damage,
// ResourceExhausted for arrays above the limit.
std::map<std::string, NpyArray> read_npz(std::string_view bytes,
                                         const NpzOptions& options = {});

// Reads one .npy array.
NpyArray read_npy(std::string_view bytes);

}  // namespace berth::io

#endif  // BERTH_IO_NPZ_H_
