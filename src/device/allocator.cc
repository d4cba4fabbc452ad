#include "device/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "base/bytes_text.h"
#include "base/poison.h"
#include "base/timeline.h"
#include "berth/errors.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "device/exact_memory.h"
#include "device/holders.h"
#include "device/idle_memory.h"
#include "device/machine_memory.h"
#include "device/memory_snapshot.h"
#include "device/size_classes.h"
#include "device/slabs.h"

namespace berth {

namespace {

// More than any machine has; rounding it up does not overflow.
constexpr size_t kMostBytes = size_t{1} << 62;

// Blocks that one thread keeps per class: about 256 KiB, at least 4.
int32_t cache_limit(int size_class) {
  const size_t n = (256u << 10) / size_class_bytes(size_class);
  return static_cast<int32_t>(std::clamp<size_t>(n, 4, 256));
}

// Small blocks are counted by the threads that take and free them; what one has
// not told the allocator yet stands here. Only its thread writes it.
struct ThreadCache {
  Allocator* allocator = nullptr;
  FreeList lists[kNumSizeClasses];
  std::atomic<ptrdiff_t> untold{0};
};
constexpr ptrdiff_t kMostUntold = 64 << 10;

constinit std::atomic<bool> g_tracks_peaks{false};
constinit std::atomic<std::vector<BlockRef> (*)(Device&)> g_idle_blocks{};
// The thread gives back what it kept: its events are gone.
constinit thread_local bool t_ended = false;

void finish_all_of(Device& device) {
  finish(device.copy_stream().record());
  finish(device.compute_stream().record());
}

// `wait`: blocks until they are. `and_freed`: so must all be that the compute
// stream had when the block was freed.
bool uses_done(Block* block, bool wait, bool and_freed) {
  if (and_freed && block->freed.stream) {
    if (wait) finish(block->freed);
    if (!wait && !block->freed.stream->done(block->freed)) return false;
  }
  for (int i = 0; i < block->num_uses; ++i) {
    const Event& e = block->uses[i];
    if (wait) {
      finish(e);
    } else if (!e.stream->done(e)) {
      return false;
    }
  }
  block->num_uses = 0;
  return true;
}

}  // namespace

class Allocator::Impl {
 public:
  Impl(Device* device, Allocator* self, std::unique_ptr<MemorySource> source,
       size_t limit, const MemorySpace* space)
      : device_(device),
        self_(self),
        space_(space),
        source_(std::move(source)),
        host_(source_->host_addressable()),
        several_streams_(device && !device->memory().host_addressable),
        exact_(!host_ && device && has_exact_memory(*device)),
        limit_(limit),
        segments_(source_.get()),
        slab_segments_(source_.get()) {
    if (must_be_unused()) unused_until_ = 0;
  }

  // Null when the memory is full. Hold mutex_.
  Block* try_small(int c, ThreadCache* cache);
  Block* try_large(size_t bytes, bool give_back = true);
  // The size of a segment to share: not too large a part of a small limit.
  size_t segment_bytes() const {
    return std::clamp(part_of_limit(8), 2 * kSmallLimit,
                      Segments::kSegmentBytes);
  }
  size_t part_of_limit(size_t parts) const {
    const size_t limit = limit_.load(kRelaxed);
    return limit
               ? limit / parts / Segments::kGranularity * Segments::kGranularity
               : kMostBytes;
  }
  Block* try_exact(size_t bytes);
  Block* try_lasting(size_t bytes);
  Block* block_of(Chunk& chunk);
  void give_back(Chunk* chunk);
  // Calls `attempt` under the lock; when it fails, again once everything that
  // the device has been given to do is done and has dropped its memory.
  template <class Fn>
  Block* insist(size_t bytes, Fn&& attempt);
  // Moves blocks of a class from the thread to the shared list.
  void flush(FreeList* list, int c, int32_t keep);
  // Takes back freed blocks whose uses have ended. Call it without mutex_:
  // asking a stream may run work, which allocates and frees.
  void release_pending(bool wait = false);
  // True when a driver may release memory while queued work uses it.
  bool must_be_unused() const {
    return !host_ && !exact_ && !device_->simulated();
  }
  // Then waits for work that uses freed memory.
  void await_freed();
  // Gives the source the slabs of which no block is in use, except those that
  // other threads keep: sizes that were much used leave them.
  void release_idle();  // what waits for its next use
  void release_slabs();
  // Gives the source free segments that no queued work uses.
  void release_free() {
    reserved_.fetch_sub(segments_.release_free(unused_until_), kRelaxed);
  }
  bool much_is_free(size_t bytes) const {
    return segments_.free_bytes() > 2 * (bytes + Segments::kSegmentBytes);
  }
  bool grow(size_t bytes) { return grow(segments_, bytes); }
  bool grow(Segments& segments, size_t bytes);
  // A freed block of a device with a stream of its own may still be in use by
  // work that the stream has before whatever gets the block next.
  bool poisons() const {
    return kPoisons && host_ && (device_ == nullptr || device_->runs_inline());
  }
  [[noreturn]] void out_of_memory(size_t bytes);
  // Every block; and what of them is alive when most is.
  MemorySnapshot snapshot();
  void note_peak();
  // Makes `b` somebody's.
  Block* hand_out(Block* b, size_t bytes);
  void count(ptrdiff_t bytes) {
    const ptrdiff_t now = current_.fetch_add(bytes, kRelaxed) + bytes;
    ptrdiff_t peak = peak_.load(kRelaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, kRelaxed)) {
    }
    if (timeline::is_on()) [[unlikely]]
      record(now);
  }

  // Adds the bytes in use to the timeline.
  void record(ptrdiff_t now) const {
    if (device_ == nullptr || t_ended) return;
    const double at = host_clock_us();
    timeline::add(
        {at, at,
         timeline::type_of(device_->str().c_str(), "bytes in use", "memory"), 0,
         now});
  }

  // Counts a small block that `cache`'s thread took, or (negative) freed.
  void count_small(ThreadCache* cache, ptrdiff_t bytes) {
    if (cache == nullptr) return count(bytes);
    const ptrdiff_t untold = cache->untold.load(kRelaxed) + bytes;
    const bool tell = untold > kMostUntold || untold < -kMostUntold;
    cache->untold.store(tell ? 0 : untold, kRelaxed);
    if (tell) [[unlikely]]
      count(untold);
  }
  // Tells all that threads have not: then current_ is what is handed out.
  MemoryInfo info();

  static constexpr auto kRelaxed = std::memory_order_relaxed;
  Device* device_;
  Allocator* self_;
  const MemorySpace* space_;  // null: the device's
  std::unique_ptr<MemorySource> source_;
  const bool host_;
  const bool several_streams_;  // compute and copies: order is to be kept
  const bool exact_;            // device/exact_memory.h
  std::atomic<size_t> limit_;
  // Below 0 while a thread has not told of blocks that another one freed.
  std::atomic<ptrdiff_t> current_{0}, peak_{0};
  std::atomic<size_t> reserved_{0};
  std::atomic<uint64_t> source_calls_{0};

  std::mutex mutex_;  // everything below
  // Slabs stay while there is memory: among large blocks that come and go they
  // would leave holes.
  Segments segments_, slab_segments_;
  FreeList shared_[kNumSizeClasses];
  FreeList pending_;  // freed, but other streams are not done with them
  std::vector<Slab> slabs_;
  size_t slab_bytes_ = 0;
  std::vector<const ThreadCache*> caches_;  // of threads that are alive
  // What was freed up to this event of the compute stream is not in use.
  uint64_t unused_until_ = UINT64_MAX;
  bool source_is_empty_ = false;  // what the last failure was about
  MemorySnapshot peak_snapshot_;
};

// The caches of one thread, flushed when it ends. The plain pointer is what the
// fast path reads; it has no guard and no destructor.
struct ThreadCaches {
  ~ThreadCaches();
  // Lets the allocator see what the thread has not told it, and no longer.
  static void add(ThreadCache* cache);
  static void remove(ThreadCache* cache);
  static void count(Allocator& allocator, ptrdiff_t bytes);
  static Block* allocate_lasting(Allocator& allocator, size_t bytes);
  static MemorySnapshot snapshot(Allocator& allocator);
  static std::vector<config::MemoryHolder> holders_at_peak(Allocator& a);

  ThreadCache* at[kMaxDevices] = {};
  std::vector<std::unique_ptr<ThreadCache>> owned;
};

namespace {
constinit thread_local ThreadCaches* t_caches
    __attribute__((tls_model("initial-exec"))) = nullptr;

ThreadCache* make_cache(Allocator* allocator, int slot) {
  if (t_ended) return nullptr;
  if (t_caches == nullptr) {
    static thread_local std::unique_ptr<ThreadCaches> caches;
    caches = std::make_unique<ThreadCaches>();
    t_caches = caches.get();
  }
  t_caches->owned.push_back(std::make_unique<ThreadCache>());
  ThreadCache* cache = t_caches->owned.back().get();
  cache->allocator = allocator;
  ThreadCaches::add(cache);
  return t_caches->at[slot] = cache;
}

ThreadCache* cache_of(Allocator* allocator, Device* device) {
  const int slot = device->slot();
  if (slot < 0) return nullptr;  // a device that no manager lists
  ThreadCache* c = t_caches ? t_caches->at[slot] : nullptr;
  return c && c->allocator == allocator ? c : make_cache(allocator, slot);
}
}  // namespace

ThreadCaches::~ThreadCaches() {
  t_ended = true;
  t_caches = nullptr;
  for (auto& cache : owned) {
    for (int c = 0; c < kNumSizeClasses; ++c) {
      cache->allocator->impl_->flush(&cache->lists[c], c, 0);
    }
    remove(cache.get());
  }
}

void ThreadCaches::add(ThreadCache* cache) {
  Allocator::Impl& a = *cache->allocator->impl_;
  std::lock_guard lock(a.mutex_);
  a.caches_.push_back(cache);
}

void ThreadCaches::remove(ThreadCache* cache) {
  Allocator::Impl& a = *cache->allocator->impl_;
  std::lock_guard lock(a.mutex_);
  std::erase(a.caches_, cache);
  a.count(cache->untold.exchange(0));
}

MemoryInfo Allocator::Impl::info() {
  std::lock_guard lock(mutex_);
  ptrdiff_t now = current_.load(kRelaxed);
  for (const ThreadCache* c : caches_) now += c->untold.load(kRelaxed);
  now = std::max<ptrdiff_t>(now, 0);  // other threads go on while we add
  const ptrdiff_t peak = std::max(now, peak_.load(kRelaxed));
  return {static_cast<size_t>(now), static_cast<size_t>(peak), reserved_,
          limit_, source_calls_};
}

bool Allocator::Impl::grow(Segments& segments, size_t bytes) {
  const size_t limit = limit_.load(kRelaxed);
  if (limit && reserved_.load(kRelaxed) + bytes > limit) {
    source_is_empty_ = false;
    return false;
  }
  source_calls_.fetch_add(1, kRelaxed);
  source_is_empty_ = !segments.grow(bytes);
  if (source_is_empty_) return false;
  reserved_.fetch_add(bytes, kRelaxed);
  return true;
}

void Allocator::Impl::out_of_memory(size_t bytes) {
  std::vector<Holder> held;
  size_t largest = 0;
  bool empty = false;
  {
    std::lock_guard lock(mutex_);
    held = segments_.held();
    for (const Holder& h : slab_segments_.held()) held.push_back(h);
    largest = segments_.largest_free_bytes();
    empty = source_is_empty_;
  }
  const MemoryInfo now = info();
  const size_t limit = now.limit_bytes;
  const auto text = [](size_t n) {
    return bytes_text(static_cast<int64_t>(std::min(n, kMostBytes)));
  };
  const char* remedy = empty ? "end what else uses its memory"
                       : has_default_limit(*self_, limit)
                           ? "raise the limit, which is what the machine had "
                             "left less a margin (BERTH_CPU_MEMORY=12GiB, or "
                             ".memory_limit_mb of "
                             "config::set_logical_device_configuration)"
                           : "raise the limit";
  throw errors::ResourceExhausted(fmt::format(
      "{} is out of memory: {} asked, {} in use (at most {} so far), {} "
      "reserved{}, the largest free block has {}; use a smaller batch, run the "
      "step as a berth::function (its plan reuses memory), or {}{}",
      device_->short_name(), text(bytes), text(now.current_bytes),
      text(now.peak_bytes), text(now.reserved_bytes),
      limit ? ", limit " + text(limit) : "", text(largest), remedy,
      holders_text(held) + snapshot_note(snapshot(), *device_, bytes)));
}

MemorySnapshot Allocator::Impl::snapshot() {
  MemorySnapshot all;
  all.info = info();
  std::lock_guard lock(mutex_);
  add_pieces(segments_, slabs_, &all);
  add_pieces(slab_segments_, slabs_, &all);
  return all;
}

// Called before memory is freed: what is alive then was at the peak, if no
// peak was higher. One that is hardly higher is not worth another look.
void Allocator::Impl::note_peak() {
  const ptrdiff_t now = current_.load(kRelaxed);
  if (now < peak_.load(kRelaxed)) return;
  {
    std::lock_guard lock(mutex_);
    const auto noted = static_cast<double>(peak_snapshot_.info.current_bytes);
    if (static_cast<double>(now) < 1.01 * noted) return;
  }
  MemorySnapshot peak = snapshot();
  std::lock_guard lock(mutex_);
  peak_snapshot_ = std::move(peak);
}

void Allocator::Impl::release_pending(bool wait) {
  FreeList list, still, ended;
  {
    std::lock_guard lock(mutex_);
    std::swap(list, pending_);
  }
  if (!list.head) return;
  while (Block* b = list.pop()) {
    (uses_done(b, wait, exact_) ? ended : still).push(b);
  }
  std::lock_guard lock(mutex_);
  while (Block* b = still.pop()) pending_.push(b);
  while (Block* b = ended.pop()) {
    if (poisons()) poison(b->data, b->bytes);
    if (b->size_class == kLargeClass) {
      give_back(reinterpret_cast<Chunk*>(b));
    } else {
      shared_[b->size_class].push(b);
    }
  }
}

void Allocator::Impl::await_freed() {
  if (!must_be_unused()) return;
  const Event now = device_->compute_stream().record();
  finish(now);
  std::lock_guard lock(mutex_);
  unused_until_ = std::max(unused_until_, now.sequence);
}

void Allocator::Impl::give_back(Chunk* chunk) {
  if (!exact_) return segments_.give_back(chunk);
  reserved_.fetch_sub(chunk->bytes, kRelaxed);
  segments_.give_back_alone(chunk);
}

template <class Fn>
Block* Allocator::Impl::insist(size_t bytes, Fn&& attempt) {
  for (const bool last : {false, true}) {
    release_pending(last);
    {
      std::lock_guard lock(mutex_);
      if (Block* b = attempt()) return b;
    }
    if (last) break;
    // Work that waits in a queue, here or on a device that reads from here,
    // holds memory that its caller has let go.
    finish_all_of(*device_);
    await_freed();
    if (!DeviceManager::initialised()) continue;
    for (Device* d : DeviceManager::get().devices()) finish_all_of(*d);
  }
  release_idle();
  release_slabs();
  {
    std::lock_guard lock(mutex_);
    if (Block* b = attempt()) return b;
  }
  out_of_memory(bytes);
}

void Allocator::Impl::release_idle() {
  const auto take = g_idle_blocks.load();
  if (take == nullptr || device_ == nullptr) return;
  {
    const std::vector<BlockRef> idle = take(*device_);
    if (idle.empty()) return;
    finish_all_of(*device_);
  }
  release_pending(true);
  await_freed();
}

void Allocator::Impl::release_slabs() {
  if (ThreadCache* mine = device_ ? cache_of(self_, device_) : nullptr) {
    for (int c = 0; c < kNumSizeClasses; ++c) flush(&mine->lists[c], c, 0);
  }
  std::lock_guard lock(mutex_);
  for (const Slab& slab : take_free_slabs(slabs_, shared_)) {
    Chunk* chunk = slab.chunk;
    if (several_streams_) {
      chunk->block.freed = device_->compute_stream().record();
    }
    slab_bytes_ -= chunk->bytes;
    slab.from->give_back(chunk);
  }
  reserved_.fetch_sub(slab_segments_.release_free(unused_until_), kRelaxed);
}

Block* Allocator::Impl::try_small(int c, ThreadCache* cache) {
  FreeList& shared = shared_[c];
  if (!shared.head) {
    // Carve a slab into blocks of this class.
    const size_t bytes = size_class_bytes(c);
    const size_t n = std::clamp<size_t>((64u << 10) / bytes, 1, 256);
    const size_t slab = (n * bytes + Segments::kGranularity - 1) /
                        Segments::kGranularity * Segments::kGranularity;
    Segments* from = &slab_segments_;
    Chunk* chunk = from->take(slab);
    if (!chunk) {
      const size_t more = std::clamp(
          slab_bytes_,
          std::max(slab, std::min(2 * kSmallLimit, part_of_limit(64))),
          Segments::kSegmentBytes);
      bool grown = grow(*from, more) || grow(*from, slab);
      if (!grown) {  // rather a free segment than a part of one that is used
        release_free();
        grown = grow(*from, slab);
      }
      if (grown) chunk = from->take(slab);
    }
    if (!chunk) chunk = (from = &segments_)->take(slab);
    if (!chunk) return nullptr;
    slab_bytes_ += slab;
    chunk->holder.store("blocks of 1 MiB and less", kRelaxed);
    slabs_.push_back({from, chunk, std::make_unique<HeldBlock[]>(n), n});
    for (size_t i = n; i-- > 0;) {
      Block& b = slabs_.back().blocks[i].block;
      b.size_class = c;
      b.data = chunk->data + i * bytes;
      b.bytes = bytes;
      b.allocator = self_;
      b.device = device_;
      b.freed = chunk->block.freed;
      shared.push(&b);
    }
  }
  if (cache) {
    FreeList& mine = cache->lists[c];
    for (int32_t i = cache_limit(c) / 2; i > 0 && shared.count > 1; --i) {
      mine.push(shared.pop());
    }
  }
  return shared.pop();
}

// `give_back`: segments that nobody uses may go, to be split otherwise.
Block* Allocator::Impl::try_large(size_t bytes, bool give_back) {
  bytes = (bytes + Segments::kGranularity - 1) / Segments::kGranularity *
          Segments::kGranularity;
  Chunk* chunk = segments_.take(bytes);
  if (!chunk) {
    const size_t want = std::max(bytes, segment_bytes());
    bool grown = grow(want) || (want > bytes && grow(bytes));
    if (!grown && give_back) {
      release_free();
      grown = grow(bytes);
    }
    if (grown) chunk = segments_.take(bytes);
  }
  return chunk ? block_of(*chunk) : nullptr;
}

Block* Allocator::Impl::block_of(Chunk& chunk) {
  Block& b = chunk.block;
  b.size_class = kLargeClass;
  b.data = chunk.data;
  b.bytes = chunk.bytes;
  b.allocator = self_;
  b.device = device_;
  return &b;
}

Block* Allocator::Impl::try_lasting(size_t bytes) {
  bytes = (bytes + Segments::kGranularity - 1) / Segments::kGranularity *
          Segments::kGranularity;
  Chunk* chunk = segments_.take_whole(bytes);
  if (!chunk) {
    // What other sizes left behind goes before it is more than a little.
    for (const bool release : {much_is_free(bytes), true}) {
      if (release) release_free();
      if (!grow(bytes)) continue;
      chunk = segments_.take_whole(bytes);
      break;
    }
  }
  if (!chunk) chunk = segments_.take(bytes, true);
  return chunk ? block_of(*chunk) : try_large(bytes);
}

Block* Allocator::Impl::try_exact(size_t bytes) {
  // Simulated memory is pages.
  const size_t unit = device_->simulated() ? Segments::kGranularity : 1;
  bytes = (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
  const size_t limit = limit_.load(kRelaxed);
  source_is_empty_ = false;
  if (limit && reserved_.load(kRelaxed) + bytes > limit) return nullptr;
  source_calls_.fetch_add(1, kRelaxed);
  Chunk* chunk = segments_.take_alone(bytes);
  source_is_empty_ = chunk == nullptr;
  if (!chunk) return nullptr;
  reserved_.fetch_add(bytes, kRelaxed);
  return block_of(*chunk);
}

void Allocator::Impl::flush(FreeList* list, int c, int32_t keep) {
  std::lock_guard lock(mutex_);
  while (list->count > keep) shared_[c].push(list->pop());
}

Allocator::Allocator(Device* device, std::unique_ptr<MemorySource> source,
                     size_t limit_bytes, const MemorySpace* space)
    : impl_(std::make_unique<Impl>(device, this, std::move(source), limit_bytes,
                                   space)) {}

Allocator::~Allocator() {
  for (int d = 0; t_caches && d < kMaxDevices; ++d) {
    ThreadCache* c = t_caches->at[d];
    if (c == nullptr || c->allocator != this) continue;
    std::fill(std::begin(c->lists), std::end(c->lists), FreeList{});
    c->untold = 0;
  }
  for (const Slab& slab : impl_->slabs_) slab.from->give_back(slab.chunk);
  while (impl_->exact_ && impl_->pending_.head) {
    impl_->give_back(reinterpret_cast<Chunk*>(impl_->pending_.pop()));
  }
}

Block* Allocator::allocate(size_t bytes) {
  if (bytes > kMostBytes) impl_->out_of_memory(bytes);
  Block* b;
  if (impl_->exact_) [[unlikely]] {
    b = impl_->insist(bytes, [&] { return impl_->try_exact(bytes); });
  } else if (bytes <= kSmallLimit) [[likely]] {
    const int c = size_class_of(bytes);
    ThreadCache* cache = cache_of(this, impl_->device_);
    b = cache ? cache->lists[c].pop() : nullptr;
    if (b == nullptr) [[unlikely]] {
      b = impl_->insist(bytes, [&] { return impl_->try_small(c, cache); });
    }
    impl_->count_small(cache, static_cast<ptrdiff_t>(b->bytes));
  } else {
    b = impl_->insist(bytes, [&] { return impl_->try_large(bytes); });
  }
  return impl_->hand_out(b, bytes);
}

Block* Allocator::try_allocate(size_t bytes) {
  if (bytes > kMostBytes) return nullptr;
  impl_->release_pending();
  Block* b;
  {
    std::lock_guard lock(impl_->mutex_);
    b = impl_->exact_ ? impl_->try_exact(bytes)
                      : impl_->try_large(std::max<size_t>(bytes, 1), false);
  }
  return b == nullptr ? nullptr : impl_->hand_out(b, bytes);
}

Block* Allocator::Impl::hand_out(Block* b, size_t bytes) {
  if (host_) unpoison(b->data, bytes);
  b->references.store(1, std::memory_order_relaxed);
  b->ready = {};
  reinterpret_cast<HeldBlock*>(b)->holder.store(nullptr, kRelaxed);
  if (b->size_class == kLargeClass) count(static_cast<ptrdiff_t>(b->bytes));
  return b;
}

void Allocator::deallocate(Block* block) noexcept {
  if (g_tracks_peaks.load(std::memory_order_relaxed)) [[unlikely]]
    impl_->note_peak();
  block->references.store(0, std::memory_order_relaxed);
  if (impl_->several_streams_) {
    block->freed = impl_->device_->compute_stream().record();
  }
  ThreadCache* cache = nullptr;
  if (block->size_class == kLargeClass) {
    impl_->count(-static_cast<ptrdiff_t>(block->bytes));
  } else {
    cache = cache_of(this, impl_->device_);
    impl_->count_small(cache, -static_cast<ptrdiff_t>(block->bytes));
  }
  // What the driver is to free must not be in use.
  if (block->num_uses > 0 || impl_->exact_) {
    std::lock_guard lock(impl_->mutex_);
    impl_->pending_.push(block);
    return;
  }
  if (impl_->poisons()) poison(block->data, block->bytes);
  if (block->size_class == kLargeClass) {
    std::lock_guard lock(impl_->mutex_);
    impl_->segments_.give_back(reinterpret_cast<Chunk*>(block));
    return;
  }
  const int c = block->size_class;
  FreeList one;
  FreeList& list = cache ? cache->lists[c] : one;
  list.push(block);
  const int32_t limit = cache ? cache_limit(c) : 0;
  if (list.count > limit) impl_->flush(&list, c, limit / 2);
}

void Allocator::empty_cache() {
  impl_->release_pending();
  impl_->await_freed();
  impl_->release_slabs();
  std::lock_guard lock(impl_->mutex_);
  impl_->release_free();
}

void Allocator::reset_peak() {
  {
    std::lock_guard lock(impl_->mutex_);
    impl_->peak_snapshot_ = {};
  }
  impl_->peak_ = static_cast<ptrdiff_t>(impl_->info().current_bytes);
}

void ThreadCaches::count(Allocator& allocator, ptrdiff_t bytes) {
  allocator.impl_->count(bytes);
}

void count_idle(Allocator& allocator, const Block& block, bool idle) {
  const auto bytes = static_cast<ptrdiff_t>(block.bytes);
  reinterpret_cast<HeldBlock*>(const_cast<Block*>(&block))->idle = idle;
  ThreadCaches::count(allocator, idle ? -bytes : bytes);
}

void set_idle_blocks(std::vector<BlockRef> (*take)(Device&)) {
  g_idle_blocks = take;
}

MemorySnapshot memory_snapshot(Allocator& allocator) {
  return ThreadCaches::snapshot(allocator);
}
MemorySnapshot ThreadCaches::snapshot(Allocator& allocator) {
  return allocator.impl_->snapshot();
}

void track_memory_peaks(bool on) { g_tracks_peaks = on; }

std::vector<config::MemoryHolder> holders_at_peak(Allocator& allocator) {
  return ThreadCaches::holders_at_peak(allocator);
}
std::vector<config::MemoryHolder> ThreadCaches::holders_at_peak(
    Allocator& allocator) {
  allocator.impl_->note_peak();
  std::lock_guard lock(allocator.impl_->mutex_);
  return holders_of(allocator.impl_->peak_snapshot_);
}

Block* allocate_lasting(Allocator& allocator, size_t bytes) {
  return ThreadCaches::allocate_lasting(allocator, bytes);
}

Block* ThreadCaches::allocate_lasting(Allocator& allocator, size_t bytes) {
  Allocator::Impl& a = *allocator.impl_;
  if (a.exact_ || bytes <= Allocator::kSmallLimit || bytes > kMostBytes) {
    return allocator.allocate(bytes);
  }
  const auto much = [&] {
    std::lock_guard lock(a.mutex_);
    return a.much_is_free(bytes);
  };
  if (a.must_be_unused() && much()) a.await_freed();
  return a.hand_out(a.insist(bytes, [&] { return a.try_lasting(bytes); }),
                    bytes);
}

MemoryInfo Allocator::info() const { return impl_->info(); }

const MemorySpace& Allocator::space() const {
  return impl_->space_ ? *impl_->space_ : impl_->device_->memory();
}

void Allocator::set_limit_bytes(size_t bytes) { impl_->limit_ = bytes; }

void add_use(Block* block, const Event& event) {
  if (event.stream == nullptr) return;
  static std::mutex mutex;
  while (true) {
    Event oldest;
    {
      std::lock_guard lock(mutex);
      for (int i = 0; i < block->num_uses; ++i) {
        Event& use = block->uses[i];
        if (use.stream != event.stream) continue;
        use.sequence = std::max(use.sequence, event.sequence);
        return;
      }
      if (block->num_uses < Block::kMaxUses) {
        block->uses[block->num_uses++] = event;
        return;
      }
      oldest = block->uses[0];
    }
    // More streams than slots: wait for the oldest. Rare, and only a delay.
    finish(oldest);
    std::lock_guard lock(mutex);
    Event& first = block->uses[0];
    if (block->num_uses > 0 && first.stream == oldest.stream &&
        first.sequence == oldest.sequence) {
      first = block->uses[--block->num_uses];
    }
  }
}

void synchronize(const Event& event) {
  if (event.stream == nullptr) return;
  if (!timeline::is_on() || event.stream->runs_inline()) [[likely]]
    return event.stream->synchronize(event);
  const std::string name = "wait for " + event.stream->device().str();
  const timeline::Span span("host", name, "wait");
  event.stream->synchronize(event);
}

void finish(const Event& event) noexcept {
  try {
    synchronize(event);
  } catch (...) {
    // Readers of the results get the error; here only the end counts.
  }
}

const MemorySpace& space_of(const Block& block) {
  return block.allocator ? block.allocator->space() : block.device->memory();
}

void release_block(Block* block) noexcept {
  if (block->allocator) {
    block->allocator->deallocate(block);
  } else if (block->deleter) {
    block->deleter(block);
  }
}

}  // namespace berth
