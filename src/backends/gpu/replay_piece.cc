#include "backends/gpu/replay_piece.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "berth/errors.h"
#include "device/device.h"

namespace berth::gpu {

namespace {

// If memory moves more often than this in so many runs, recording does not pay.
constexpr int kMostRecordings = 12;
constexpr uint64_t kRuns = 256;

}  // namespace

PieceRun::PieceRun(const ReplayPiece& piece, ProgramRun& run, SteppedRun& steps)
    : piece_(piece), run_(run), steps_(steps), places_(piece.moving.size()) {
  recorded_arenas_.reserve(run.arena_base.size());
  recording_work_.what = "what records a plan";
  recording_work_.context = this;
  recording_work_.run = [](void* context, Stream&) {
    static_cast<PieceRun*>(context)->make_recording();
  };
  replay_work_.what = piece.what.c_str();
  replay_work_.context = this;
  replay_work_.run = [](void* context, Stream&) {
    static_cast<PieceRun*>(context)->replay();
  };
}

std::byte* PieceRun::address_of(const MovingBuffer& m) const {
  return static_cast<std::byte*>(run_.views[m.view].data) -
         run_.program.operands[m.view].offset;
}

void PieceRun::look() {
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    std::byte* now = address_of(piece_.moving[i]);
    place.moved |= place.address != nullptr && place.address != now;
    place.address = now;
  }
}

bool PieceRun::is_current() const {
  if (!recording_ || !*recording_ || recorded_arenas_ != run_.arena_base) {
    return false;
  }
  for (const Place& p : places_) {
    if (p.moved && !p.home) return false;
  }
  return true;
}

bool PieceRun::launch() {
  if (!why_.empty()) return false;
  look();
  QueueStream& stream = *piece_.recorded;
  for (const int32_t w : piece_.waits) stream.wait(run_.events[w]);
  if (++runs_ % kRuns == 0) recent_ = 0;
  if (!is_current() && (recent_ == kMostRecordings || !record())) return false;
  stream.launch(replay_work_);
  for (const int32_t s : piece_.signals) run_.events[s] = stream.record();
  return true;
}

bool PieceRun::record() {
  try {
    for (const BoundKernel* kernel : piece_.kernels) look_up_kernels(*kernel);
    give_homes();
    if (!recording_) recording_.emplace(*piece_.recorded, piece_.calls);
  } catch (const std::exception& e) {
    why_ = e.what();
    return false;
  }
  const auto move = [&](bool home) {
    for (size_t i = 0; i < places_.size(); ++i) {
      const Place& p = places_[i];
      if (!p.home) continue;
      for (const int view : piece_.moving[i].views) {
        run_.views[view].data = (home ? p.home->data : p.address) +
                                run_.program.operands[view].offset;
      }
    }
  };
  move(true);
  made_ = false;
  piece_.recorded->launch(recording_work_);
  move(false);
  if (!made_) {  // false also if a failed stream skipped the work
    recording_.reset();
    return false;
  }
  recorded_arenas_ = run_.arena_base;
  ++recorded_;
  ++recent_;
  return true;
}

void PieceRun::give_homes() {
  Device& device = piece_.recorded->device();
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (!place.moved || place.home) continue;
    const MovingBuffer& m = piece_.moving[i];
    if (m.shared) {
      throw errors::FailedPrecondition(
          "a result that several streams make lies elsewhere in every run");
    }
    const size_t bytes = run_.program.buffers[m.buffer].bytes;
    place.home = BlockRef::adopt(
        device.allocator().allocate(std::max<size_t>(bytes, 1)));
  }
}

void PieceRun::make_recording() {
  try {
    recording_->record([this](StreamRecording& r) { append(r); });
    made_ = true;
  } catch (const std::exception& e) {
    why_ = e.what();
  }
}

void PieceRun::append(StreamRecording& recording) {
  const Program& p = run_.program;
  for (const int32_t s : piece_.steps) {
    if (p.steps[s].kind == StepKind::kNothing) continue;
    const PlanOp& op = p.ops[p.steps[s].first_op];
    recording.next(op.op->name().c_str(), op.site);
    try {
      steps_.call_step(static_cast<size_t>(s));
    } catch (const errors::Error& e) {
      errors::raise(e.code(), fmt::format("{}: {}", op.name, e.what()));
    }
  }
}

void PieceRun::replay() {
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const MovingBuffer& m = piece_.moving[i];
    if (place.home && m.comes_in) copy(m, place.home->data, place.address);
  }
  const Program& p = run_.program;
  for (const int32_t s : piece_.steps) {
    for (int o = 0; o < p.steps[s].num_ops; ++o) {
      run_.begin_writes(p.steps[s].first_op + o);
    }
  }
  recording_->replay();
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const MovingBuffer& m = piece_.moving[i];
    if (place.home && m.goes_out) copy(m, place.address, place.home->data);
  }
}

void PieceRun::copy(const MovingBuffer& m, std::byte* to,
                    const std::byte* from) {
  const MemorySpace& here = piece_.recorded->device().memory();
  piece_.recorded->queue().copy(
      {to, &here, from, &here, run_.program.buffers[m.buffer].bytes});
}

}  // namespace berth::gpu
