// download: fetches one file over HTTP, checks it, and puts it in place.
//
// The bytes go to `<path>.part` under a file lock; the file appears at `path`
// by one rename, whole and verified, or not at all. A later call resumes the
// part. Every call ends within `total_timeout_ms`, whatever the server does.
// Acts at once, on the calling thread; thread-safe, and safe against other
// processes that download to the same path.

#ifndef BERTH_IO_DOWNLOAD_H_
#define BERTH_IO_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

namespace berth::io {

struct DownloadOptions {
  std::string url;     // http, https or file (regular files only)
  std::string path;    // parent folders are made
  std::string sha256;  // 64 hex digits; empty: unchecked, and never resumed
  int64_t expected_bytes = -1;           // -1: unknown
  int64_t max_bytes = int64_t{1} << 30;  // bound where the size is unknown
  int64_t connect_timeout_ms = 5'000;    // name lookup, TCP and TLS, each try
  int64_t stall_timeout_ms = 10'000;     // without one new byte
  int64_t total_timeout_ms = 300'000;    // of the call, all tries together
  int max_attempts = 3;                  // at least 1
  int64_t retry_delay_ms = 200;          // doubles with every try
  // Called on the calling thread with bytes so far and in all (-1: unknown).
  // May throw: the exception passes through and the part is kept.
  std::function<void(int64_t done, int64_t total)> progress;
};

struct DownloadResult {
  int64_t bytes = 0;         // size of the file at `path`
  int64_t resumed_from = 0;  // bytes the last try found in the part
  int attempts = 0;          // 0: `path` already held the right file
};

// Fetches `options.url` to `options.path`. Throws, naming URL and remedy:
//   InvalidArgument    bad option, URL or protocol
//   NotFound           the server says 404 or 410; no such file
//   PermissionDenied   the server says 401 or 403; the path cannot be written
//   Unavailable        name not resolved, no connection, server error
//   DeadlineExceeded   connecting, waiting or the whole call took too long
//   DataLoss           wrong checksum or size after the last try
//   ResourceExhausted  disk full
DownloadResult download(const DownloadOptions& options);

}  // namespace berth::io

#endif  // BERTH_IO_DOWNLOAD_H_
