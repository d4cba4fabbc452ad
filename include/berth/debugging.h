// debugging: what the engine reports besides results and errors (tf.debugging).
//
// Diagnostics are warnings and lints with stable ids (docs/diagnostics.md).
// They go to a handler, by default one line each on stderr, and are counted.
// Thread-safe.

#ifndef BERTH_DEBUGGING_H_
#define BERTH_DEBUGGING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "berth/site.h"

namespace berth::debugging {

enum class Severity : uint8_t {
  kInfo,     // requested: placement logging
  kLint,     // legal, but probably not intended
  kWarning,  // not done as requested
};

struct Diagnostic {
  std::string id;  // "fallback", "retrace"
  Severity severity = Severity::kWarning;
  std::string text;  // one sentence, with advice; names the place
  Site site = {};    // the user's line; no file: unknown
};

// Sends every diagnostic to `handler` from now on; an empty one restores
// stderr. Returns the previous handler. The handler may be called by any
// thread, one call at a time, and must not call the engine.
using DiagnosticHandler = std::function<void(const Diagnostic&)>;
DiagnosticHandler set_diagnostic_handler(DiagnosticHandler handler);

// Number of diagnostics by id, including those silenced by a handler or a "once
// per place" rule.
std::map<std::string, int64_t> diagnostic_counts();

// Reports where every op runs: eagerly one line per call ("Executing op MatMul
// in device GPU:0"), for a compiled step one line per node when it is compiled
// (tf.debugging.set_log_device_placement).
void set_log_device_placement(bool enable);
bool get_log_device_placement();

// From now on every op whose result has a NaN or an infinity fails with
// errors::InvalidArgument, which says which op, where, and from what to what
// its inputs go (tf.debugging.enable_check_numerics). So that it is the first
// one, functions run op by op meanwhile, and every op is waited for: slow.
// Compiled steps of strategies are not looked into. Complex results are not
// checked.
void enable_check_numerics();
void disable_check_numerics();
bool checks_numerics();

}  // namespace berth::debugging

#endif  // BERTH_DEBUGGING_H_
