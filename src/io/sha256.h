// SHA-256 by OpenSSL's libcrypto, which libcurl already loads.
//
// A hasher belongs to one thread; the functions are thread-safe.

#ifndef BERTH_IO_SHA256_H_
#define BERTH_IO_SHA256_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace berth::io {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const uint8_t> bytes);

  // Returns 64 lower-case hex digits; call once.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the digest of the regular file `path` as hex. Throws like
// `file_source` when it cannot be read.
std::string sha256_of_file(const std::string& path);

// The same with MD5, of files whose publisher gives no better digest.
std::string md5_of_file(const std::string& path);

}  // namespace berth::io

#endif  // BERTH_IO_SHA256_H_
