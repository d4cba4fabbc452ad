#include "graph/blob_table.h"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/immortal.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

// Two lanes of multiply and shift, eight bytes at a time. Not against malice:
// the text and the table belong to one process.
class Hash {
 public:
  void word(uint64_t w) {
    a_ = (a_ ^ w) * 0x9fb21c651e98df25ull;
    a_ ^= a_ >> 29;
    b_ = (b_ + w) * 0xd6e8feb86659fd93ull;
    b_ ^= b_ >> 32;
  }
  void bytes(const std::byte* data, size_t n) {
    for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t)) {
      uint64_t w;
      std::memcpy(&w, data, sizeof w);
      word(w);
      data += sizeof w;
    }
    uint64_t tail = 0;
    std::memcpy(&tail, data, n);
    word(tail);
  }
  std::string str() const { return fmt::format("{:016x}{:016x}", a_, b_); }

 private:
  uint64_t a_ = 0x243f6a8885a308d3ull;  // digits of pi
  uint64_t b_ = 0x13198a2e03707344ull;
};

size_t bytes_of(const Tensor& t) {
  return static_cast<size_t>(t.num_elements()) * size_of(t.dtype());
}

struct Table {
  std::mutex mutex;
  std::unordered_map<std::string, Tensor> tensors;
  std::deque<std::string> oldest_first;
  size_t bytes = 0;
  // Without values: by hash, and their hashes by address.
  std::unordered_map<std::string, Tensor> unset;
  std::unordered_map<const void*, std::string> hash_of_unset;
};

Table& table() {
  static auto& t = immortal<Table>();
  return t;
}

}  // namespace

std::string keep_blob(const Tensor& t) {
  {
    std::lock_guard lock(table().mutex);
    const auto it = table().hash_of_unset.find(t.impl()->data());
    if (it != table().hash_of_unset.end()) return it->second;
  }
  const size_t n = bytes_of(t);
  std::vector<std::byte> bytes(n);
  t.copy_to(bytes.data());
  Hash hash;
  hash.word(static_cast<uint64_t>(t.dtype()));
  hash.word(static_cast<uint64_t>(t.rank()));
  for (const int64_t d : t.shape()) hash.word(static_cast<uint64_t>(d));
  hash.bytes(bytes.data(), n);
  std::string name = hash.str();

  Table& all = table();
  std::lock_guard lock(all.mutex);
  if (!all.tensors.emplace(name, t).second) return name;
  all.oldest_first.push_back(name);
  all.bytes += n;
  while (all.bytes > kMaxBlobBytes && all.oldest_first.size() > 1) {
    const auto oldest = all.tensors.find(all.oldest_first.front());
    all.bytes -= bytes_of(oldest->second);
    all.tensors.erase(oldest);
    all.oldest_first.pop_front();
  }
  return name;
}

Tensor find_blob(const std::string& hash) {
  Table& all = table();
  std::lock_guard lock(all.mutex);
  const auto it = all.tensors.find(hash);
  return it == all.tensors.end() ? Tensor() : it->second;
}

namespace {
thread_local int t_without_values = 0;
}  // namespace

BlobsWithoutValues::BlobsWithoutValues() { ++t_without_values; }
BlobsWithoutValues::~BlobsWithoutValues() { --t_without_values; }

Tensor blob_without_values(const std::string& hash, DType dtype,
                           const Shape& shape) {
  if (t_without_values == 0) return {};
  Tensor t = make_tensor(DeviceManager::get().host(), dtype, shape);
  std::lock_guard lock(table().mutex);
  Tensor& kept = table().unset.try_emplace(hash, t).first->second;
  table().hash_of_unset.emplace(kept.impl()->data(), hash);
  return kept;
}

}  // namespace berth
