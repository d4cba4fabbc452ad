// A .npz file for tests, written from the descriptions of ZIP and NPY.

#ifndef BERTH_IO_NPZ_FILE_TESTING_H_
#define BERTH_IO_NPZ_FILE_TESTING_H_

#include <zlib.h>

#include <map>
#include <string>

namespace berth::io::testing {

inline std::string little(uint64_t v, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += static_cast<char>(v >> 8 * i);
  return s;
}

// An array as NumPy saves it: descr "'<i8'", shape "(3,)".
inline std::string npy(const std::string& descr, const std::string& shape,
                       const std::string& bytes) {
  std::string header = "{'descr': " + descr +
                       ", 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118 - 1, ' ');
  header += '\n';
  return "\x93NUMPY" + std::string("\1\0", 2) + little(header.size(), 2) +
         header + bytes;
}

// A ZIP archive of the arrays; `deflate` them or store them.
inline std::string npz(const std::map<std::string, std::string>& arrays,
                       bool deflated = false) {
  std::string zip, directory;
  for (const auto& [key, bytes] : arrays) {
    std::string body = bytes;
    if (deflated) {
      uLongf n = compressBound(bytes.size());
      body.resize(n);
      compress(reinterpret_cast<Bytef*>(body.data()), &n,
               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
      body = body.substr(2, n - 6);  // without zlib's frame
    }
    const std::string name = key + ".npy";
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),
                           static_cast<uInt>(bytes.size()));
    const std::string common = little(20, 2) + little(0, 2) +
                               little(deflated ? 8 : 0, 2) + little(0, 4) +
                               little(crc, 4) + little(body.size(), 4) +
                               little(bytes.size(), 4) + little(name.size(), 2);
    directory += "PK\1\2" + little(20, 2) + common + little(0, 2) +
                 little(0, 2) + little(0, 8) + little(zip.size(), 4) + name;
    zip += "PK\3\4" + common + little(0, 2) + name + body;
  }
  return zip + directory + "PK\5\6" + little(0, 4) + little(arrays.size(), 2) +
         little(arrays.size(), 2) + little(directory.size(), 4) +
         little(zip.size(), 4) + little(0, 2);
}

}  // namespace berth::io::testing

#endif  // BERTH_IO_NPZ_FILE_TESTING_H_
