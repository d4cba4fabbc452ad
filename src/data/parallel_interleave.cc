// Dataset::interleave with parallel calls.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "data/host_budget.h"
#include "data/interleave.h"
#include "data/stop_link.h"

namespace berth::data {

namespace {

// One of the datasets that are read.
struct Opened {
  int64_t number = 0;
  Tensors element;                 // that the dataset was made of
  std::optional<Dataset> dataset;  // keeps what the stream refers to
  std::unique_ptr<ElementStream> stream;
  bool busy = false;  // a thread reads it
  bool ended = false;
  std::optional<PassError> failure;
  std::deque<Tensors> ready;
};

// Threads read the datasets of the cycle, and those that come after them, into
// short queues; the reader empties the queues in turn. Which dataset follows
// which is decided by the reader alone, so the order is that of one thread.
class ParallelInterleaveStream : public ElementStream {
 public:
  ParallelInterleaveStream(const InterleaveNode& node, const PassInfo& pass)
      : node_(node),
        stop_(pass.stop),
        inner_(stop_.inner(pass)),
        source_(node.parent().open(inner_)),
        cycle_(node.cycle_length()) {
    if (!pass.restoring) start();
  }
  ~ParallelInterleaveStream() override { stop_.request_stop(); }

  bool next(Tensors* out) override {
    out->clear();
    start();
    std::unique_lock lock(mutex_);
    for (;;) {
      const Turn turn = node_.deterministic() ? in_turn(out) : any_ready(out);
      if (turn == Turn::kElement) return true;
      if (turn == Turn::kEnd) return false;
      if (!wait_for_element(changed_, lock, stop_.token(),
                            [&] { return std::exchange(news_, false); })) {
        return false;
      }
    }
  }

  void save(PassWriter& w) override {
    std::unique_lock lock(mutex_);
    paused_ = true;
    idle_.wait(lock, [&] { return active_ == 0; });
    w.begin(node_);
    w.put(number_);
    w.put(at_);
    w.put(block_);
    w.put(source_failure_);
    for (auto& open : cycle_) {
      w.put(open != nullptr);
      if (open) save_one(w, *open);
    }
    w.put(waiting_.size());
    for (auto& open : waiting_) save_one(w, *open);
    save_source(w, source_);
    paused_ = false;
    work_.notify_all();
  }

  void restore(PassReader& r) override {
    r.begin(node_);
    number_ = r.number(0);
    at_ = static_cast<size_t>(
        r.number(0, static_cast<int64_t>(cycle_.size()) - 1));
    block_ = r.number(0, node_.block_length() - 1);
    source_failure_ = r.failure();
    for (auto& open : cycle_) {
      if (r.flag()) open = restored(r);
    }
    for (int64_t n = r.number(0, 4096); n > 0; --n) {
      waiting_.push_back(restored(r));
    }
    restore_source(r, &source_);
  }

 private:
  enum class Turn { kElement, kEnd, kWait };

  void start() {
    if (!threads_.empty()) return;
    while (node_.autotune() && claim_.held() < (node_.threads() + 1) / 2 &&
           claim_.grow()) {
    }
    for (int i = 0; i < claim_.held(); ++i) {
      threads_.push_back(start_thread(node_, [this] { work(); }));
    }
  }

  // ---- the reader, under mutex_

  bool source_ended() const { return !source_ && !reading_source_; }

  // Puts the next dataset into an empty place; false if there is none yet.
  bool refill(std::unique_ptr<Opened>* place) {
    if (waiting_.empty()) return false;
    *place = std::move(waiting_.front());
    waiting_.pop_front();
    work_.notify_all();
    return true;
  }
  void advance() {
    block_ = 0;
    at_ = (at_ + 1) % cycle_.size();
  }
  bool take(Opened& open, Tensors* out) {
    if (open.ready.empty()) return false;
    *out = std::move(open.ready.front());
    open.ready.pop_front();
    work_.notify_one();
    return true;
  }
  // Gives up the place of a dataset that has ended; raises what ended it.
  static bool leave(std::unique_ptr<Opened>* place) {
    if (!(*place)->ended || !(*place)->ready.empty()) return false;
    const std::unique_ptr<Opened> gone = std::move(*place);
    if (gone->failure) gone->failure->raise();
    return true;
  }
  void raise_source_failure() {
    if (!source_failure_) return;
    const PassError failure = *std::exchange(source_failure_, std::nullopt);
    failure.raise();
  }
  bool all_empty() const {
    return std::all_of(cycle_.begin(), cycle_.end(),
                       [](const auto& open) { return open == nullptr; });
  }

  Turn in_turn(Tensors* out) {
    for (;;) {
      auto& place = cycle_[at_];
      if (!place && !refill(&place)) {
        if (!source_ended()) return Turn::kWait;
        raise_source_failure();
        if (all_empty()) return Turn::kEnd;
        advance();
      } else if (take(*place, out)) {
        if (++block_ == node_.block_length()) advance();
        return Turn::kElement;
      } else if (leave(&place)) {
        advance();
      } else {
        return Turn::kWait;
      }
    }
  }

  Turn any_ready(Tensors* out) {
    for (size_t i = 0; i < cycle_.size(); ++i) {
      auto& place = cycle_[at_];
      if (place) leave(&place);
      if (!place) refill(&place);
      advance();
      if (place && take(*place, out)) return Turn::kElement;
    }
    if (!source_ended() || !waiting_.empty() || !all_empty()) {
      return Turn::kWait;
    }
    raise_source_failure();
    return Turn::kEnd;
  }

  // ---- the threads

  size_t room() const {
    return static_cast<size_t>(
        std::clamp<int64_t>(2 * node_.block_length(), 2, 32));
  }
  bool wants(const std::unique_ptr<Opened>& open) const {
    return open && !open->busy && !open->ended && open->ready.size() < room();
  }
  // The dataset whose elements the reader needs first.
  Opened* most_wanted() const {
    for (size_t i = 0; i < cycle_.size(); ++i) {
      const auto& open = cycle_[(at_ + i) % cycle_.size()];
      if (wants(open)) return open.get();
    }
    for (const auto& open : waiting_) {
      if (wants(open)) return open.get();
    }
    return nullptr;
  }
  bool wants_source() const {
    if (!source_ || reading_source_) return false;
    const auto places =
        static_cast<size_t>(std::count(cycle_.begin(), cycle_.end(), nullptr));
    return waiting_.size() < places + static_cast<size_t>(claim_.held());
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Opened* open = nullptr;
      bool source = false;
      if (!work_.wait(lock, stop_.token(), [&] {
            if (paused_) return false;
            // A dataset that the reader has no place for can wait.
            source = wants_source() && waiting_.empty();
            if (!source) open = most_wanted();
            if (!source && !open) source = wants_source();
            return source || open != nullptr;
          })) {
        return;
      }
      ++active_;
      if (source) {
        read_source(lock);
      } else {
        read_element(lock, *open);
      }
      --active_;
      news_ = true;
      changed_.notify_one();
      if (active_ == 0) idle_.notify_all();
      work_.notify_one();
    }
  }

  void read_source(std::unique_lock<std::mutex>& lock) {
    reading_source_ = true;
    lock.unlock();
    auto open = std::make_unique<Opened>();
    bool any = false;
    std::optional<PassError> failure;
    try {
      any = source_->next(&open->element);
    } catch (...) {
      failure = PassError::current();
    }
    lock.lock();
    reading_source_ = false;
    source_failure_ = failure;
    if (any) {
      open->number = number_++;
      waiting_.push_back(std::move(open));
    } else {
      source_.reset();
    }
  }

  void read_element(std::unique_lock<std::mutex>& lock, Opened& open) {
    open.busy = true;
    lock.unlock();
    Tensors element;
    bool any = false;
    std::optional<PassError> failure;
    try {
      if (!open.stream) open_stream(open);
      any = open.stream->next(&element);
    } catch (...) {
      failure = PassError::current();
    }
    lock.lock();
    open.busy = false;
    if (any) {
      open.ready.push_back(std::move(element));
      return;
    }
    open.ended = true;
    open.failure = std::move(failure);
    open.stream.reset();
  }

  void open_stream(Opened& open) {
    open.dataset = node_.make(open.element, open.number);
    open.stream = open.dataset->node().open(inner_);
  }

  // ---- saved passes

  static void save_one(PassWriter& w, Opened& open) {
    w.put(open.number);
    w.put(open.element);
    w.put(open.ended);
    w.put(open.failure);
    save_values(w, std::vector<Tensors>(open.ready.begin(), open.ready.end()));
    w.put(open.stream != nullptr);
    if (open.stream) open.stream->save(w);
  }
  std::unique_ptr<Opened> restored(PassReader& r) {
    auto open = std::make_unique<Opened>();
    open->number = r.number(0);
    open->element = r.element();
    open->ended = r.flag();
    open->failure = r.failure();
    std::vector<Tensors> ready;
    restore_values(r, node_, &ready);
    open->ready.assign(ready.begin(), ready.end());
    if (r.flag()) {
      open_stream(*open);
      open->stream->restore(r);
    }
    return open;
  }

  const InterleaveNode& node_;
  StopLink stop_;
  const PassInfo inner_;

  CoreClaim claim_{node_.autotune() ? 0 : node_.threads()};
  std::mutex mutex_;  // everything below; what is busy is a thread's
  std::condition_variable_any changed_, work_;
  std::condition_variable idle_;
  std::unique_ptr<ElementStream> source_;  // null at its end
  bool reading_source_ = false;
  std::optional<PassError> source_failure_;
  std::vector<std::unique_ptr<Opened>> cycle_;
  std::deque<std::unique_ptr<Opened>> waiting_;  // for a place in it
  size_t at_ = 0;
  int64_t block_ = 0;   // elements that cycle_[at_] gave in this turn
  int64_t number_ = 0;  // of the next element of source_
  int active_ = 0;      // threads that read
  bool paused_ = false;
  bool news_ = false;  // for the reader

  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

}  // namespace

std::unique_ptr<ElementStream> parallel_interleave(const InterleaveNode& node,
                                                   const PassInfo& pass) {
  return std::make_unique<ParallelInterleaveStream>(node, pass);
}

}  // namespace berth::data
