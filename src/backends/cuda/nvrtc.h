// Nvrtc: CUDA's compiler as a library, found at run time, and its earlier
// output, kept on disk.
//
// libnvrtc.so.13 is looked for in the folders of BERTH_CUDA_LIBRARIES
// (separated by colons), beside the plug-in, on the system loader's path, in
// /usr/local/cuda/lib64, and in the Python packages (nvidia/cu13/lib) of a
// python in PATH. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_NVRTC_H_
#define BERTH_BACKENDS_CUDA_NVRTC_H_

#include <nvrtc.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/cubin_cache.h"

namespace berth::cuda {

struct NvrtcCalls;

// The outcome of a compilation.
struct Compiled {
  bool good = false;
  std::string cubin, ptx;
  std::string log;  // warnings, errors
};

class Nvrtc {
 public:
  // Returns the library; null, with what was tried, when there is none. Only
  // the first call searches.
  static const Nvrtc* find(std::string* why);

  // "NVRTC 13.0"
  std::string description() const;
  // Returns the number of compilations for cubin() and cubins() so far.
  int compilations() const { return compilations_; }
  // Returns the newest architecture that it compiles for and the GPU runs, 90
  // for a compute capability of 9.0; 0 if there is none.
  int architecture_for(int major, int minor) const;

  // Returns the code of a program for sm_<architecture>, from the cache or
  // compiled. Throws errors::Internal with the compiler's message.
  std::string cubin(const std::string& text, int architecture) const;

  // Returns the code of each of `parts`, after `beginning`, whose kernels have
  // different names. What the cache lacks is compiled as one program; parts of
  // one program have the same code. Throws as cubin().
  std::vector<std::shared_ptr<const std::string>> cubins(
      const std::string& beginning, const std::vector<std::string>& parts,
      int architecture) const;

  // Everything that determines that code: compiler, options, text.
  std::string key_of(const std::string& text, int architecture) const;

  // Compiles with these extra options, without the cache.
  Compiled compile(const std::string& text, int architecture,
                   const std::vector<std::string>& more = {}) const;
  // Compiles to PTX only.
  Compiled ptx(const std::string& text, int architecture) const;

 private:
  explicit Nvrtc(const NvrtcCalls& calls);
  friend struct NvrtcFound;
  Compiled run(const std::string& text, std::vector<std::string> options,
               bool code) const;
  std::string compile_good(const std::string& text, int architecture) const;

  const NvrtcCalls& calls_;
  int major_ = 0, minor_ = 0;
  std::vector<int> architectures_;  // ascending
  const CubinCache cache_;
  const CubinCache parts_;  // the key in cache_ of each part's program
  mutable std::atomic<int> compilations_{0};
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NVRTC_H_
