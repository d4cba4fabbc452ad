// CubinCache: compiled programs on disk, each a file named by the hash of what
// it was compiled from.
//
// A file is written whole and then renamed, so that processes may share the
// folder; one that is damaged counts as missing. Failures to write are of no
// account. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_CUBIN_CACHE_H_
#define BERTH_BACKENDS_CUDA_CUBIN_CACHE_H_

#include <optional>
#include <string>

namespace berth::cuda {

class CubinCache {
 public:
  // "": keeps nothing.
  explicit CubinCache(std::string folder) : folder_(std::move(folder)) {}
  // $BERTH_CACHE_DIR/cuda, else berth/cuda in $XDG_CACHE_HOME or ~/.cache.
  static std::string default_folder();

  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, const std::string& code) const;
  // The file of a key.
  std::string path_of(const std::string& key) const;

 private:
  const std::string folder_;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUBIN_CACHE_H_
