// diagnostics: how modules report warnings and lints.
//
// A diagnostic that would repeat is reported once per `key`; every one is
// counted (berth/debugging.h). Thread-safe.

#ifndef BERTH_BASE_DIAGNOSTICS_H_
#define BERTH_BASE_DIAGNOSTICS_H_

#include <atomic>
#include <string>

#include "berth/debugging.h"

namespace berth {

// Counts the diagnostic and hands it to the handler.
void report(const debugging::Diagnostic& diagnostic);

// Counts it, and hands it to the handler unless one of the same id and `key`
// went there before. Returns true when it did.
bool report_once(const std::string& key,
                 const debugging::Diagnostic& diagnostic);

// The two halves of report_once(), for those to whom the text is dear: counts,
// returns true when the handler is still to be told; and tells it.
bool count_once(const std::string& id, const std::string& key);
void deliver(const debugging::Diagnostic& diagnostic);

// Counts a diagnostic that nobody wants to hear.
void count_diagnostic(const std::string& id);

// Forgets what report_once() has seen, and the counts (tests).
void reset_diagnostics_for_testing();

// True while device placement is to be logged.
extern std::atomic<bool> g_log_device_placement;
extern std::atomic<bool> g_check_numerics;

}  // namespace berth

#endif  // BERTH_BASE_DIAGNOSTICS_H_
