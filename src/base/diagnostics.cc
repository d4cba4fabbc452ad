#include "base/diagnostics.h"

#include <cstdio>
#include <mutex>
#include <unordered_set>

#include "base/immortal.h"
#include "base/no_reports.h"

namespace berth {

std::atomic<bool> g_log_device_placement{false};
std::atomic<bool> g_check_numerics{false};

namespace {

thread_local bool t_reports_nothing = false;

// Beyond so many keys repeats are no longer told from first times.
constexpr size_t kMaxKeys = 100000;

struct State {
  std::mutex mutex;
  debugging::DiagnosticHandler handler;
  std::map<std::string, int64_t> counts;
  std::unordered_set<std::string> seen;
  std::mutex calling;  // of the handler: one call at a time
};

State& state() {
  static auto& s = immortal<State>();
  return s;
}

void to_stderr(const debugging::Diagnostic& d) {
  constexpr const char* kNames[] = {"", "lint ", "warning "};
  if (d.severity == debugging::Severity::kInfo) {
    std::fprintf(stderr, "berth: %s\n", d.text.c_str());
    return;
  }
  std::fprintf(stderr, "berth: %s%s: %s\n",
               kNames[static_cast<int>(d.severity)], d.id.c_str(),
               d.text.c_str());
}

void hand_over(const debugging::Diagnostic& d) {
  debugging::DiagnosticHandler handler;
  {
    std::lock_guard lock(state().mutex);
    handler = state().handler;
  }
  std::lock_guard lock(state().calling);
  if (handler) {
    handler(d);
  } else {
    to_stderr(d);
  }
}

}  // namespace

NoReports::NoReports() : outer_(t_reports_nothing) { t_reports_nothing = true; }
NoReports::~NoReports() { t_reports_nothing = outer_; }

void report(const debugging::Diagnostic& d) {
  if (t_reports_nothing) return;
  {
    std::lock_guard lock(state().mutex);
    ++state().counts[d.id];
  }
  hand_over(d);
}

bool count_once(const std::string& id, const std::string& key) {
  if (t_reports_nothing) return false;
  State& s = state();
  std::lock_guard lock(s.mutex);
  ++s.counts[id];
  return s.seen.size() < kMaxKeys && s.seen.insert(id + '\0' + key).second;
}

void deliver(const debugging::Diagnostic& d) { hand_over(d); }

bool report_once(const std::string& key, const debugging::Diagnostic& d) {
  if (!count_once(d.id, key)) return false;
  deliver(d);
  return true;
}

void count_diagnostic(const std::string& id) {
  if (t_reports_nothing) return;
  std::lock_guard lock(state().mutex);
  ++state().counts[id];
}

void reset_diagnostics_for_testing() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.counts.clear();
  s.seen.clear();
}

namespace debugging {

DiagnosticHandler set_diagnostic_handler(DiagnosticHandler handler) {
  std::lock_guard lock(state().mutex);
  std::swap(state().handler, handler);
  return handler;
}

std::map<std::string, int64_t> diagnostic_counts() {
  std::lock_guard lock(state().mutex);
  return state().counts;
}

void set_log_device_placement(bool enable) {
  g_log_device_placement.store(enable, std::memory_order_relaxed);
}

void enable_check_numerics() { g_check_numerics = true; }
void disable_check_numerics() { g_check_numerics = false; }
bool checks_numerics() { return g_check_numerics; }

bool get_log_device_placement() {
  return g_log_device_placement.load(std::memory_order_relaxed);
}

}  // namespace debugging

}  // namespace berth
