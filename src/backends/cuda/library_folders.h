// Where NVIDIA's libraries may lie.

#ifndef BERTH_BACKENDS_CUDA_LIBRARY_FOLDERS_H_
#define BERTH_BACKENDS_CUDA_LIBRARY_FOLDERS_H_

#include <string>
#include <vector>

namespace berth::cuda {

// In the order in which they are looked into; "": where the system's loader
// looks. Reads the environment and file names.
std::vector<std::string> library_folders();

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LIBRARY_FOLDERS_H_
