// Finds the four MNIST files on this machine, or fetches them.
//
// Looked up in this order: the given folder, $BERTH_DATA, ~/.cache/berth,
// then the network into ~/.cache/berth. Acts at once; thread-safe as long as
// no thread changes the environment. Without files nothing is thrown: the
// caller draws digits instead and prints `why`.

#ifndef BERTH_IO_MNIST_FILES_H_
#define BERTH_IO_MNIST_FILES_H_

#include <cstdint>
#include <functional>
#include <string>

namespace berth::io {

enum class MnistSource { kNone, kDirectory, kEnvironment, kCache, kDownload };

// One published file: its gzip form, whose size and checksum are known.
struct MnistFile {
  std::string name;  // without ".gz"
  int64_t bytes = 0;
  std::string sha256;
};

// The four files of a data set that is published as MNIST is.
struct MnistFileSet {
  MnistFile train_images, train_labels, test_images, test_labels;

  static MnistFileSet mnist();
};

struct MnistOptions {
  std::string directory;  // of --data; empty: not given
  std::string cache;      // empty: $HOME/.cache/berth
  // BERTH_OFFLINE=1 in the environment forbids it as well.
  bool allow_download = true;
  std::string base_url = "https://storage.googleapis.com/cvdf-datasets/mnist/";
  MnistFileSet files = MnistFileSet::mnist();
  // With these a dead network is given up after at most 15 s.
  int64_t probe_timeout_ms = 12'000;  // of the first, smallest file
  int64_t connect_timeout_ms = 3'000;
  int64_t stall_timeout_ms = 4'000;
  int64_t total_timeout_ms = 300'000;  // of each further file
  // Called with the file's name, bytes so far and in all; may throw to stop
  // looking, which passes through.
  std::function<void(const std::string& file, int64_t done, int64_t total)>
      progress;
};

struct MnistFiles {
  MnistSource source = MnistSource::kNone;
  std::string train_images, train_labels;  // paths, plain or gzip IDX
  std::string test_images, test_labels;
  std::string where;  // "/data/mnist", or the URL; empty when not found
  std::string why;    // one line: what was used, and why not what is before it

  bool found() const { return source != MnistSource::kNone; }
};

// Returns the files, or `found() == false` with the reasons. In a folder the
// names end in ".gz" or not, and may stand in its subfolder "mnist". Files in
// the cache without the checksum that `files` gives are fetched again. Throws
// only what `progress` throws.
MnistFiles find_or_fetch_mnist(const MnistOptions& options = {});

}  // namespace berth::io

#endif  // BERTH_IO_MNIST_FILES_H_
