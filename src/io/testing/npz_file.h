// A .npz file for tests, written from the descriptions of ZIP and NPY.

#ifndef BERTH_IO_TESTING_NPZ_FILE_H_
#define BERTH_IO_TESTING_NPZ_FILE_H_

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

inline std::string from_hex(const std::string& hex) {
  std::string s;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    s += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return s;
}

// pickle.dumps() by Python of a NumPy array of the lists [1, 2, 300],
// [70000, -5] and []; NumPy 2.
inline const char kPickle2[] =
    "8002636e756d70792e5f636f72652e6d756c746961727261790a5f7265636f6e7374727563"
    "740a7100636e756d70790a6e6461727261790a71014b00857102635f636f646563730a656e"
    "636f64650a7103580100000062710458060000006c6174696e317105867106527107877108"
    "527109284b014b0385710a636e756d70790a64747970650a710b58020000004f38710c8988"
    "87710d52710e284b0358010000007c710f4e4e4e4affffffff4affffffff4b3f7471106289"
    "5d7111285d7112284b014b024d2c01655d7113284a701101004afbffffff655d7114657471"
    "15622e";
inline const char kPickle3[] =
    "8003636e756d70792e5f636f72652e6d756c746961727261790a5f7265636f6e7374727563"
    "740a7100636e756d70790a6e6461727261790a71014b008571024301627103877104527105"
    "284b014b03857106636e756d70790a64747970650a710758020000004f3871088988877109"
    "52710a284b0358010000007c710b4e4e4e4affffffff4affffffff4b3f74710c62895d710d"
    "285d710e284b014b024d2c01655d710f284a701101004afbffffff655d711065747111622"
    "e";
inline const char kPickle4[] =
    "800495a5000000000000008c166e756d70792e5f636f72652e6d756c74696172726179948c"
    "0c5f7265636f6e7374727563749493948c056e756d7079948c076e6461727261799493944b"
    "0085944301629487945294284b014b03859468038c0564747970659493948c024f38948988"
    "87945294284b038c017c944e4e4e4affffffff4affffffff4b3f749462895d94285d94284b"
    "014b024d2c01655d94284a701101004afbffffff655d94657494622e";

}  // namespace berth::io::testing

#endif  // BERTH_IO_TESTING_NPZ_FILE_H_
