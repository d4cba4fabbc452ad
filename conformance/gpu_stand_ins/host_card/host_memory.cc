#include "conformance/gpu_stand_ins/host_card/host_memory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "berth/errors.h"

namespace berth::gpu {

namespace {

// Function of AddressSanitizer, where the process has it.
using MarkBytes = void (*)(const volatile void* p, size_t bytes);
const auto kPoison = reinterpret_cast<MarkBytes>(
    dlsym(RTLD_DEFAULT, "__asan_poison_memory_region"));
const auto kUnpoison = reinterpret_cast<MarkBytes>(
    dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region"));

constexpr uintptr_t kGranule = 8;  // bytes that it marks together

class HostSource final : public MemorySource {
 public:
  explicit HostSource(HostMemory& memory) : memory_(memory) {}
  std::byte* reserve(size_t bytes) override { return memory_.reserve(bytes); }
  void release(std::byte* data, size_t) override { memory_.release(data); }
  bool host_addressable() const override { return false; }

 private:
  HostMemory& memory_;
};

}  // namespace

std::byte* HostMemory::reserve(size_t bytes) {
  constexpr size_t kPage = 4096;
  bytes = (bytes + kPage - 1) / kPage * kPage;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes));
  if (data == nullptr) return nullptr;
  std::memset(data, 0xff, bytes);  // NaN, or -1
  if (kPoison != nullptr) kPoison(data, bytes);
  std::lock_guard lock(mutex_);
  reserved_.emplace(data, bytes);
  return data;
}

void HostMemory::release(std::byte* data) {
  size_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    const auto it = reserved_.find(data);
    bytes = it->second;
    reserved_.erase(it);
  }
  if (kUnpoison != nullptr) kUnpoison(data, bytes);
  std::free(data);
}

HostMemory::Piece HostMemory::around(const void* p) const {
  auto* at = static_cast<std::byte*>(const_cast<void*>(p));
  std::lock_guard lock(mutex_);
  auto it = reserved_.upper_bound(at);
  if (it == reserved_.begin()) return {nullptr, 0};
  --it;
  const auto inside = static_cast<size_t>(at - it->first);
  return inside < it->second ? Piece{it->first, it->second} : Piece{nullptr, 0};
}

bool HostMemory::contains(const void* p) const { return around(p).bytes > 0; }

size_t HostMemory::open(const void* p, size_t bytes) {
  const Piece r = around(p);
  const auto* at = static_cast<const std::byte*>(p);
  const size_t rest =
      r.bytes == 0 ? 0 : r.bytes - static_cast<size_t>(at - r.begin);
  if (rest == 0 || bytes > rest) {
    throw errors::Internal(fmt::format(
        "{} bytes at {} are not within one reservation of the card", bytes, p));
  }
  if (bytes == 0) bytes = rest;
  if (kUnpoison != nullptr) kUnpoison(p, bytes);
  open_.push_back({at, bytes});
  return bytes;
}

void HostMemory::close() noexcept {
  for (const Piece& piece : open_) {
    const auto at = reinterpret_cast<uintptr_t>(piece.begin);
    const uintptr_t begin = at / kGranule * kGranule;
    const uintptr_t end =
        (at + piece.bytes + kGranule - 1) / kGranule * kGranule;
    if (kPoison != nullptr) {
      kPoison(reinterpret_cast<const void*>(begin), end - begin);
    }
  }
  open_.clear();
}

std::unique_ptr<MemorySource> host_memory_source_of(HostMemory& memory) {
  return std::make_unique<HostSource>(memory);
}

}  // namespace berth::gpu
