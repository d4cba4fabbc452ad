// Digests of files and texts, by the Network in use. Thread-safe.

#ifndef BERTH_IO_SHA256_H_
#define BERTH_IO_SHA256_H_

#include <string>
#include <string_view>

namespace berth::io {

// Returns the SHA-256 of the regular file `path` as 64 lower-case hex digits.
// Throws like `file_source` when it cannot be read.
std::string sha256_of_file(const std::string& path);

// MD5, for files whose publisher gives no better digest.
std::string md5_of_file(const std::string& path);

// Returns the SHA-256 of `bytes`.
std::string sha256_of(std::string_view bytes);

}  // namespace berth::io

#endif  // BERTH_IO_SHA256_H_
