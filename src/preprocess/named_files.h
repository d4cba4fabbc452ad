// Files of published data sets: looked up in folders, else downloaded.

#ifndef BERTH_PREPROCESS_NAMED_FILES_H_
#define BERTH_PREPROCESS_NAMED_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace berth::keras::datasets {

struct NamedFile {
  std::string name;        // "imdb.npz"
  std::string url;         // "": it is not downloaded
  std::string digest;      // SHA-256 or MD5 in hex
  std::string plain = {};  // where this is in the folder, it is taken instead
};

struct FileSearch {
  std::string title;         // "IMDB"
  std::string folder;        // looked into as well; "": none
  bool only_folder = false;  // names alone would find other data
  std::string data_dir;
  bool allow_download = true;
};

// Returns the paths of all files, of one folder. Throws errors::NotFound with
// what was tried and what to do.
std::vector<std::string> find_files(const std::vector<NamedFile>& files,
                                    const FileSearch& search);

inline constexpr char kKerasFolder[] =
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/";

// An .npz file that Keras publishes. Where its arrays are Python objects,
// tools/plain_npz makes a `plain` file of it.
struct Archive {
  const char *title, *name, *plain, *sha256;
};
inline constexpr Archive kImdb{
    "IMDB", "imdb.npz", "imdb-plain.npz",
    "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"};
inline constexpr Archive kReuters{
    "Reuters", "reuters.npz", "reuters-plain.npz",
    "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916"};

// Returns the path of the plain file or, where there is none, of the published
// one. Throws as above.
std::string find_archive(const Archive& archive, const std::string& data_dir,
                         bool allow_download);

// NumPy's RandomState(seed).shuffle(arange(n)), of as many calls as `sizes`.
std::vector<std::vector<int64_t>> numpy_shuffles(
    int64_t seed, const std::vector<int64_t>& sizes);

}  // namespace berth::keras::datasets

#endif  // BERTH_PREPROCESS_NAMED_FILES_H_
