#include "preprocess/named_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <numeric>
#include <random>

#include "base/environment.h"
#include "berth/errors.h"
#include "io/download.h"
#include "io/sha256.h"

namespace berth::keras::datasets {

namespace {

namespace fs = std::filesystem;

bool is_regular(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string cache_folder() {
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/berth";
}

// Paths of all files in one folder, packed or not; empty if one is missing.
std::vector<std::string> files_in(const std::string& folder,
                                  const std::vector<NamedFile>& files) {
  std::vector<std::string> paths;
  for (const NamedFile& file : files) {
    std::string path = folder + "/" + file.name;
    if (const std::string plain = folder + "/" + file.plain;
        !file.plain.empty() && is_regular(plain)) {
      path = plain;
    }
    if (!is_regular(path) && path.ends_with(".gz"))
      path.resize(path.size() - 3);
    if (!is_regular(path)) return {};
    paths.push_back(std::move(path));
  }
  return paths;
}

void check_digest(const std::string& path, const NamedFile& file) {
  const bool md5 = file.digest.size() == 32;
  const std::string got =
      md5 ? io::md5_of_file(path) : io::sha256_of_file(path);
  if (got == file.digest) return;
  std::error_code ignored;
  fs::remove(path, ignored);
  throw errors::DataLoss(fmt::format(
      "\"{}\" has the checksum {}; expected {}: it was removed, fetch it again",
      path, got, file.digest));
}

std::vector<std::string> fetched(const std::vector<NamedFile>& files,
                                 const std::string& folder) {
  std::vector<std::string> paths;
  for (const NamedFile& file : files) {
    const std::string path = folder + "/" + file.name;
    const bool md5 = file.digest.size() == 32;
    if (!is_regular(path)) {
      io::download(
          {.url = file.url, .path = path, .sha256 = md5 ? "" : file.digest});
      check_digest(path, file);
    }
    paths.push_back(path);
  }
  return paths;
}

}  // namespace

std::vector<std::string> find_files(const std::vector<NamedFile>& files,
                                    const FileSearch& search) {
  const std::string cache = cache_folder();
  std::vector<std::string> looked;
  for (const std::string& place :
       {search.data_dir, environment("BERTH_DATA"), cache}) {
    if (place.empty()) continue;
    std::vector<std::string> folders;
    // Who names a folder for these files means these files.
    if (!search.only_folder || place == search.data_dir) {
      folders.push_back(place);
    }
    if (!search.folder.empty()) folders.push_back(place + "/" + search.folder);
    for (const std::string& folder : folders) {
      auto paths = files_in(folder, files);
      if (!paths.empty()) return paths;
      looked.push_back(folder);
    }
  }
  std::string why;
  if (files[0].url.empty()) {
    why = "it is not downloaded";
  } else if (environment_switch("BERTH_OFFLINE", false)) {
    why = "BERTH_OFFLINE forbids the download";
  } else if (!search.allow_download) {
    why = "the download is switched off";
  } else if (cache.empty()) {
    why = "HOME is not set, so there is no place to download to";
  } else {
    const std::string folder =
        search.only_folder ? cache + "/" + search.folder : cache;
    try {
      return fetched(files, folder);
    } catch (const errors::DataLoss&) {
      throw;
    } catch (const errors::Error& e) {
      why = e.what();
    }
  }
  std::vector<std::string> names;
  for (const NamedFile& file : files) {
    names.push_back(file.url.empty() ? file.name : file.url);
  }
  throw errors::NotFound(fmt::format(
      "{} was not found in {}, and {}; put {} into one of these folders",
      search.title,
      looked.empty() ? "any folder"
                     : fmt::format("{}", fmt::join(looked, ", ")),
      why, fmt::join(names, ", ")));
}

std::string find_archive(const Archive& a, const std::string& data_dir,
                         bool allow_download) {
  return find_files(
      {{a.name, std::string(kKerasFolder) + a.name, a.sha256, a.plain}},
      {.title = a.title,
       .folder = {},
       .data_dir = data_dir,
       .allow_download = allow_download})[0];
}

std::vector<std::vector<int64_t>> numpy_shuffles(
    int64_t seed, const std::vector<int64_t>& sizes) {
  std::mt19937 words(static_cast<uint32_t>(seed));
  std::vector<std::vector<int64_t>> all;
  for (const int64_t n : sizes) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = n - 1; i > 0; --i) {
      // A number of the fewest bits that hold i, drawn until it fits.
      uint32_t mask = static_cast<uint32_t>(i);
      for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
      uint32_t j = static_cast<uint32_t>(words()) & mask;
      while (j > static_cast<uint32_t>(i)) {
        j = static_cast<uint32_t>(words()) & mask;
      }
      std::swap(order[static_cast<size_t>(i)], order[j]);
    }
    all.push_back(std::move(order));
  }
  return all;
}

}  // namespace berth::keras::datasets
