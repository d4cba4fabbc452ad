// A reading of this process, by its socket.

#include "profiler/live.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/fresh_process_testing.h"
#include "base/live_counts.h"
#include "berth/berth.h"

namespace berth::profiler {
namespace {

using fresh_process::check;

std::string read_socket(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int s = socket(AF_UNIX, SOCK_STREAM, 0);
  check(connect(s, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
        "connects to " + path);
  std::string text(1 << 16, '\0');
  size_t length = 0;
  while (const ssize_t n = read(s, &text[length], text.size() - length)) {
    check(n > 0, "reads");
    length += static_cast<size_t>(n);
  }
  close(s);
  text.resize(length);
  return text;
}

void a_reading() {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("berth_live_test." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  check(!live_counts::is_on(), "off");
  serve_live_readings();
  config::set_simulated_devices("GPUx1");
  const std::string path =
      live_folder(false) + "/" + std::to_string(getpid()) + ".sock";
  check(nlohmann::json::parse(read_socket(path))["devices"].empty(),
        "asking creates no devices");
  const auto f = function([](const Tensor& x) { return x + x; }, {.name = "f"});
  const Tensor x = ones({1 << 18});
  for (int i = 0; i < 3; ++i) f(x).to_vector<float>();
  int count = 0;
  for (const data::Element& e : data::Dataset::range(5)) count += e.size();
  const auto reading = nlohmann::json::parse(read_socket(path));
  check(reading["pid"] == getpid(), "pid");
  check(reading["calls"][0]["name"] == "f", "name");
  check(reading["calls"][0]["count"] == 3, "count");
  check(reading["input_wait_us"] > 0, "input wait");
  check(reading["devices"].size() == 2, "devices");
  double bytes = 0;
  for (const auto& d : reading["devices"]) {
    bytes += d["in_use_bytes"].get<double>();
    if (d["name"] == "GPU:0") {
      check(d["simulated"] == true, "simulated");
      check(d["queue"] == "empty", d["queue"]);
    }
  }
  check(bytes >= 4 << 18, "bytes");
  struct stat s = {};
  check(stat(path.c_str(), &s) == 0 && (s.st_mode & 077) == 0, "mode");
  // Nobody else's folder is trusted.
  chmod((folder / "berth").c_str(), 0777);
  try {
    live_folder(false);
    check(false, "a folder of everybody's");
  } catch (const errors::PermissionDenied&) {
  }
  std::filesystem::remove_all(folder);
}

TEST(Live, AReadingHasDevicesCallsAndMemory) {
  IN_A_FRESH_PROCESS(a_reading());
}

}  // namespace
}  // namespace berth::profiler
