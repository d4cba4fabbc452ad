#include "backends/gpu/stream_recording.h"

#include <algorithm>
#include <utility>

#include "device/device.h"
#include "device/memory_space.h"

namespace berth::gpu {

RecordedFaults::RecordedFaults(QueueStream& stream, size_t most_ops)
    : most(most_ops),
      slots(BlockRef::adopt(stream.device().allocator().allocate(
          std::max<size_t>(most, 1) * kFaultBytes))),
      mirror(pinned_or_host(stream.card()),
             std::max<size_t>(most, 1) * kFaultBytes) {
  if (mirror.data() == nullptr) {
    throw errors::ResourceExhausted("no pinned memory is left for a recording");
  }
  ops.reserve(most);
}

StreamRecording::StreamRecording(QueueStream& stream, size_t most_faults)
    : stream_(stream),
      faults_(std::make_shared<RecordedFaults>(stream, most_faults)) {}

void StreamRecording::record(
    const std::function<void(StreamRecording&)>& append) {
  Queue& queue = stream_.queue();
  std::unique_ptr<Recording> old = std::move(recording_);
  faults_->ops.clear();
  // Clear them now; replays leave them clear.
  queue.fill(faults_->slots->data, 0, faults_->slots->bytes);
  queue.begin_recording();
  stream_.recording_ = this;
  try {
    append(*this);
    append_end();
  } catch (...) {
    stream_.recording_ = nullptr;
    queue.drop_recording();
    throw;
  }
  stream_.recording_ = nullptr;
  recording_ = queue.end_recording(std::move(old));
}

void StreamRecording::next(const char* what, Site site) {
  now_.what = what;
  now_.site = site;
}

void* StreamRecording::watch_fault(const FaultTexts& texts) {
  const size_t i = faults_->ops.size();
  if (i == faults_->most) {
    throw errors::Internal("more kernels report than the recording has room");
  }
  faults_->ops.push_back({texts, now_});
  return faults_->slot(i);
}

void StreamRecording::append_end() {
  const size_t bytes = faults_->ops.size() * kFaultBytes;
  if (bytes == 0) return;
  Queue& queue = stream_.queue();
  std::byte* slots = faults_->slots->data;
  queue.copy({faults_->mirror.data(), &pinned_memory(), slots,
              &stream_.device().memory(), bytes});
  queue.fill(slots, 0, bytes);
}

void StreamRecording::replay() {
  recording_->launch(stream_.queue());
  if (!faults_->ops.empty()) stream_.watch_faults(faults_);
}

}  // namespace berth::gpu
