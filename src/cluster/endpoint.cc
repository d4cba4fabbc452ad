#include "cluster/endpoint.h"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/immortal.h"
#include "base/where.h"
#include "berth/errors.h"
#include "cluster/unread.h"
#include "device/device_manager.h"

namespace berth::cluster {

namespace {

using live_counts::ClusterState;

constexpr const char* kVariable = "BERTH_HTTP_PORT";

// What the variables said when the endpoint began; "": this is not a task.
std::string& described() {
  static std::string& text = immortal<std::string>();
  return text;
}

// A value in quotes: the escapes are JSON's if there are no control characters.
std::string label(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct MetricsText {
  std::string text;

  // One sample, or one for each of `all` by its `key`.
  void add(std::string_view name, auto value) {
    begin(name);
    text += fmt::format("{} {}\n", name, value);
  }
  void add(std::string_view name, const char* key, const auto& all,
           auto value_of) {
    begin(name);
    for (const auto& [of, value] : all) {
      text += fmt::format("{}{{{}={}}} {}\n", name, key, label(of),
                          value_of(value));
    }
  }
  void begin(std::string_view name) {
    text += fmt::format("# TYPE {} {}\n", name,
                        name.ends_with("_total") ? "counter" : "gauge");
  }
};

std::string devices_text() {
  // Asking creates none: the program may still choose them.
  if (!DeviceManager::initialised()) return "";
  std::vector<std::pair<std::string, MemoryInfo>> all;
  for (Device* d : DeviceManager::get().devices()) {
    all.emplace_back(d->short_name(), d->allocator().info());
  }
  MetricsText m;
  m.add("berth_device_memory_bytes", "device", all,
        [](const MemoryInfo& i) { return i.current_bytes; });
  m.add("berth_device_memory_peak_bytes", "device", all,
        [](const MemoryInfo& i) { return i.peak_bytes; });
  m.add("berth_device_memory_limit_bytes", "device", all,
        [](const MemoryInfo& i) { return i.limit_bytes; });
  return m.text;
}

HttpAnswer readiness() {
  const ClusterState c = live_counts::cluster();
  const bool waits = c.phase == ClusterState::kNone && !described().empty();
  if (waits || c.phase == ClusterState::kForming) {
    return {503, "not ready: it waits for its cluster\n"};
  }
  if (c.phase == ClusterState::kFailed) {
    return {503, "not ready: its cluster has failed\n"};
  }
  return {200, c.task.empty() ? "ready\n" : "ready: " + c.task + "\n"};
}

void serve_quietly() {
  try {
    serve_endpoint({});
  } catch (const errors::Error& e) {
    std::fprintf(stderr, "berth: %s\n", e.what());
  }
}

[[maybe_unused]] const bool g_serves = [] {
  live_counts::when_devices_exist(serve_quietly);
  return true;
}();

}  // namespace

std::string metrics_text(const live_counts::Counts& counts,
                         const ClusterState& cluster) {
  const auto itself = [](auto value) { return value; };
  const auto seconds = [](double us) { return us / 1e6; };
  using Exchanges = live_counts::Counts::Exchanges;
  MetricsText m;
  m.add("berth_task_ready", "task",
        std::map<std::string, bool>{
            {cluster.task, cluster.phase == ClusterState::kRunning}},
        [](bool ready) { return ready ? 1 : 0; });
  m.add("berth_cluster_generation", cluster.generation);
  m.add("berth_steps_total", counts.steps);
  m.add("berth_examples_total", counts.examples);
  m.add("berth_input_wait_seconds_total", seconds(counts.input_wait_us));
  m.add("berth_sent_bytes_total", counts.sent_bytes);
  m.add("berth_received_bytes_total", counts.received_bytes);
  m.add("berth_function_calls_total", "function", counts.calls, itself);
  m.add("berth_exchanges_total", "kind", counts.exchanges,
        [](const Exchanges& e) { return e.count; });
  m.add("berth_exchange_bytes_total", "kind", counts.exchanges,
        [](const Exchanges& e) { return e.bytes; });
  m.add("berth_exchange_seconds_total", "kind", counts.exchanges,
        [&](const Exchanges& e) { return seconds(e.us); });
  m.add("berth_peer_wait_seconds_total", "peer", counts.peer_wait_us, seconds);
  return m.text;
}

HttpAnswer endpoint_answer(const std::string& path) {
  if (path == "/livez") return {200, "alive\n"};
  if (path == "/readyz") return readiness();
  if (path != "/metrics") {
    return {404, "expected /livez, /readyz or /metrics\n"};
  }
  return {200,
          metrics_text(live_counts::read(), live_counts::cluster()) +
              devices_text(),
          "text/plain; version=0.0.4; charset=utf-8"};
}

void serve_endpoint(Site site) {
  static auto& mutex = immortal<std::mutex>();
  static bool begun = false;
  const std::string address = environment(kVariable);
  std::lock_guard lock(mutex);
  if (begun || address.empty()) return;
  try {
    const int listening =
        listen_http(kVariable + where_text(nullptr, site), address);
    described() = launcher_text(Variables());
    live_counts::g_is_on.store(true);
    serve_http(listening, endpoint_answer);
  } catch (const errors::Unavailable& e) {
    std::fprintf(stderr, "berth: %s: this process answers no probes\n",
                 e.what());
  }
  begun = true;
}

}  // namespace berth::cluster
