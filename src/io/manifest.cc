#include "io/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/urls.h"
#include "berth/errors.h"
#include "io/atomic_file.h"
#include "io/checksum.h"

namespace berth::io {

namespace {

constexpr const char* kFormat = "berth-checkpoint";
constexpr int64_t kManifestVersion = 1;
constexpr int64_t kMostManifestBytes = int64_t{256} << 20;
constexpr int kDeepest = 8;

[[noreturn]] void damaged(const std::string& subject, const std::string& why) {
  throw errors::DataLoss(
      fmt::format("{}: the manifest of the checkpoint is damaged: {}; take an "
                  "earlier checkpoint, or save it again",
                  subject, why));
}

uint32_t checksum_of(const nlohmann::json& without) {
  const std::string text = without.dump();
  return checksum(text.data(), text.size());
}

// A file beside the manifest, whatever it says.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::string read_text(const std::string& path, const std::string& subject) {
  refuse_url(path, subject);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int code = errno;
    const std::string message = fmt::format("{}: cannot read \"{}\": {}",
                                            subject, path, strerror(code));
    if (code == EACCES || code == EPERM) {
      throw errors::PermissionDenied(message + "; become the file's owner");
    }
    throw errors::NotFound(message +
                           "; expected the path that save() returned, without "
                           "an ending, or train::latest_checkpoint(folder)");
  }
  struct Closed {
    int fd;
    ~Closed() { close(fd); }
  } closed{fd};
  struct stat found;
  if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
    damaged(subject, fmt::format("\"{}\" is no regular file", path));
  }
  if (found.st_size > kMostManifestBytes) {
    damaged(subject, fmt::format("it has {} bytes, more than the {} allowed",
                                 found.st_size, kMostManifestBytes));
  }
  std::string text(static_cast<size_t>(found.st_size), '\0');
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = ::read(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  text.resize(at);
  return text;
}

}  // namespace

std::string print_manifest(const Manifest& manifest,
                           const std::string& subject) {
  using nlohmann::json;
  json files = json::array(), objects = json::object();
  for (const Manifest::File& f : manifest.files) {
    files.push_back({{"name", f.name}, {"bytes", f.bytes}});
    if (f.header) files.back()["header"] = *f.header;
  }
  for (const auto& [name, o] : manifest.objects) {
    objects[name] = {{"kind", o.kind}, {"state", o.text}};
  }
  json text = {{"format", kFormat},
               {"version", kManifestVersion},
               {"save_counter", manifest.save_counter},
               {"files", files},
               {"objects", objects}};
  try {
    text["checksum"] = checksum_of(text);
    return text.dump(1) + "\n";
  } catch (const json::exception&) {
    throw errors::InvalidArgument(fmt::format(
        "{}: a name or the text of an object is not UTF-8; expected texts that "
        "are",
        subject));
  }
}

Manifest parse_manifest(std::string_view text, const std::string& subject) {
  using nlohmann::json;
  Manifest m;
  try {
    const auto shallow = [&](int depth, json::parse_event_t, json&) {
      if (depth > kDeepest) damaged(subject, "it is nested too deeply");
      return true;
    };
    json j = json::parse(text.begin(), text.end(), shallow);
    if (!j.is_object() || j.value("format", std::string()) != kFormat) {
      damaged(subject,
              fmt::format("it does not say \"format\": \"{}\"", kFormat));
    }
    const auto version = j.at("version").get<int64_t>();
    if (version > kManifestVersion) {
      throw errors::Unimplemented(fmt::format(
          "{}: the checkpoint is of version {}; this library reads up to {}: "
          "use the one that wrote it, or a newer one",
          subject, version, kManifestVersion));
    }
    if (version < 1) damaged(subject, "its version is less than 1");
    // Manifests of earlier versions have none.
    if (const auto sum = j.find("checksum"); sum != j.end()) {
      const json expected = *sum;
      j.erase(sum);
      if (expected != checksum_of(j)) damaged(subject, "its checksum differs");
    }
    m.save_counter = j.at("save_counter").get<int64_t>();
    for (const json& f : j.at("files")) {
      m.files.push_back(
          {f.at("name").get<std::string>(), f.at("bytes").get<uint64_t>()});
      if (f.contains("header")) {
        m.files.back().header = f.at("header").get<uint32_t>();
      }
      if (!is_plain_name(m.files.back().name)) {
        damaged(subject, fmt::format("it names the file \"{}\"; expected one "
                                     "in its own folder",
                                     m.files.back().name));
      }
    }
    for (const auto& [name, o] : j.at("objects").items()) {
      m.objects[name] = {o.at("kind").get<std::string>(),
                         o.at("state").get<std::string>()};
    }
  } catch (const json::exception& e) {
    damaged(subject, e.what());
  }
  return m;
}

std::optional<uint32_t> header_checksum(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  uint8_t first[8] = {};
  file.read(reinterpret_cast<char*>(first), sizeof(first));
  int64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | first[i];
  if (!file || length < 0 || length > kMostManifestBytes) return {};
  std::string text(static_cast<size_t>(length), '\0');
  if (!file.read(text.data(), length)) return {};
  return checksum(text.data(), text.size(), checksum(first, sizeof(first)));
}

Manifest read_manifest(const std::string& path, const std::string& subject) {
  const std::string about = fmt::format("{}: \"{}.json\"", subject, path);
  Manifest m = parse_manifest(read_text(path + ".json", subject), about);
  for (const Manifest::File& f : m.files) {
    const std::string name = folder_of(path) + "/" + f.name;
    struct stat found;
    if (stat(name.c_str(), &found) != 0) {
      throw errors::NotFound(fmt::format(
          "{}: the checkpoint \"{}\" lacks its file \"{}\": {}; copy all files "
          "of a checkpoint",
          subject, path, name, strerror(errno)));
    }
    if (static_cast<uint64_t>(found.st_size) == f.bytes) {
      if (!f.header || header_checksum(name) == f.header) continue;
      throw errors::DataLoss(fmt::format(
          "{}: \"{}\" has another header than when the checkpoint was saved; "
          "copy it again, or take an earlier checkpoint",
          subject, name));
    }
    throw errors::DataLoss(
        fmt::format("{}: \"{}\" has {} bytes, not {} as when the checkpoint "
                    "was saved; copy "
                    "it again, or take an earlier checkpoint",
                    subject, name, found.st_size, f.bytes));
  }
  return m;
}

}  // namespace berth::io
