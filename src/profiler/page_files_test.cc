// Writes a trace and its events for page_test.py.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "berth/profiler.h"

namespace berth::profiler {
namespace {

TEST(PageFiles, AreWritten) {
  const char* folder = std::getenv("BERTH_PAGE_FOLDER");
  if (folder == nullptr) GTEST_SKIP() << "page_test.py reads them";
  const char* hostile[] = {"</script><script>alert(1)</script>", "\"'&<!--",
                           "tab\tbell\x07", "dense/MatMul"};
  std::vector<TimelineEvent> events;
  for (int k = 0; k < 1000; ++k) {
    TimelineEvent e = {
        k % 3 ? "CPU:0" : "CPU:1", hostile[k % 4], k % 5 ? "MatMul" : "copy",
        {"net.py", 1 + k % 7},     k * 10.0,       k * 10.0 + k % 9};
    e.bytes = k % 4 * 100;
    if (k > 1) e.after = {k - 1};
    e.run = 1 + k / 100;
    events.push_back(e);
    if (k % 10) continue;
    TimelineEvent m = {"CPU:0", "bytes in use", "memory",
                       {},      k * 10.0,       k * 10.0};
    m.bytes = k * 1000;
    events.push_back(m);
    events.back().after.clear();
  }
  nlohmann::json list = nlohmann::json::array();
  for (const TimelineEvent& e : events) {
    const bool memory = e.kind == "memory";
    list.push_back({e.track, e.name, e.kind, e.begin_us, e.end_us, e.bytes,
                    memory ? "" : "net.py:" + std::to_string(e.site.line)});
  }
  Timeline(std::move(events)).write(std::string(folder) + "/trace.pftrace");
  std::ofstream(std::string(folder) + "/events.json") << list;
}

}  // namespace
}  // namespace berth::profiler
