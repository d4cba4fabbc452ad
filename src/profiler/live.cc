#include "profiler/live.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/environment.h"
#include "base/live_counts.h"
#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth::profiler {

using Json = nlohmann::ordered_json;

namespace {

// Its path, and the process that made it: not a child of a fork.
char g_socket[sizeof(sockaddr_un::sun_path)] = "";
pid_t g_server = 0;

[[gnu::destructor]] void remove_socket() {
  if (g_socket[0] != '\0' && g_server == getpid()) unlink(g_socket);
}

std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!text.empty()) text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  return text;
}

// "none": the device works in the thread of its caller.
const char* queue_of(Device& device) {
  if (device.runs_inline()) return "none";
  Stream& stream = device.compute_stream();
  return stream.done(stream.record()) ? "empty" : "working";
}

void answer(int connection) {
  std::string text;
  try {
    text = live_reading().dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const std::exception&) {
    return;  // the reader names what it gets nothing from
  }
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n =
        send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

[[maybe_unused]] const bool g_serves = [] {
  if (environment("BERTH_TOP") != "1") return false;
  try {
    serve_live_readings();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "berth: BERTH_TOP: %s\n", e.what());
  }
  return true;
}();

}  // namespace

std::string live_folder(bool create) {
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  const std::string folder = runtime.empty()
                                 ? fmt::format("/tmp/berth-{}", geteuid())
                                 : runtime + "/berth";
  if (create) mkdir(folder.c_str(), 0700);
  struct stat s = {};
  if (lstat(folder.c_str(), &s) != 0) {
    if (errno == ENOENT && !create) return folder;
    throw errors::PermissionDenied(
        fmt::format("\"{}\": {}; expected a folder of this user's", folder,
                    std::strerror(errno)));
  }
  if (!S_ISDIR(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 022) != 0) {
    throw errors::PermissionDenied(fmt::format(
        "\"{}\" is not a folder that this user alone may write", folder));
  }
  return folder;
}

Json live_reading() {
  const live_counts::Counts counts = live_counts::read();
  Json calls = Json::array(), devices = Json::array();
  for (const auto& [name, count] : counts.calls) {
    calls.push_back({{"name", name}, {"count", count}});
  }
  // Asking creates none: the program may still choose them.
  if (DeviceManager::initialised()) {
    for (Device* d : DeviceManager::get().devices()) {
      const MemoryInfo m = d->allocator().info();
      devices.push_back({{"name", d->short_name()},
                         {"simulated", d->simulated()},
                         {"queue", queue_of(*d)},
                         {"in_use_bytes", m.current_bytes},
                         {"peak_bytes", m.peak_bytes},
                         {"limit_bytes", m.limit_bytes}});
    }
  }
  return {{"pid", getpid()},
          {"program", command_line()},
          {"clock_us", host_clock_us()},
          {"input_wait_us", counts.input_wait_us},
          {"calls", calls},
          {"devices", devices}};
}

void serve_live_readings() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path =
      fmt::format("{}/{}.sock", live_folder(true), getpid());
  if (path.size() >= sizeof address.sun_path) {
    throw errors::InvalidArgument(
        fmt::format("\"{}\" is too long for a socket", path));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  unlink(path.c_str());  // of a process that had this number
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server < 0 ||
      bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address) !=
          0 ||
      chmod(path.c_str(), 0600) != 0 || listen(server, 8) != 0) {
    const int why = errno;
    if (server >= 0) close(server);
    throw errors::Unavailable(
        fmt::format("\"{}\": {}", path, std::strerror(why)));
  }
  std::memcpy(g_socket, path.c_str(), path.size() + 1);
  g_server = getpid();
  live_counts::g_is_on.store(true);
  // Signals go to the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([server] {
    while (true) {
      const int connection = accept4(server, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0 && errno != EINTR && errno != ECONNABORTED) return;
      if (connection < 0) continue;
      answer(connection);
      close(connection);
    }
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace berth::profiler
