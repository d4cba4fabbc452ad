// The manifest of a checkpoint: which files it has, and the texts of its
// objects. A checkpoint is complete when its manifest is. Pure but for reading
// files.

#ifndef BERTH_IO_MANIFEST_H_
#define BERTH_IO_MANIFEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::io {

struct Manifest {
  struct File {
    std::string name;  // in the manifest's folder
    uint64_t bytes = 0;
    std::optional<uint32_t> header = {};  // header_checksum()
  };
  struct Object {
    std::string kind;
    std::string text;
  };
  int64_t save_counter = 0;
  std::vector<File> files;
  std::map<std::string, Object> objects;
};

// Returns the checksum of the header of a safetensors file, which has none of
// its own; nullopt if it cannot be read.
std::optional<uint32_t> header_checksum(const std::string& path);

// Throws InvalidArgument for texts that are not UTF-8.
std::string print_manifest(const Manifest& manifest,
                           const std::string& subject);

// Throws DataLoss, and Unimplemented for one of a newer version. Messages
// begin with `subject`.
Manifest parse_manifest(std::string_view text, const std::string& subject);

// Reads "PATH.json" and looks that its files are there, with their sizes and
// headers.
// Throws NotFound, PermissionDenied, DataLoss, Unimplemented.
Manifest read_manifest(const std::string& path, const std::string& subject);

}  // namespace berth::io

#endif  // BERTH_IO_MANIFEST_H_
