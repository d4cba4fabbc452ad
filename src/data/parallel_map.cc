#include <condition_variable>
#include <mutex>
#include <optional>

#include "data/map.h"
#include "data/pass_state.h"
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
        keep_going_(pass.keep_going),
        stop_(pass.stop),
        source_(node.parent().open(stop_.inner(pass))),
        slots_(2 * static_cast<size_t>(node.threads())) {
    if (!pass.restoring) start();
  }
  ~ParallelMapStream() override { stop_.request_stop(); }

  bool next(Tensors* out) override {
    if (threads_.empty() && !ended_) start();
    out->clear();
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[read_ % slots_.size()];
    if (!ready_.wait(lock, stop_.token(),
                     [&] { return slot.full || (ended_ && busy_ == 0); })) {
      return false;
    }
    if (!slot.full) return false;
    slot.full = false;
    ++read_;
    room_.notify_one();
    if (slot.failure) {
      const Failure failure = *std::exchange(slot.failure, std::nullopt);
      failure.raise();
    }
    std::swap(*out, slot.element);
    return true;
  }

  void save(PassWriter& w) override;
  void restore(PassReader& r) override;

 private:
  struct Slot {
    Tensors element;
    std::optional<Failure> failure;
    bool full = false;
  };

  void start() {
    while (threads_.size() < static_cast<size_t>(node_.threads())) {
      threads_.push_back(start_thread(node_, [this] { work(); }));
    }
  }

  void work() {
    Tensors element;
    while (reserve()) {
      uint64_t number = 0;
      std::optional<Failure> failure;
      const bool any = take(&element, &number, &failure);
      if (any && !failure) {
        try {
          element = call_map(node_, static_cast<int64_t>(number), node_.fn(),
                             element);
        } catch (...) {
          failure = Failure::current();
        }
      }
      put(&element, any, number, std::move(failure));
    }
  }

  // Waits for room for one more result; false when none is wanted.
  bool reserve() {
    std::unique_lock lock(mutex_);
    const bool room = room_.wait(lock, stop_.token(), [&] {
      return ended_ || (!held_ && reserved_ < read_ + slots_.size());
    });
    if (!room || ended_ || stop_.token().stop_requested()) return false;
    ++reserved_;
    ++busy_;
    return true;
  }

  // Takes the next element; false when there is none.
  bool take(Tensors* element, uint64_t* number,
            std::optional<Failure>* failure) {
    std::lock_guard turn(source_mutex_);
    if (source_ended_) return false;
    bool any = true;
    try {
      any = source_->next(element);
    } catch (...) {
      *failure = Failure::current();
    }
    source_ended_ = !any || (*failure && !keep_going_);
    if (any) *number = taken_++;
    return any;
  }

  void put(Tensors* element, bool any, uint64_t number,
           std::optional<Failure> failure) {
    std::lock_guard lock(mutex_);
    --busy_;
    if (!any || (failure && !keep_going_)) {
      ended_ = true;
      room_.notify_all();
    }
    if (any) {
      const uint64_t at = node_.deterministic() ? number : written_;
      ++written_;
      Slot& slot = slots_[at % slots_.size()];
      std::swap(slot.element, *element);
      slot.failure = std::move(failure);
      slot.full = true;
      if (at == read_) ready_.notify_one();
    }
    if (busy_ == 0 && (ended_ || held_)) ready_.notify_one();
  }

  const MapNode& node_;
  const bool keep_going_;
  StopLink stop_;

  std::mutex source_mutex_;  // the next three; never taken under mutex_
  std::unique_ptr<ElementStream> source_;
  bool source_ended_ = false;
  uint64_t taken_ = 0;  // elements that threads have taken

  std::mutex mutex_;  // everything below
  std::condition_variable_any ready_, room_;
  std::vector<Slot> slots_;
  uint64_t reserved_ = 0;  // results that have been promised room
  uint64_t written_ = 0;   // results so far
  uint64_t read_ = 0;      // results handed on
  int busy_ = 0;           // threads between reserve() and put()
  bool held_ = false;      // the stream is being saved
  bool ended_ = false;     // nothing more is taken

  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

// The threads finish what they have begun, and it is saved as results.
void ParallelMapStream::save(PassWriter& w) {
  std::unique_lock lock(mutex_);
  held_ = true;
  const Finally release([&] {
    held_ = false;
    room_.notify_all();
  });
  if (!ready_.wait(lock, stop_.token(), [&] { return busy_ == 0; })) {
    PassWriter::cannot(node_, "the pass has been stopped");
  }
  w.begin(node_);
  w.put(read_);
  w.put(written_);
  for (uint64_t at = read_; at < written_; ++at) {
    const Slot& slot = slots_[at % slots_.size()];
    w.put(slot.failure);
    if (!slot.failure) w.put(slot.element);
  }
  w.put(!ended_);
  if (!ended_) source_->save(w);
}

void ParallelMapStream::restore(PassReader& r) {
  r.begin(node_);
  read_ = static_cast<uint64_t>(r.number(0));
  const auto read = static_cast<int64_t>(read_);
  taken_ = reserved_ = written_ = static_cast<uint64_t>(
      r.number(read, std::min(read, INT64_MAX - kMostSaved) + kMostSaved));
  if (written_ - read_ > slots_.size()) slots_.resize(written_ - read_);
  for (uint64_t at = read_; at < written_; ++at) {
    Slot& slot = slots_[at % slots_.size()];
    slot.failure = r.failure();
    if (!slot.failure) slot.element = r.element();
    slot.full = true;
  }
  ended_ = source_ended_ = !r.flag();
  if (!ended_) source_->restore(r);
}

}  // namespace

std::unique_ptr<ElementStream> parallel_map(const MapNode& node,
                                            const Pass& pass) {
  return std::make_unique<ParallelMapStream>(node, pass);
}

}  // namespace berth::data
