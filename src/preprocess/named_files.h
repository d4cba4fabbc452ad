// Files of published data sets: looked up in folders, else downloaded.

#ifndef BERTH_PREPROCESS_NAMED_FILES_H_
#define BERTH_PREPROCESS_NAMED_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace berth::keras::datasets {

struct NamedFile {
  std::string name;    // "imdb.npz"
  std::string url;     // "": it is not downloaded
  std::string digest;  // SHA-256 or MD5 in hex
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

// NumPy's RandomState(seed).shuffle(arange(n)), of as many calls as `sizes`.
std::vector<std::vector<int64_t>> numpy_shuffles(
    int64_t seed, const std::vector<int64_t>& sizes);

}  // namespace berth::keras::datasets

#endif  // BERTH_PREPROCESS_NAMED_FILES_H_
