// KernelSource: the text of a program of kernels, made of files and dtypes.
//
// Files of kernels/ are part of the plug-in. A program consists of the dialect,
// the types, macros for its dtypes, the requested files, and generated text.
// Pure; thread-safe.

#ifndef BERTH_BACKENDS_GPU_SOURCE_H_
#define BERTH_BACKENDS_GPU_SOURCE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/dtype.h"

namespace berth::gpu {

struct KernelSource {
  // In kernels/, without dialect.cl and types.cl, which come first.
  std::vector<std::string> files;
  // {"T", float32}: `T`, `T_C`, `T_LOAD` ... of types.cl.
  std::vector<std::pair<std::string, DType>> types;
  // {"AXIS", "2"}: macros that the files read.
  std::vector<std::pair<std::string, std::string>> defines;
  std::string generated;  // after the files
  // The generated text may stand beside that of other programs with the same
  // beginning: no two have a kernel of one name.
  bool joins = false;
};

// Returns the name of a dtype in types.cl: "f32", "b8". Throws errors::Internal
// for one that GPU memory does not hold.
std::string_view type_word(DType dtype);

// Returns the whole program. Throws errors::Internal for a missing file.
std::string text_of(const KernelSource& source);

// Returns the text of a file of kernels/; throws as above.
std::string_view kernel_file(std::string_view name);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_SOURCE_H_
