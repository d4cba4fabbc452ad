#include "backends/cuda/cubin_cache.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/environment.h"

namespace berth::cuda {

namespace {

namespace fs = std::filesystem;

}  // namespace

std::string CubinCache::hash_of(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  EVP_Digest(text.data(), text.size(), digest, &bytes, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < bytes; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

// Returns the header of a file, by which damage is detected.
std::string CubinCache::head_of(const std::string& code) const {
  return fmt::format("berth {} 1\n{}\n", kind_, hash_of(code));
}

std::string CubinCache::default_folder(const std::string& name) {
  if (const std::string dir = environment("BERTH_CACHE_DIR"); !dir.empty()) {
    return dir + "/" + name;
  }
  // The XDG specification ignores paths that are not absolute.
  const std::string xdg = environment("XDG_CACHE_HOME");
  if (!xdg.empty() && xdg[0] == '/') return xdg + "/berth/" + name;
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/berth/" + name;
}

std::string CubinCache::path_of(const std::string& key) const {
  const std::string end = kind_ == "cubin" ? ".cubin" : "";
  return folder_ + "/" + hash_of(key) + end;
}

std::optional<std::string> CubinCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(path_of(key), std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const size_t head = head_of("").size();
  if (all.size() <= head) return std::nullopt;
  std::string code = all.substr(head);
  if (all.substr(0, head) != head_of(code)) return std::nullopt;
  return code;
}

void CubinCache::keep(const std::string& key, const std::string& code) const {
  if (folder_.empty()) return;
  static std::atomic<int> count{0};
  const std::string path = path_of(key);
  const std::string next = fmt::format("{}.{}.{}", path, getpid(), ++count);
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  {
    std::ofstream file(next, std::ios::binary);
    file << head_of(code) << code;
    file.close();
    if (file.good()) {
      fs::rename(next, path, ignored);
      if (!ignored) return;
    }
  }
  fs::remove(next, ignored);
}

}  // namespace berth::cuda
