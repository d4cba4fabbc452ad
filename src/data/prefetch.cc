// Dataset::prefetch.

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

#include "base/where.h"
#include "data/host_budget.h"
#include "data/pass_state.h"
#include "data/stop_link.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

constexpr size_t kFirstDepth = 2;  // AUTOTUNE starts here
constexpr size_t kLastDepth = 16;  // and ends here

class PrefetchNode : public Transform {
 public:
  PrefetchNode(const Dataset& parent, int64_t buffer_size, Site site)
      : Transform("prefetch", site, parent), buffer_size_(buffer_size) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  int64_t buffer_size() const { return buffer_size_; }
  StageStats& stats() const { return stats_; }
  int64_t own_ns() const override { return 0; }  // its reader's waits are not
  std::string explain() const override {
    const int64_t depth = stats_.size;
    std::string text = buffer_size_ == AUTOTUNE ? "AUTOTUNE" : "told";
    text += fmt::format(" {} deep", buffer_size_ == AUTOTUNE && depth > 0
                                        ? depth
                                        : std::max(buffer_size_, int64_t{2}));
    if (stats_.bytes > 0) {
      text +=
          fmt::format(" of {}", bytes_text(static_cast<size_t>(stats_.bytes)));
    }
    return text + stats_text(stats_) + stats_.why.load();
  }

 private:
  int64_t buffer_size_;
  mutable StageStats stats_;
};

// A ring of ready elements between the thread that makes them and the reader.
class PrefetchStream : public ElementStream {
 public:
  PrefetchStream(const PrefetchNode* node, const PassInfo& pass)
      : node_(*node),
        keep_going_(pass.keep_going),
        stop_(pass.stop),
        source_(node->parent().open(stop_.inner(pass))),
        autotune_(node->buffer_size() == AUTOTUNE),
        depth_(autotune_ ? kFirstDepth
                         : static_cast<size_t>(node->buffer_size())),
        ring_(std::min(depth_, kLastDepth)) {
    node_.stats().size = static_cast<int64_t>(depth_);
    if (!pass.restoring) start();
  }
  ~PrefetchStream() override { stop_.request_stop(); }

  bool next(Tensors* out) override {
    if (!thread_.joinable() && !ended_) start();
    out->clear();  // its blocks can be used again from here on
    std::unique_lock lock(mutex_);
    if (count_ == 0 && !ended_ && !wait(&lock)) return false;
    if (count_ == 0) return false;
    Ready& first = ring_[head_];
    head_ = (head_ + 1) % ring_.size();
    --count_;
    // Wakes seldom: once half of the ring is free.
    if (maker_waits_ && count_ <= depth_ / 2) room_.notify_one();
    if (first.failure) {
      const PassError failure = *std::exchange(first.failure, std::nullopt);
      failure.raise();
    }
    std::swap(*out, first.element);
    return true;
  }

  void save(PassWriter& w) override;
  void restore(PassReader& r) override;

 private:
  struct Ready {
    Tensors element;
    std::optional<PassError> failure;
  };

  void start() {
    thread_ = start_thread(node_, [this] { produce(); });
  }

  // The reader's: until something is ready or nothing comes; false after a
  // stop.
  bool wait(std::unique_lock<std::mutex>* lock) {
    // It waits although the ring had been full: a deeper one would have
    // carried it over the slow spell.
    if (autotune_ && was_full_) deepen();
    was_full_ = false;
    if (maker_waits_) room_.notify_one();
    reader_waits_ = true;
    const int64_t since = stage_clock_ns();
    const bool ready = wait_for_element(ready_, *lock, stop_.token(),
                                        [&] { return count_ || ended_; });
    reader_waits_ = false;
    StageStats& stats = node_.stats();
    ++stats.waits;
    stats.wait_ns += stage_clock_ns() - since;
    return ready;
  }

  void deepen() {
    const size_t depth = std::min(2 * depth_, kLastDepth);
    if (depth == depth_) {
      node_.stats().why = "; as deep as AUTOTUNE goes";
    } else if (!bytes_.try_set(depth * element_bytes_)) {
      node_.stats().why =
          "; config::set_host_memory_budget has no room for more";
    } else {
      node_.stats().why = "; deepened while the reader waited";
      depth_ = depth;
      node_.stats().size = static_cast<int64_t>(depth);
    }
  }

  // Counts the bytes that a full ring will hold.
  void measure(const Tensors& element) {
    size_t bytes = 0;
    for (const Tensor& t : element) bytes += t.impl()->size_bytes();
    if (bytes <= element_bytes_) return;
    element_bytes_ = bytes;
    bytes_.set(std::min(depth_, ring_.size()) * bytes);
    node_.stats().bytes = static_cast<int64_t>(bytes);
  }

  void produce() {
    Ready made;
    bool more = true;
    while (more && wait_for_room()) {
      std::lock_guard turn(source_mutex_);
      try {
        more = source_->next(&made.element);
      } catch (...) {
        made.failure = PassError::current();
      }
      more = put(&made, more);
      made.element.clear();
    }
  }

  // Waits until an element may be made; false after a stop.
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    if (count_ >= depth_ || held_) {
      was_full_ = was_full_ || count_ >= depth_;
      maker_waits_ = true;
      const bool room = room_.wait(
          lock, stop_.token(), [&] { return !held_ && count_ <= depth_ / 2; });
      maker_waits_ = false;
      if (!room) return false;
    }
    return !stop_.token().stop_requested();
  }

  // Puts what was made into the ring; false when nothing more is to be made.
  bool put(Ready* made, bool any) {
    std::lock_guard lock(mutex_);
    ended_ = !any || (made->failure && !keep_going_);
    if (any) {
      measure(made->element);
      ++node_.stats().elements;
      if (count_ == ring_.size()) grow(2 * ring_.size());
      std::swap(*made, ring_[(head_ + count_) % ring_.size()]);
      made->failure.reset();
      ++count_;
    }
    if (reader_waits_) ready_.notify_one();
    return !ended_;
  }

  void grow(size_t size) {
    std::vector<Ready> larger(size);
    for (size_t i = 0; i < count_; ++i) {
      larger[i] = std::move(ring_[(head_ + i) % ring_.size()]);
    }
    ring_ = std::move(larger);
    head_ = 0;
  }

  const PrefetchNode& node_;
  const bool keep_going_;
  StopLink stop_;
  std::mutex source_mutex_;                // taken before mutex_
  std::unique_ptr<ElementStream> source_;  // under source_mutex_
  const bool autotune_;

  std::mutex mutex_;  // everything below
  std::condition_variable_any ready_, room_;
  size_t depth_;
  size_t element_bytes_ = 0;  // of the largest so far
  ByteClaim bytes_;
  std::vector<Ready> ring_;
  size_t head_ = 0, count_ = 0;
  bool reader_waits_ = false, maker_waits_ = false;
  bool held_ = false;      // the source is being saved
  bool was_full_ = false;  // since the reader last waited
  bool ended_ = false;

  std::jthread thread_;  // last: joined before the rest goes
};

void PrefetchStream::save(PassWriter& w) {
  {
    std::lock_guard lock(mutex_);
    held_ = true;
  }
  std::lock_guard turn(source_mutex_);
  const Finally release([&] {
    std::lock_guard lock(mutex_);
    held_ = false;
    room_.notify_one();
  });
  w.begin(node_);
  w.put(count_);
  for (size_t i = 0; i < count_; ++i) {
    const Ready& ready = ring_[(head_ + i) % ring_.size()];
    w.put(ready.failure);
    if (!ready.failure) w.put(ready.element);
  }
  w.put(!ended_);
  if (!ended_) source_->save(w);
}

void PrefetchStream::restore(PassReader& r) {
  r.begin(node_);
  const auto count = static_cast<size_t>(r.number(0, kMostSaved));
  if (count > ring_.size()) grow(count);
  for (count_ = 0; count_ < count; ++count_) {
    Ready& ready = ring_[count_];
    ready.failure = r.failure();
    if (!ready.failure) ready.element = r.element();
  }
  ended_ = !r.flag();
  if (!ended_) source_->restore(r);
}

std::unique_ptr<ElementStream> PrefetchNode::elements(
    const PassInfo& pass) const {
  // Who only looks at one element needs none ahead.
  if (pass.peek) return parent().open(pass);
  return std::make_unique<PrefetchStream>(this, pass);
}

}  // namespace

Dataset Dataset::prefetch(int64_t buffer_size, Site site) const {
  if (buffer_size < 0 && buffer_size != AUTOTUNE) {
    refuse(call_text("prefetch", site),
           fmt::format("buffer_size is {}; expected at least 0, or "
                       "data::AUTOTUNE",
                       buffer_size));
  }
  if (buffer_size == 0) return *this;
  return make_dataset<PrefetchNode>(*this, buffer_size, site);
}

}  // namespace berth::data
