// Asynchronous runs: how one run is ordered against what came before and what
// comes after.

#include <algorithm>

#include "exec/plan_impl.h"

namespace berth {

// Copy streams may touch memory that earlier work of compute streams used.
// Variables need nothing: only their device's compute stream touches them, and
// a transfer of a value read there waits for the read.
void Plan::Impl::join_before() {
  for (const PlanStream& s : program->streams) {
    for (int32_t other : s.start_waits) {
      s.stream->wait(program->streams[other].stream->record());
    }
  }
}

void Plan::Impl::join_after(Instance& run) {
  for (size_t s = 0; s < program->streams.size(); ++s) {
    run.done[s] = program->streams[s].stream->record();
  }
}

// Asynchronous work that fails later leaves what it writes torn, and with it
// the home and the other mirrors, which must stay alike.
void Plan::Impl::list_written() {
  for (const PlanStream& s : program->streams) {
    written.emplace_back();
    // Errors of the host are thrown before the run ends.
    if (s.host || s.stream != &s.device->compute_stream()) continue;
    WriteMarks touched;
    for (const auto& mark : writes.marks) {
      const auto& all = mark->handles;
      if (std::any_of(all.begin(), all.end(), [&](const Tensor& t) {
            return variable_state(t).device == s.device;
          })) {
        touched.push_back(mark);
      }
    }
    if (touched.empty()) continue;
    written.back() = std::make_shared<const WriteMarks>(std::move(touched));
  }
}

void Plan::Impl::watch_variables(const Instance& run) {
  for (size_t s = 0; s < written.size(); ++s) {
    if (written[s]) {
      watch_marks(*program->streams[s].stream, written[s], run.writer, "a run");
    }
  }
}

// Results are ready when the stream that made them, or brought them, is. Those
// of devices that run inline are: their streams are never found here, or null.
void Plan::Impl::note_events(Instance& run) {
  const std::vector<PlanStream>& streams = program->streams;
  for (const VariableUse& use : variables.uses) {
    VariableState& v = variable_state(use.handle);
    if (!use.write) continue;
    for (size_t s = 0; s < streams.size(); ++s) {
      if (streams[s].stream == &v.device->compute_stream()) {
        v.storage->ready = run.done[s];
      }
    }
  }
  for (size_t o = 0; o < program->outputs.size(); ++o) {
    const PlanOutput& out = program->outputs[o];
    const PlanBuffer& b = program->buffers[out.buffer];
    if (b.where != Where::kOutput || out.same_as >= 0) continue;
    for (size_t s = 0; s < streams.size(); ++s) {
      // Compute streams wait for the copy streams at the end of a run.
      if (streams[s].stream == &program->devices[b.device]->compute_stream()) {
        run.outputs[o].impl()->block->ready = run.done[s];
      }
    }
  }
}

}  // namespace berth
