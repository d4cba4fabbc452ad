#include "tensor/write_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/recycled.h"
#include "device/device.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

void raise_to(std::atomic<uint64_t>& number, uint64_t least) {
  uint64_t seen = number.load();
  while (seen < least && !number.compare_exchange_weak(seen, least)) {
  }
}

void tear(const WriteMark& mark, const std::string& why) {
  for (const Tensor& t : mark.handles) mark_torn(*t.impl()->variable, why);
}

}  // namespace

uint64_t lock_marks(const WriteMarks& marks) {
  static std::atomic<uint64_t> last{0};
  const uint64_t writer = ++last;
  for (const auto& mark : marks) {
    mark->writer = writer;
    if (std::any_of(
            mark->handles.begin(), mark->handles.end(),
            [](const Tensor& t) { return t.impl()->variable->torn.load(); })) {
      raise_to(mark->begun, writer);
    }
  }
  return writer;
}

void begin_write(WriteMark& mark, uint64_t writer) {
  raise_to(mark.begun, writer);
  if (mark.failed.load() >= writer) tear(mark, "a run failed");
}

void fail_write(WriteMark& mark, uint64_t writer, const std::string& why) {
  raise_to(mark.failed, writer);
  if (mark.begun.load() >= writer) tear(mark, why);
}

Event ready_of(const VariableState& state) {
  const Event& e = state.storage->ready;
  if (e.stream == nullptr || state.torn || !e.stream->done(e)) return e;
  try {
    e.stream->synchronize(e);
  } catch (const std::exception&) {
    try {  // what says whether that write had begun is after it
      e.stream->synchronize(e.stream->record());
    } catch (const std::exception&) {
    }
    if (!state.torn) return {};
  }
  return e;
}

namespace {

// Behind work that writes.
struct MarkWatch {
  std::shared_ptr<const WriteMarks> marks;
  uint64_t writer = 0;
  const char* what = "";
  Event before;  // the end of that work
  bool ran = false;

  void end() const {
    std::string why = "it was skipped";
    bool failed = !ran;
    // Kernels that hand their work on may fail after they ran.
    if (failed || before.stream->native() != nullptr) {
      try {
        synchronize(before);  // passed: nobody waits
      } catch (const std::exception& e) {
        failed = true;
        why = e.what();
      }
    }
    if (!failed) return;
    why = fmt::format("{} failed on {} ({})", what,
                      before.stream->device().short_name(), why);
    for (const auto& mark : *marks) fail_write(*mark, writer, why);
  }
};

}  // namespace

void watch_marks(Stream& stream, std::shared_ptr<const WriteMarks> marks,
                 uint64_t writer, const char* what) {
  Work work;
  work.what = "WatchWrites";
  work.run = [](void* c, Stream&) { static_cast<MarkWatch*>(c)->ran = true; };
  work.drop = [](void* c) {
    auto* watch = static_cast<MarkWatch*>(c);
    watch->end();
    Recycled<MarkWatch>::give_back(watch);
  };
  work.context = Recycled<MarkWatch>::take(
      {std::move(marks), writer, what, stream.record()});
  stream.launch(work);
}

}  // namespace berth
