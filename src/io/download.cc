#include "io/download.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "berth/errors.h"
#include "io/network.h"
#include "io/part_file.h"
#include "io/receiver.h"
#include "io/sha256.h"
#include "io/url.h"

namespace berth::io {
namespace {

using Clock = PartFile::Clock;
using std::chrono::milliseconds;

// About a year: keeps sums of times far from overflow.
constexpr int64_t kMaxTimeoutMs = int64_t{1} << 35;

void check_time(const DownloadOptions& options, int64_t ms, const char* name) {
  if (ms >= 1 && ms <= kMaxTimeoutMs) return;
  throw errors::InvalidArgument(
      fmt::format("download of {}: {} is {}; expected 1 to {}", options.url,
                  name, ms, kMaxTimeoutMs));
}

void check(const DownloadOptions& options) {
  check_url(options.url);
  if (options.path.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "download of {}: no path; say where the file shall go", options.url));
  }
  const bool digits = std::ranges::all_of(
      options.sha256, [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!options.sha256.empty() && (!digits || options.sha256.size() != 64)) {
    throw errors::InvalidArgument(fmt::format(
        "download of {}: sha256 is \"{}\"; expected 64 hex digits, or none",
        options.url, options.sha256));
  }
  if (options.max_attempts < 1) {
    throw errors::InvalidArgument(
        fmt::format("download of {}: max_attempts is {}; expected at least 1",
                    options.url, options.max_attempts));
  }
  check_time(options, options.connect_timeout_ms, "connect_timeout_ms");
  check_time(options, options.stall_timeout_ms, "stall_timeout_ms");
  check_time(options, options.total_timeout_ms, "total_timeout_ms");
}

bool has_digest(const std::string& path, const std::string& sha256) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) &&
         sha256_of_file(path) == sha256;
}

class Download {
 public:
  explicit Download(const DownloadOptions& options)
      : options_(options),
        deadline_(Clock::now() + milliseconds(options.total_timeout_ms)) {
    std::ranges::transform(options_.sha256, options_.sha256.begin(),
                           [](unsigned char c) { return std::tolower(c); });
  }

  DownloadResult run() {
    if (already_there()) return result_;
    PartFile part(options_.path, fmt::format("download of {}", options_.url),
                  deadline_);
    // Another process may have finished while this one waited for the lock.
    if (already_there()) {
      part.discard();
      return result_;
    }
    // Bytes of an older file can only be told by a checksum.
    if (options_.sha256.empty()) part.clear();
    if (part.size() > 0 && verify(part).ok) return finish(part);
    if (options_.expected_bytes >= 0 &&
        part.size() >= options_.expected_bytes) {
      part.clear();
    }
    return try_repeatedly(part);
  }

 private:
  bool already_there() {
    if (options_.sha256.empty() ||
        !has_digest(options_.path, options_.sha256)) {
      return false;
    }
    result_.bytes =
        static_cast<int64_t>(std::filesystem::file_size(options_.path));
    return true;
  }

  DownloadResult try_repeatedly(PartFile& part) {
    TryResult last;
    int64_t delay = std::clamp<int64_t>(options_.retry_delay_ms, 0, 60'000);
    while (true) {
      ++result_.attempts;
      Receiver receiver(options_, part);
      last = network().transfer(receiver, deadline_);
      result_.resumed_from = last.resumed_from;
      if (last.ok) last = verify(part);
      if (last.ok) return finish(part);
      if (last.clear) part.clear();
      if (!last.retry || result_.attempts >= options_.max_attempts) break;
      if (Clock::now() + milliseconds(delay) >= deadline_) {
        last.code = errors::Code::kDeadlineExceeded;
        break;
      }
      std::this_thread::sleep_for(milliseconds(delay));
      delay = std::min<int64_t>(2 * delay, 60'000);
    }
    if (part.size() == 0) part.discard();
    errors::raise(last.code,
                  fmt::format("download of {} to \"{}\" failed in try {} of "
                              "{}: {}",
                              options_.url, options_.path, result_.attempts,
                              options_.max_attempts, last.what));
  }

  TryResult verify(const PartFile& part) const {
    TryResult result{.retry = true, .code = errors::Code::kDataLoss};
    if (options_.expected_bytes >= 0 &&
        part.size() != options_.expected_bytes) {
      result.what =
          fmt::format("the file ended after {} bytes; expected {}; try again",
                      part.size(), options_.expected_bytes);
      return result;
    }
    if (options_.sha256.empty()) return {.ok = true};
    const std::string found = sha256_of_file(part.path());
    if (found == options_.sha256) return {.ok = true};
    result.clear = true;
    result.what = fmt::format(
        "the {} bytes have SHA-256 {}; expected {}; the server holds another "
        "file, or a proxy changed it",
        part.size(), found, options_.sha256);
    return result;
  }

  DownloadResult finish(PartFile& part) {
    part.commit();
    result_.bytes = part.size();
    if (options_.progress) options_.progress(result_.bytes, result_.bytes);
    return result_;
  }

  DownloadOptions options_;
  Clock::time_point deadline_;
  DownloadResult result_;
};

}  // namespace

DownloadResult download(const DownloadOptions& options) {
  check(options);
  return Download(options).run();
}

}  // namespace berth::io
