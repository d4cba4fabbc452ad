// Where NVIDIA's libraries may be, and how they are opened.

#ifndef BERTH_BACKENDS_CUDA_LIBRARY_FOLDERS_H_
#define BERTH_BACKENDS_CUDA_LIBRARY_FOLDERS_H_

#include <functional>
#include <string>
#include <vector>

namespace berth::cuda {

// Returns the folders in search order; "" is the system loader's path. Reads
// the environment and file names. `package` adds a Python package beside CUDA's
// own, for example "cudnn".
std::vector<std::string> library_folders(const std::string& package = "");

// Finds the functions of an opened library; returns the name of the first one
// missing, or null.
using FillCalls = std::function<const char*(void* library)>;

// Opens the first library of that name, for example "libnccl.so.2", that has
// all functions; it stays open. On false, *tried says where it was looked for,
// and what was wrong there.
bool open_library(const char* name, const std::vector<std::string>& folders,
                  const FillCalls& fill, std::string* tried);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LIBRARY_FOLDERS_H_
