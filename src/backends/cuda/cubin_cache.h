// CubinCache: compiled programs on disk, each in a file named by the hash of
// its source; also other results that are computed once for such a key.
//
// A file is written whole and then renamed, so that processes may share the
// folder; a damaged file counts as missing. Failures to write are ignored.
// Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_CUBIN_CACHE_H_
#define BERTH_BACKENDS_CUDA_CUBIN_CACHE_H_

#include <optional>
#include <string>

namespace berth::cuda {

class CubinCache {
 public:
  // An empty `folder` keeps nothing. `kind` is what files hold and begin with.
  explicit CubinCache(std::string folder, std::string kind = "cubin")
      : folder_(std::move(folder)), kind_(std::move(kind)) {}
  // Returns $BERTH_CACHE_DIR/cuda, else berth/cuda in $XDG_CACHE_HOME or
  // ~/.cache; or the same with another `name` than cuda.
  static std::string default_folder(const std::string& name = "cuda");

  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, const std::string& code) const;
  // Returns the SHA-256 of a text in hex.
  static std::string hash_of(const std::string& text);
  // Returns the path of a key's file.
  std::string path_of(const std::string& key) const;

 private:
  std::string head_of(const std::string& code) const;

  const std::string folder_, kind_;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUBIN_CACHE_H_
