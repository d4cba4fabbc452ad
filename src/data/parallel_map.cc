#include <condition_variable>
#include <mutex>
#include <optional>

#include "data/map.h"
#include "data/stop_link.h"
#include "data/user_call.h"

namespace berth::data {

namespace {

// Threads take elements in turn, call the function and put the result in a
// window of slots: at the element's number when order matters, else at the
// number of results before it. The reader empties the slots in order.
class ParallelMapStream : public ElementStream {
 public:
  ParallelMapStream(const MapNode& node, const Pass& pass)
      : node_(node),
        stop_(pass.stop),
        source_(node.parent().open(stop_.inner(pass))),
        slots_(2 * static_cast<size_t>(node.threads())) {
    for (int i = 0; i < node.threads(); ++i) {
      threads_.push_back(start_thread(node, [this] { work(); }));
    }
  }
  ~ParallelMapStream() override { stop_.request_stop(); }

  bool next(Tensors* out) override {
    out->clear();
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[read_ % slots_.size()];
    if (!ready_.wait(lock, stop_.token(), [&] {
          return slot.full || (ended_ && read_ == taken_);
        })) {
      return false;
    }
    if (!slot.full) return false;
    if (slot.failure) slot.failure->raise();
    std::swap(*out, slot.element);
    slot.full = false;
    ++read_;
    room_.notify_one();
    return true;
  }

 private:
  struct Slot {
    Tensors element;
    std::optional<Failure> failure;
    bool full = false;
  };

  void work() {
    Tensors element;
    uint64_t number = 0;
    std::optional<Failure> failure;
    while (!failure && take(&element, &number, &failure)) {
      if (!failure) {
        try {
          element = call_map(node_, static_cast<int64_t>(number), node_.fn(),
                             element);
        } catch (...) {
          failure = Failure::current();
        }
      }
      put(&element, number, failure);
    }
  }

  // Takes the next element once the window has room for its result; false
  // when there is none.
  bool take(Tensors* element, uint64_t* number,
            std::optional<Failure>* failure) {
    std::lock_guard turn(source_mutex_);
    {
      std::unique_lock lock(mutex_);
      if (ended_ ||
          !room_.wait(lock, stop_.token(),
                      [&] { return taken_ < read_ + slots_.size(); }) ||
          stop_.token().stop_requested()) {
        return false;
      }
    }
    bool any = true;
    try {
      any = source_->next(element);
    } catch (...) {
      *failure = Failure::current();
    }
    std::lock_guard lock(mutex_);
    if (!any || *failure) ended_ = true;
    if (any) {
      *number = taken_++;
    } else {
      ready_.notify_one();
    }
    return any;
  }

  void put(Tensors* element, uint64_t number,
           const std::optional<Failure>& failure) {
    std::lock_guard lock(mutex_);
    const uint64_t at = node_.deterministic() ? number : written_++;
    Slot& slot = slots_[at % slots_.size()];
    std::swap(slot.element, *element);
    slot.failure = failure;
    slot.full = true;
    if (failure) ended_ = true;
    if (at == read_) ready_.notify_one();
  }

  const MapNode& node_;
  StopLink stop_;

  std::mutex source_mutex_;  // source_; taken before mutex_
  std::unique_ptr<ElementStream> source_;

  std::mutex mutex_;  // everything below
  std::condition_variable_any ready_, room_;
  std::vector<Slot> slots_;
  uint64_t taken_ = 0;    // elements that threads have taken
  uint64_t written_ = 0;  // results so far, when order does not matter
  uint64_t read_ = 0;     // results handed on
  bool ended_ = false;    // nothing more is taken

  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

}  // namespace

std::unique_ptr<ElementStream> parallel_map(const MapNode& node,
                                            const Pass& pass) {
  return std::make_unique<ParallelMapStream>(node, pass);
}

}  // namespace berth::data
