#include "backends/gpu/work_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/environment.h"
#include "base/immortal.h"
#include "berth/errors.h"
#include "device/device.h"

namespace berth::gpu {

namespace {

constexpr int kFlushEvery = 256;  // events

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      s += fmt::format("\\u{:04x}", c);
    } else {
      s += c;
    }
  }
  return s + '"';
}

// Streams are rows of a device.
int row_of(std::string_view stream) {
  return stream == "compute" ? 0 : stream == "copies in" ? 1 : 2;
}

// Returns null when the file cannot be written.
std::FILE* open_alone(const std::string& path) {
  for (int k = 1; k < 100; ++k) {
    const std::string name = k == 1 ? path : fmt::format("{}.{}", path, k);
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return nullptr;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) {
      if (ftruncate(file, 0) == 0) return fdopen(file, "w");
    } else if (errno == EWOULDBLOCK) {
      close(file);
      continue;
    }
    // A pipe or a device has no length.
    return fdopen(file, "w");
  }
  errno = EBUSY;
  return nullptr;
}

}  // namespace

WorkTrace* WorkTrace::asked() {
  static WorkTrace* const trace = [] {
    const std::string path = environment("BERTH_GPU_TRACE");
    return path.empty() ? nullptr : &immortal<WorkTrace>(path);
  }();
  return trace;
}

const char* role_of(const Stream& stream) {
  Device& d = stream.device();
  return &d.compute_stream() == &stream ? "compute"
         : &d.copy_stream() == &stream  ? "copies in"
                                        : "copies out";
}

WorkTrace::WorkTrace(const std::string& path) : file_(open_alone(path)) {
  if (file_ == nullptr) {
    throw errors::InvalidArgument(fmt::format(
        "BERTH_GPU_TRACE: {} cannot be written: {}; name a file that can, or "
        "unset the variable",
        path, std::strerror(errno)));
  }
  // The array needs no end: readers accept the traces of unfinished runs.
  std::fputs("[\n", file_);
  std::fflush(file_);
}

WorkTrace::~WorkTrace() { std::fclose(file_); }

int WorkTrace::number_of(const std::string& device, const char* how) {
  const auto next = static_cast<int>(devices_.size());
  const auto [it, fresh] = devices_.emplace(device, next);
  if (!fresh) return it->second;
  fmt::print(file_,
             "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":"
             "{{\"name\":{},\"times\":{}}}}},\n",
             next, quoted(device), quoted(how));
  for (const char* stream : {"compute", "copies in", "copies out"}) {
    fmt::print(file_,
               "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},"
               "\"args\":{{\"name\":\"{}\"}}}},\n",
               next, row_of(stream), stream);
  }
  return next;
}

void WorkTrace::add(const std::string& device, const char* stream,
                    const char* how, const TracedWork& w) {
  const bool copies = w.crosses_link || row_of(stream) != 0;
  std::string args = fmt::format("\"bytes\":{:.0f}", w.bytes);
  if (!w.kernel.empty()) args += ",\"kernel\":" + quoted(w.kernel);
  if (w.site.file != nullptr) {
    args += ",\"at\":" + quoted(fmt::format("{}:{}", w.site.file, w.site.line));
  }
  std::lock_guard lock(mutex_);
  const int pid = number_of(device, how);
  fmt::print(file_,
             "{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},"
             "\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{{}}}}},\n",
             quoted(w.what), copies ? "copy" : "op", pid, row_of(stream),
             w.begin_us, w.end_us - w.begin_us, args);
  if (++since_flush_ < kFlushEvery) return;
  since_flush_ = 0;
  std::fflush(file_);
}

void WorkTrace::flush() {
  std::lock_guard lock(mutex_);
  since_flush_ = 0;
  std::fflush(file_);
}

}  // namespace berth::gpu
