// Asynchronous runs: how one run is ordered against what came before and what
// comes after.

#include "device/device_manager.h"
#include "exec/plan_impl.h"

namespace berth {

// Copy streams may touch memory that earlier work of compute streams used.
// Variables need nothing: only their device's compute stream touches them, and
// a transfer of a value read there waits for the read.
void Plan::Impl::join_before() {
  for (PlanStream& s : streams) {
    for (int32_t other : s.start_waits) {
      s.stream->wait(streams[other].stream->record());
    }
  }
}

void Plan::Impl::join_after(Instance& run) {
  for (size_t s = 0; s < streams.size(); ++s) {
    run.done[s] = streams[s].stream->record();
  }
}

// /CPU:0 is the one device whose work others find done without an event. Bodies
// may use it where the plan around them does not.
void Plan::Impl::join_host(Instance& run) {
  if (!options.host_threads) return;
  Stream& host = DeviceManager::get().host().plan_stream();
  const Event end = host.record();
  wait_in_time(run, end);
  host.synchronize(end);
}

void Plan::Impl::reset_host() {
  if (options.host_threads) DeviceManager::get().host().reset_error();
}

// Asynchronous work that fails later leaves what it writes torn, and with it
// the home and the other mirrors, which must stay alike.
void Plan::Impl::watch_variables() {
  const auto home_of = [&](size_t i) {
    return variables[i].home < 0 ? static_cast<int>(i) : variables[i].home;
  };
  for (PlanStream& s : streams) {
    // Errors of the host's devices are thrown before the run ends.
    if (s.device->runs_inline() || s.stream != &s.device->compute_stream()) {
      continue;
    }
    std::vector<bool> touched(variables.size(), false);  // by home
    for (size_t i = 0; i < variables.size(); ++i) {
      const VariableState& v = variable_state(variables[i].handle);
      if (variables[i].write && v.device == s.device)
        touched[home_of(i)] = true;
    }
    std::vector<Tensor> written;
    for (size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].write && touched[home_of(i)]) {
        written.push_back(variables[i].handle);
      }
    }
    if (!written.empty()) {
      watch_writes(*s.stream, std::move(written), "a run");
    }
  }
}

// Results are ready when the stream that made them, or brought them, is. Those
// of devices that run inline are: their streams are never found here, or null.
void Plan::Impl::note_events(Instance& run) {
  for (const VariableUse& use : variables) {
    VariableState& v = variable_state(use.handle);
    if (!use.write) continue;
    for (size_t s = 0; s < streams.size(); ++s) {
      if (streams[s].stream == &v.device->compute_stream()) {
        v.storage->ready = run.done[s];
      }
    }
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Output& out = outputs[o];
    const PlanBuffer& b = buffers[out.buffer];
    if (b.where != Where::kOutput || out.same_as >= 0) continue;
    for (size_t s = 0; s < streams.size(); ++s) {
      // Compute streams wait for the copy streams at the end of a run.
      if (streams[s].stream == &devices[b.device]->compute_stream()) {
        run.outputs[o].impl()->block->ready = run.done[s];
      }
    }
  }
}

}  // namespace berth
