#include "device/segments.h"

#include <algorithm>
#include <utility>

#include "base/poison.h"

namespace berth {

Segments::~Segments() { release_free(); }

Chunk* Segments::new_chunk() {
  if (!unused_.empty()) {
    Chunk* c = unused_.back();
    unused_.pop_back();
    return c;
  }
  chunks_.push_back(std::make_unique<Chunk>());
  unused_.reserve(chunks_.size());
  spare_nodes_.reserve(chunks_.size());
  return chunks_.back().get();
}

void Segments::recycle(Chunk* chunk) {
  chunk->data = nullptr;
  chunk->block.freed = {};
  chunk->before = chunk->after = nullptr;
  unused_.push_back(chunk);
}

// Set nodes are kept and used again, so that a warm allocator calls no malloc.
void Segments::insert_free(Chunk* chunk) {
  chunk->free = true;
  if (spare_nodes_.empty()) {
    free_.insert(chunk);
    return;
  }
  auto node = std::move(spare_nodes_.back());
  spare_nodes_.pop_back();
  node.value() = chunk;
  free_.insert(std::move(node));
}

Chunk* Segments::take(size_t bytes, bool from_end) {
  Chunk key;
  key.bytes = bytes;
  const auto it = free_.lower_bound(&key);
  if (it == free_.end()) return nullptr;
  Chunk* chunk = *it;
  spare_nodes_.push_back(free_.extract(it));
  chunk->free = false;
  if (chunk->bytes - bytes >= kGranularity) {
    Chunk* rest = new_chunk();
    rest->data = chunk->data + bytes;
    rest->block.freed = chunk->block.freed;
    rest->bytes = chunk->bytes - bytes;
    rest->before = chunk;
    rest->after = chunk->after;
    if (rest->after) rest->after->before = rest;
    chunk->after = rest;
    chunk->bytes = bytes;
    if (from_end) {
      std::swap(chunk->bytes, rest->bytes);
      rest->data = chunk->data + chunk->bytes;
      std::swap(chunk, rest);
      chunk->free = false;
    }
    insert_free(rest);
  }
  chunk->holder.store(nullptr, std::memory_order_relaxed);
  return chunk;
}

bool Segments::grow(size_t bytes) {
  std::byte* data = source_->reserve(bytes);
  if (data == nullptr) return false;
  // Nobody has asked for any of it yet.
  if (source_->host_addressable()) poison(data, bytes);
  Chunk* chunk = new_chunk();
  chunk->data = data;
  chunk->bytes = bytes;
  insert_free(chunk);
  return true;
}

Chunk* Segments::take_whole(size_t bytes) {
  Chunk key;
  key.bytes = bytes;
  for (auto it = free_.lower_bound(&key); it != free_.end(); ++it) {
    Chunk* chunk = *it;
    if (chunk->bytes > bytes) break;
    if (chunk->before || chunk->after) continue;
    spare_nodes_.push_back(free_.extract(chunk));
    chunk->free = false;
    chunk->holder.store(nullptr, std::memory_order_relaxed);
    return chunk;
  }
  return nullptr;
}

Chunk* Segments::take_alone(size_t bytes) {
  std::byte* data = source_->reserve(bytes);
  if (data == nullptr) return nullptr;
  Chunk* chunk = new_chunk();
  chunk->data = data;
  chunk->bytes = bytes;
  chunk->free = false;
  chunk->holder.store(nullptr, std::memory_order_relaxed);
  return chunk;
}

void Segments::give_back_alone(Chunk* chunk) {
  source_->release(chunk->data, chunk->bytes);
  chunk->free = true;
  recycle(chunk);
}

void Segments::give_back(Chunk* chunk) {
  auto absorb = [&](Chunk* left, Chunk* right) {
    left->bytes += right->bytes;
    // Both were freed on the one compute stream of the device, or never.
    if (right->block.freed.sequence > left->block.freed.sequence) {
      left->block.freed = right->block.freed;
    }
    left->after = right->after;
    if (left->after) left->after->before = left;
    recycle(right);
  };
  if (chunk->after && chunk->after->free) {
    spare_nodes_.push_back(free_.extract(chunk->after));
    absorb(chunk, chunk->after);
  }
  if (chunk->before && chunk->before->free) {
    Chunk* left = chunk->before;
    spare_nodes_.push_back(free_.extract(left));
    absorb(left, chunk);
    chunk = left;
  }
  insert_free(chunk);
}

size_t Segments::release_free(uint64_t freed_until) {
  size_t released = 0;
  for (auto it = free_.begin(); it != free_.end();) {
    Chunk* chunk = *it;
    if (chunk->before || chunk->after ||
        chunk->block.freed.sequence > freed_until) {
      ++it;
      continue;
    }
    it = free_.erase(it);
    // The next mapping of these addresses must not find our poison.
    if (source_->host_addressable()) unpoison(chunk->data, chunk->bytes);
    source_->release(chunk->data, chunk->bytes);
    released += chunk->bytes;
    recycle(chunk);
  }
  return released;
}

size_t Segments::free_bytes() const {
  size_t n = 0;
  for (const Chunk* c : free_) n += c->bytes;
  return n;
}

size_t Segments::largest_free_bytes() const {
  return free_.empty() ? 0 : (*free_.rbegin())->bytes;
}

std::vector<Holder> Segments::held() const {
  std::vector<Holder> held;
  for (const auto& c : chunks_) {
    if (c->data == nullptr || c->free) continue;
    held.push_back({c->holder.load(std::memory_order_relaxed), c->bytes});
  }
  return held;
}

std::vector<const Chunk*> Segments::firsts() const {
  std::vector<const Chunk*> firsts;
  for (const auto& c : chunks_) {
    if (c->data != nullptr && c->before == nullptr) firsts.push_back(c.get());
  }
  std::sort(firsts.begin(), firsts.end(),
            [](const Chunk* a, const Chunk* b) { return a->data < b->data; });
  return firsts;
}

}  // namespace berth
