#include "place/cost_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/immortal.h"

namespace berth {

namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
constexpr size_t kMostOps = 20'000;
constexpr size_t kMostPredictions = 32;
constexpr uintmax_t kMostFileBytes = 64 << 20;

// All that a file holds for one version.
struct Kept {
  std::map<std::string, OpTime> ops;
  std::map<std::string, DeviceClass> classes;
  std::map<std::string, LinkCost> links;
  std::vector<std::pair<double, double>> predictions;  // predicted, measured
};

bool positive(double x) { return std::isfinite(x) && x > 0; }

// A number from a file; `otherwise` if it makes no sense.
double number(const Json& j, const char* name, double otherwise) {
  const auto it = j.find(name);
  if (it == j.end() || !it->is_number()) return otherwise;
  const double x = it->get<double>();
  return std::isfinite(x) && x >= 0 ? x : otherwise;
}

Json to_json(const Kept& k) {
  Json j = {{"ops", Json::object()},
            {"classes", Json::object()},
            {"links", Json::object()},
            {"predictions", Json::array()}};
  for (const auto& [key, t] : k.ops) {
    j["ops"][key] = {{"us", t.us}, {"spread", t.spread}};
  }
  for (const auto& [key, c] : k.classes) {
    j["classes"][key] = {{"type", c.type},
                         {"flops_per_us", c.flops_per_us},
                         {"bytes_per_us", c.bytes_per_us},
                         {"cached_bytes_per_us", c.cached_bytes_per_us},
                         {"cache_bytes", c.cache_bytes},
                         {"launch_us", c.launch_us}};
  }
  for (const auto& [key, l] : k.links) {
    j["links"][key] = {{"latency_us", l.latency_us},
                       {"bytes_per_us", l.bytes_per_us},
                       {"spread", l.spread}};
  }
  for (const auto& [said, was] : k.predictions) {
    j["predictions"].push_back({said, was});
  }
  return j;
}

// Calls fn for each object in `name`, with its key.
template <class Fn>
void each(const Json& j, const char* name, Fn&& fn) {
  const auto it = j.find(name);
  if (it == j.end() || !it->is_object()) return;
  for (const auto& [key, value] : it->items()) {
    if (value.is_object()) fn(key, value);
  }
}

// Skips whatever makes no sense.
Kept from_json(const Json& j) {
  Kept k;
  each(j, "ops", [&](const std::string& key, const Json& v) {
    const double us = number(v, "us", -1);
    if (us < 0 || k.ops.size() >= kMostOps) return;
    const auto spread = static_cast<float>(number(v, "spread", 1));
    k.ops[key] = {us, spread, CostOrigin::kMeasured};
  });
  each(j, "classes", [&](const std::string& key, const Json& v) {
    DeviceClass c;
    c.name = key;
    const auto type = v.find("type");
    if (type != v.end() && type->is_string()) c.type = type->get<std::string>();
    c.flops_per_us = number(v, "flops_per_us", 0);
    c.bytes_per_us = number(v, "bytes_per_us", 0);
    c.cached_bytes_per_us = number(v, "cached_bytes_per_us", 0);
    c.cache_bytes = number(v, "cache_bytes", -1);
    c.launch_us = number(v, "launch_us", -1);
    c.origin = CostOrigin::kMeasured;
    if (positive(c.flops_per_us) && positive(c.bytes_per_us) &&
        positive(c.cached_bytes_per_us) && c.cache_bytes >= 0 &&
        c.launch_us >= 0) {
      k.classes[key] = c;
    }
  });
  each(j, "links", [&](const std::string& key, const Json& v) {
    LinkCost l;
    l.latency_us = number(v, "latency_us", -1);
    l.bytes_per_us = number(v, "bytes_per_us", 0);
    l.spread = static_cast<float>(number(v, "spread", 1));
    l.origin = CostOrigin::kMeasured;
    if (l.latency_us >= 0 && positive(l.bytes_per_us)) k.links[key] = l;
  });
  const auto it = j.find("predictions");
  if (it == j.end() || !it->is_array()) return k;
  for (const Json& p : *it) {
    if (!p.is_array() || p.size() != 2 || !p[0].is_number() ||
        !p[1].is_number()) {
      continue;
    }
    const double said = p[0].get<double>(), was = p[1].get<double>();
    if (positive(said) && positive(was)) k.predictions.emplace_back(said, was);
  }
  return k;
}

// The object in a file, or null if it is missing or broken. Sets `foreign` if
// it is a valid file of another format.
Json read_file(const std::string& path, bool& foreign) {
  foreign = false;
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMostFileBytes ||
      !std::filesystem::is_regular_file(path, error)) {
    return {};
  }
  std::ifstream in(path, std::ios::binary);
  const Json j = Json::parse(in, nullptr, false);
  if (!j.is_object()) return {};
  const auto format = j.find("berth_costs");
  if (format == j.end()) return {};
  foreign = *format != kFormat;
  return foreign ? Json{} : j;
}

// One process at a time rewrites the file; without a lock the last one wins.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    for (int tries = 0; file_ >= 0 && tries < 1000; ++tries) {
      held_ = flock(file_, LOCK_EX | LOCK_NB) == 0;
      if (held_) return;
      usleep(2000);
    }
  }
  ~FileLock() {
    if (file_ >= 0) close(file_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  const int file_;
  bool held_ = false;
};

// `next`: under the lock one name for all, so that what a killed process left
// is overwritten.
bool write_file(const std::string& path, const std::string& next,
                const std::string& text) {
  const int file =
      open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = write(file, text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  const bool good = close(file) == 0 && at == text.size() &&
                    rename(next.c_str(), path.c_str()) == 0;
  if (!good) unlink(next.c_str());
  return good;
}

std::string default_path() {
  if (const std::string dir = environment("BERTH_CACHE_DIR"); !dir.empty()) {
    return dir + "/costs.json";
  }
  // The XDG specification ignores paths that are not absolute.
  const std::string xdg = environment("XDG_CACHE_HOME");
  if (!xdg.empty() && xdg[0] == '/') return xdg + "/berth/costs.json";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/berth/costs.json";
}

template <class Map>
auto find_in(const Map& map, const std::string& key)
    -> std::optional<typename Map::mapped_type> {
  const auto it = map.find(key);
  if (it == map.end()) return std::nullopt;
  return it->second;
}

}  // namespace

struct CostStore::Impl {
  std::string path, version;
  mutable std::mutex mutex;
  Kept known;  // from the file and this process
  Kept fresh;  // not in the file yet

  // Merges the entries of `from` into `to`, overwriting.
  static void put(const Kept& from, Kept& to) {
    for (const auto& [key, t] : from.ops) to.ops[key] = t;
    for (const auto& [key, c] : from.classes) to.classes[key] = c;
    for (const auto& [key, l] : from.links) to.links[key] = l;
    to.predictions.insert(to.predictions.end(), from.predictions.begin(),
                          from.predictions.end());
    if (to.predictions.size() > kMostPredictions) {
      to.predictions.erase(to.predictions.begin(),
                           to.predictions.end() - kMostPredictions);
    }
  }

  // What the file has for this version.
  static Kept of_version(const Json& file, const std::string& version) {
    if (!file.is_object() || !file.contains("versions")) return {};
    const Json& versions = file["versions"];
    const auto it =
        versions.is_object() ? versions.find(version) : versions.end();
    if (it == versions.end() || !it->is_object()) return {};
    return from_json(*it);
  }
};

CostStore::CostStore(std::string path, std::string version)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  impl_->version = std::move(version);
  if (impl_->path.empty()) return;
  bool foreign = false;
  impl_->known =
      Impl::of_version(read_file(impl_->path, foreign), impl_->version);
}
CostStore::~CostStore() = default;

CostStore& CostStore::get() {
  static auto& store = immortal<CostStore>(default_path(), cost_version());
  return store;
}

const std::string& CostStore::path() const { return impl_->path; }

std::optional<OpTime> CostStore::find_op(const std::string& key) const {
  std::lock_guard lock(impl_->mutex);
  return find_in(impl_->known.ops, key);
}
std::optional<DeviceClass> CostStore::find_class(
    const std::string& name) const {
  std::lock_guard lock(impl_->mutex);
  return find_in(impl_->known.classes, name);
}
std::optional<LinkCost> CostStore::find_link(const std::string& key) const {
  std::lock_guard lock(impl_->mutex);
  return find_in(impl_->known.links, key);
}

void CostStore::add_op(const std::string& key, const OpTime& time) {
  std::lock_guard lock(impl_->mutex);
  impl_->known.ops[key] = impl_->fresh.ops[key] = time;
}
void CostStore::add_class(const DeviceClass& rates) {
  std::lock_guard lock(impl_->mutex);
  impl_->known.classes[rates.name] = impl_->fresh.classes[rates.name] = rates;
}
void CostStore::add_link(const std::string& key, const LinkCost& link) {
  std::lock_guard lock(impl_->mutex);
  impl_->known.links[key] = impl_->fresh.links[key] = link;
}

double CostStore::record_prediction(double predicted_us, double measured_us) {
  if (positive(predicted_us) && positive(measured_us)) {
    std::lock_guard lock(impl_->mutex);
    Kept one;
    one.predictions = {{predicted_us, measured_us}};
    Impl::put(one, impl_->known);
    Impl::put(one, impl_->fresh);
  }
  return error();
}

double CostStore::error() const {
  std::lock_guard lock(impl_->mutex);
  std::vector<double> errors;
  for (const auto& [said, was] : impl_->known.predictions) {
    errors.push_back(std::abs(said / was - 1));
  }
  if (errors.empty()) return -1;
  std::sort(errors.begin(), errors.end());
  const size_t n = errors.size();
  return (errors[(n - 1) / 2] + errors[n / 2]) / 2;
}

bool CostStore::save() {
  std::lock_guard lock(impl_->mutex);
  if (impl_->path.empty()) return false;
  std::error_code error;
  std::filesystem::create_directories(
      std::filesystem::path(impl_->path).parent_path(), error);
  const FileLock file_lock(impl_->path + ".lock");
  bool foreign = false;
  Json file = read_file(impl_->path, foreign);
  if (foreign) return false;
  Kept merged = Impl::of_version(file, impl_->version);
  // A file that has grown too large starts again with the new entries.
  if (merged.ops.size() + impl_->fresh.ops.size() > kMostOps) {
    merged.ops.clear();
  }
  Impl::put(impl_->fresh, merged);
  if (!file.is_object()) file = Json::object();
  file["berth_costs"] = kFormat;
  if (!file.contains("versions") || !file["versions"].is_object()) {
    file["versions"] = Json::object();
  }
  file["versions"][impl_->version] = to_json(merged);
  const std::string text =
      file.dump(1, ' ', false, Json::error_handler_t::replace);
  const std::string next =
      impl_->path + (file_lock.held() ? ".part" : fmt::format(".{}", getpid()));
  if (!write_file(impl_->path, next, text)) return false;
  impl_->fresh = {};
  impl_->known = std::move(merged);
  return true;
}

double record_prediction(double predicted_us, double measured_us) {
  const double error =
      CostStore::get().record_prediction(predicted_us, measured_us);
  CostStore::get().save();
  return error;
}

}  // namespace berth
