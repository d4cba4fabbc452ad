// Fuzz target of the readers of checkpoints: any bytes end in values or in a
// named error, within the memory that the bytes themselves take.
//
// The first byte chooses the reader. Headers of safetensors files are also read
// with a length and data that fit, so that mutations reach past the length.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "berth/errors.h"
#include "io/manifest.h"
#include "io/safetensors.h"

namespace {

using berth::io::SafetensorsFile;

// Every tensor of a file of these bytes.
void read_file(const std::string& bytes) {
  static const int fd = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes.data(), bytes.size(), 0) !=
                                   static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  const SafetensorsFile file(path, "fuzz");
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const SafetensorsFile::Info& info = file.tensors()[i];
    if (file.find(info.name) != static_cast<int>(i)) std::abort();
    try {
      if (info.dtype == berth::string_ ||
          info.dtype == berth::DType::kInvalid) {
        file.tensor(static_cast<int>(i));
        continue;
      }
      std::vector<std::byte> room(
          static_cast<size_t>(info.shape.num_elements()) *
          berth::size_of(info.dtype));
      file.read(static_cast<int>(i), room.data());
    } catch (const berth::errors::Error& error) {
      if (error.what()[0] == 0) std::abort();
    }
  }
}

std::string with_length(const std::string& json, const std::string& data) {
  const uint64_t n = json.size();
  return std::string(reinterpret_cast<const char*>(&n), sizeof n) + json + data;
}

void read(uint8_t how, const std::string& bytes) {
  if (how == 0) return read_file(bytes);
  if (how == 1) {
    berth::io::parse_manifest(bytes, "fuzz");
    return;
  }
  // JSON up to a zero byte, then data.
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  read_file(with_length(bytes.substr(0, end),
                        bytes.substr(std::min(end + 1, bytes.size()))));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0] % 3,
         std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  } catch (const berth::errors::Error& error) {
    if (error.what()[0] == 0) std::abort();
  }
  return 0;
}
