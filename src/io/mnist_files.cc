#include "io/mnist_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "berth/errors.h"
#include "io/download.h"
#include "io/sha256.h"

namespace berth::io {
namespace {

// Pairs what is looked for with where its path goes.
struct Wanted {
  MnistFile MnistFileSet::*file;
  std::string MnistFiles::*path;
};

// Smallest first, so that the first fetch shows quickly whether there is a
// network.
constexpr Wanted kWanted[] = {
    {&MnistFileSet::test_labels, &MnistFiles::test_labels},
    {&MnistFileSet::train_labels, &MnistFiles::train_labels},
    {&MnistFileSet::test_images, &MnistFiles::test_images},
    {&MnistFileSet::train_images, &MnistFiles::train_images},
};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool has_known_digest(const std::string& path, const MnistFile& file) {
  try {
    return sha256_of_file(path) == file.sha256;
  } catch (const errors::Error&) {
    return false;
  }
}

class Search {
 public:
  explicit Search(const MnistOptions& options) : options_(options) {}

  MnistFiles run() {
    const bool found =
        folder(options_.directory, "--data", MnistSource::kDirectory, false) ||
        folder(environment("BERTH_DATA"), "$BERTH_DATA",
               MnistSource::kEnvironment, false) ||
        folder(cache(), "the cache", MnistSource::kCache, true) || fetch();
    if (!found) files_ = MnistFiles{};
    files_.why =
        found ? fmt::format("MNIST from {}", files_.where) : "no MNIST files";
    if (!reasons_.empty()) {
      files_.why += fmt::format(" ({})", fmt::join(reasons_, "; "));
    }
    return std::move(files_);
  }

 private:
  std::string cache() const {
    if (!options_.cache.empty()) return options_.cache;
    const std::string home = environment("HOME");
    return home.empty() ? "" : home + "/.cache/berth";
  }

  // Takes the files of `path` or `path`/mnist, if all four are there.
  bool folder(const std::string& path, const char* title, MnistSource source,
              bool checked) {
    if (path.empty()) return false;
    std::string missing;
    for (const std::string& place : {path, path + "/mnist"}) {
      std::string first_missing;
      if (take(place, checked, &first_missing)) {
        files_.source = source;
        files_.where = place;
        return true;
      }
      if (missing.empty()) missing = first_missing;
    }
    reasons_.push_back(
        fmt::format("{} \"{}\" has no {}", title, path, missing));
    return false;
  }

  bool take(const std::string& place, bool checked, std::string* missing) {
    for (const Wanted& wanted : kWanted) {
      const MnistFile& file = options_.files.*wanted.file;
      const std::string plain = place + "/" + file.name;
      const std::string packed = plain + ".gz";
      if (is_file(packed) && (!checked || has_known_digest(packed, file))) {
        files_.*wanted.path = packed;
      } else if (is_file(plain)) {
        files_.*wanted.path = plain;
      } else {
        *missing = file.name + ".gz";
        return false;
      }
    }
    return true;
  }

  bool fetch() {
    if (offline_) {
      reasons_.push_back("BERTH_OFFLINE forbids the download");
      return false;
    }
    if (!options_.allow_download) {
      reasons_.push_back("the download is switched off");
      return false;
    }
    if (cache().empty()) {
      reasons_.push_back(
          "HOME is not set, so there is no place to download to");
      return false;
    }
    int64_t timeout_ms = options_.probe_timeout_ms;
    for (const Wanted& wanted : kWanted) {
      if (!fetch_one(wanted, timeout_ms)) return false;
      timeout_ms = options_.total_timeout_ms;
    }
    files_.source = MnistSource::kDownload;
    files_.where = options_.base_url;
    return true;
  }

  bool fetch_one(const Wanted& which, int64_t timeout_ms) {
    const MnistFile& file = options_.files.*which.file;
    const std::string name = file.name + ".gz";
    DownloadOptions wanted{.url = options_.base_url + name,
                           .path = cache() + "/" + name,
                           .sha256 = file.sha256,
                           .expected_bytes = file.bytes,
                           .connect_timeout_ms = options_.connect_timeout_ms,
                           .stall_timeout_ms = options_.stall_timeout_ms,
                           .total_timeout_ms = timeout_ms,
                           .max_attempts = 2};
    std::exception_ptr thrown;
    if (options_.progress) {
      wanted.progress = [&](int64_t done, int64_t total) {
        try {
          options_.progress(name, done, total);
        } catch (...) {
          thrown = std::current_exception();
          throw;
        }
      };
    }
    try {
      download(wanted);
    } catch (const std::exception& error) {
      // A caller's exception passes; the network's faults become a reason.
      if (thrown) std::rethrow_exception(thrown);
      reasons_.push_back(error.what());
      return false;
    }
    files_.*which.path = wanted.path;
    return true;
  }

  const MnistOptions& options_;
  const bool offline_ = environment_switch("BERTH_OFFLINE", false);
  MnistFiles files_;
  std::vector<std::string> reasons_;
};

}  // namespace

MnistFileSet MnistFileSet::mnist() {
  return {
      .train_images = {"train-images-idx3-ubyte", 9'912'422,
                       "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8"
                       "f203523609"},
      .train_labels = {"train-labels-idx1-ubyte", 28'881,
                       "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a073"
                       "0e8010255c"},
      .test_images = {"t10k-images-idx3-ubyte", 1'648'877,
                      "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276"
                      "f5a2dbc4e6"},
      .test_labels = {"t10k-labels-idx1-ubyte", 4'542,
                      "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259"
                      "924204aec6"},
  };
}

MnistFiles find_or_fetch_mnist(const MnistOptions& options) {
  return Search(options).run();
}

}  // namespace berth::io
