#include "io/sha256.h"

#include "io/byte_source.h"
#include "io/network.h"

namespace berth::io {

std::string sha256_of_file(const std::string& path) {
  return network().digest("sha256", *file_source(path));
}

std::string md5_of_file(const std::string& path) {
  return network().digest("md5", *file_source(path));
}

std::string sha256_of(std::string_view bytes) {
  return network().digest(
      "sha256", *memory_source({reinterpret_cast<const uint8_t*>(bytes.data()),
                                bytes.size()}));
}

}  // namespace berth::io
