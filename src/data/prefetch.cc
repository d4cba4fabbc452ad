#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

#include "data/stop_link.h"

namespace berth::data {

namespace {

constexpr size_t kFirstDepth = 2;  // AUTOTUNE starts here
constexpr size_t kLastDepth = 16;  // and ends here

class PrefetchNode : public Transform {
 public:
  PrefetchNode(const Dataset& parent, int64_t buffer_size, Site site)
      : Transform("prefetch", site, parent), buffer_size_(buffer_size) {}
  std::unique_ptr<ElementStream> elements(const Pass& pass) const override;
  int64_t buffer_size() const { return buffer_size_; }

 private:
  int64_t buffer_size_;
};

// A ring of ready elements between the thread that makes them and the reader.
class PrefetchStream : public ElementStream {
 public:
  PrefetchStream(const PrefetchNode* node, const Pass& pass)
      : stop_(pass.stop),
        source_(node->parent().open(stop_.inner(pass))),
        autotune_(node->buffer_size() == AUTOTUNE),
        depth_(autotune_ ? kFirstDepth
                         : static_cast<size_t>(node->buffer_size())),
        ring_(std::min(depth_, kLastDepth)) {
    thread_ = start_thread(*node, [this] { produce(); });
  }
  ~PrefetchStream() override { stop_.request_stop(); }

  bool next(Tensors* out) override {
    out->clear();  // its blocks can be used again from here on
    std::unique_lock lock(mutex_);
    if (count_ == 0 && !ended_) {
      // The reader waits although the ring had been full: a deeper one would
      // have carried it over the slow spell.
      if (autotune_ && was_full_) depth_ = std::min(2 * depth_, kLastDepth);
      was_full_ = false;
      if (maker_waits_) room_.notify_one();
      reader_waits_ = true;
      const bool ready =
          ready_.wait(lock, stop_.token(), [&] { return count_ || ended_; });
      reader_waits_ = false;
      if (!ready) return false;
    }
    if (count_ == 0) {
      if (failure_) failure_->raise();
      return false;
    }
    std::swap(*out, ring_[head_]);
    head_ = (head_ + 1) % ring_.size();
    --count_;
    // Wakes seldom: once half of the ring is free.
    if (maker_waits_ && count_ <= depth_ / 2) room_.notify_one();
    return true;
  }

 private:
  void produce() {
    Tensors element;
    std::optional<Failure> failure;
    try {
      while (source_->next(&element) && push(&element)) element.clear();
    } catch (...) {
      failure = Failure::current();
    }
    std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    ended_ = true;
    ready_.notify_one();
  }

  // Waits for room; false after a stop.
  bool push(Tensors* element) {
    if (stop_.token().stop_requested()) return false;
    std::unique_lock lock(mutex_);
    if (count_ >= depth_) {
      was_full_ = true;
      maker_waits_ = true;
      const bool room =
          room_.wait(lock, stop_.token(), [&] { return count_ <= depth_ / 2; });
      maker_waits_ = false;
      if (!room) return false;
    }
    if (count_ == ring_.size()) grow();
    std::swap(*element, ring_[(head_ + count_) % ring_.size()]);
    ++count_;
    if (reader_waits_) ready_.notify_one();
    return true;
  }

  void grow() {
    std::vector<Tensors> larger(std::min(2 * ring_.size(), depth_));
    for (size_t i = 0; i < count_; ++i) {
      larger[i] = std::move(ring_[(head_ + i) % ring_.size()]);
    }
    ring_ = std::move(larger);
    head_ = 0;
  }

  StopLink stop_;
  std::unique_ptr<ElementStream> source_;  // the thread's
  const bool autotune_;

  std::mutex mutex_;  // everything below
  std::condition_variable_any ready_, room_;
  size_t depth_;
  std::vector<Tensors> ring_;
  size_t head_ = 0, count_ = 0;
  bool reader_waits_ = false, maker_waits_ = false;
  bool was_full_ = false;  // since the reader last waited
  bool ended_ = false;
  std::optional<Failure> failure_;

  std::jthread thread_;  // last: joined before the rest goes
};

std::unique_ptr<ElementStream> PrefetchNode::elements(const Pass& pass) const {
  // Who only looks at one element needs none ahead.
  if (pass.peek) return parent().open(pass);
  return std::make_unique<PrefetchStream>(this, pass);
}

}  // namespace

Dataset Dataset::prefetch(int64_t buffer_size, Site site) const {
  if (buffer_size < 0 && buffer_size != AUTOTUNE) {
    refuse(fmt::format("prefetch ({}:{})", site.file, site.line),
           fmt::format("buffer_size is {}; expected at least 0, or "
                       "data::AUTOTUNE",
                       buffer_size));
  }
  if (buffer_size == 0) return *this;
  return make_dataset<PrefetchNode>(*this, buffer_size, site);
}

}  // namespace berth::data
