// Dataset::map with parallel calls.

#include <condition_variable>
#include <mutex>
#include <optional>

#include "data/host_budget.h"
#include "data/map.h"
#include "data/pass_state.h"
#include "data/stop_link.h"
#include "data/user_call.h"

namespace berth::data {

namespace {

constexpr int kEasyReads = 64;  // before a thread may be given back

// Threads take elements in turn, call the function and put the result in a
// window of slots: at the element's number when order matters, else at the
// number of results before it. The reader empties the slots in order.
class ParallelMapStream : public ElementStream {
 public:
  ParallelMapStream(const MapNode& node, const PassInfo& pass)
      : node_(node),
        keep_going_(pass.keep_going),
        stop_(pass.stop),
        source_(node.parent().open(stop_.inner(pass))),
        pass_(node.begin(pass)),
        claim_(node.autotune() ? 0 : node.threads()),
        slots_(2 * static_cast<size_t>(node.threads())) {
    node_.stats().size = claim_.held();
    if (!pass.restoring) start();
  }
  ~ParallelMapStream() override { stop_.request_stop(); }

  bool next(Tensors* out) override {
    if (threads_.empty() && !ended_) start();
    out->clear();
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[read_ % slots_.size()];
    if (!slot.full && !wait(&lock, slot)) return false;
    if (!slot.full) return false;
    slot.full = false;
    ++read_;
    ++node_.stats().elements;
    if (claim_.held() > 1 && node_.autotune() && ++easy_reads_ >= kEasyReads) {
      give_back();
    }
    // Threads that were given back sleep on, whichever thread is woken.
    if (claim_.held() < static_cast<int>(threads_.size())) {
      room_.notify_all();
    } else {
      room_.notify_one();
    }
    if (slot.failure) {
      const PassError failure = *std::exchange(slot.failure, std::nullopt);
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
    std::optional<PassError> failure;
    bool full = false;
  };

  void start() {
    while (threads_.size() < static_cast<size_t>(claim_.held())) add_thread();
  }
  void add_thread() {
    const int number = static_cast<int>(threads_.size());
    threads_.push_back(start_thread(node_, [this, number] { work(number); }));
  }

  // The reader's: until `slot` is full or nothing comes; false after a stop.
  bool wait(std::unique_lock<std::mutex>* lock, const Slot& slot) {
    easy_reads_ = 0;
    if (node_.autotune()) consider_more();
    StageStats& stats = node_.stats();
    ++stats.waits;
    const int64_t since = stage_clock_ns();
    const bool ready = wait_for_element(ready_, *lock, stop_.token(), [&] {
      return slot.full || (ended_ && busy_ == 0);
    });
    stats.wait_ns += stage_clock_ns() - since;
    return ready;
  }

  // The reader waits. Another thread helps when all the others compute;
  // when some wait for elements, those who make these are the slower part.
  void consider_more() {
    const int active = claim_.held();
    if (ended_ || computing_ < active) {
      node_.stats().why = "";
      return;
    }
    if (++hard_reads_ < 2 * active) return;
    hard_reads_ = 0;
    if (active == node_.threads() || !claim_.grow()) {
      node_.stats().why = "; the host has no more cores for pipelines";
      return;
    }
    node_.stats().size = claim_.held();
    node_.stats().why = "; another was added while the reader waited";
    if (threads_.size() < static_cast<size_t>(claim_.held())) add_thread();
    room_.notify_all();
  }

  // The reader has not waited for long: others may have a core.
  void give_back() {
    easy_reads_ = 0;
    if (!CoreClaim::wanted()) return;
    claim_.shrink();
    node_.stats().size = claim_.held();
    node_.stats().why = "; one was given back to another pipeline";
  }

  void work(int thread) {
    Tensors element;
    while (reserve(thread)) {
      uint64_t number = 0;
      std::optional<PassError> failure;
      const bool any = take(&element, &number, &failure);
      if (any && !failure) {
        ++computing_;
        try {
          element = node_.call(pass_, static_cast<int64_t>(number), element);
        } catch (...) {
          failure = PassError::current();
        }
        --computing_;
      }
      put(&element, any, number, std::move(failure));
    }
  }

  // Waits for room for one more result; false when none is wanted.
  bool reserve(int thread) {
    std::unique_lock lock(mutex_);
    const bool room = room_.wait(lock, stop_.token(), [&] {
      return ended_ || (!held_ && thread < claim_.held() &&
                        reserved_ < read_ + slots_.size());
    });
    if (!room || ended_ || stop_.token().stop_requested()) return false;
    ++reserved_;
    ++busy_;
    return true;
  }

  // Takes the next element; false when there is none.
  bool take(Tensors* element, uint64_t* number,
            std::optional<PassError>* failure) {
    std::lock_guard turn(source_mutex_);
    if (source_ended_) return false;
    bool any = true;
    try {
      any = source_->next(element);
    } catch (...) {
      *failure = PassError::current();
    }
    source_ended_ = !any || (*failure && !keep_going_);
    if (any) *number = taken_++;
    return any;
  }

  void put(Tensors* element, bool any, uint64_t number,
           std::optional<PassError> failure) {
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

  int64_t pass_;                   // its number
  std::atomic<int> computing_{0};  // threads in the function

  std::mutex mutex_;  // everything below
  CoreClaim claim_;
  int hard_reads_ = 0;  // that waited since the last thread
  int easy_reads_ = 0;  // since one waited
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
  w.put(pass_);
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
  pass_ = r.number();
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
                                            const PassInfo& pass) {
  return std::make_unique<ParallelMapStream>(node, pass);
}

}  // namespace berth::data
