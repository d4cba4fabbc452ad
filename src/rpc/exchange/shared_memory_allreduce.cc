#include "rpc/exchange/shared_memory_allreduce.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <ctime>

#include "base/spin.h"
#include "berth/errors.h"

namespace berth::exchange {

namespace {

constexpr int64_t kSmallBytes = 64 << 10;
constexpr int64_t kWindowBytes = 1 << 20;
// Two windows of inputs and two of sums, which are at most half as large.
constexpr int64_t kStageBytes = 4 * kWindowBytes;
constexpr int64_t kBlock = 16 << 10;  // elements added before a broadcast
constexpr int64_t kPartAlign = 64;    // elements: no cache line has two writers
constexpr int kSpinMicroseconds = 50;

// Phases are compared in 31 bits, which wrap around.
bool reached(uint32_t phase, uint32_t wanted) {
  return ((phase - wanted) & ~kEndedBit) < (kEndedBit >> 1);
}

void futex_sleep(std::atomic<uint32_t>& word, uint32_t value, int ms) {
  const timespec t{ms / 1000, (ms % 1000) * 1000000L};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &t, nullptr, 0);
}

// Elements [begin, end) of member `m`.
std::pair<int64_t, int64_t> part_of(int64_t count, int m, int size) {
  const int64_t each =
      ((count + size - 1) / size + kPartAlign - 1) / kPartAlign * kPartAlign;
  return {std::min(count, m * each), std::min(count, (m + 1) * each)};
}

}  // namespace

SharedMemoryAllReduce::SharedMemoryAllReduce(Host& host,
                                             std::shared_ptr<Segment> segment,
                                             const std::string& channel)
    : host_(host),
      segment_(std::move(segment)),
      channel_(segment_->channel(channel)),
      size_(host.size()),
      me_(host.member()) {}

// Makes sure that the own arena has `bytes`; the old ones are not read again.
int64_t SharedMemoryAllReduce::space(int64_t& offset, int64_t& have,
                                     int64_t bytes) {
  if (have >= bytes) return offset;
  if (have > 0) segment_->free(offset);
  have = 0;
  offset = segment_->allocate(bytes);
  if (offset < 0) {
    throw errors::ResourceExhausted(
        "the memory that tasks of this host share is full of shared buffers");
  }
  have = bytes;
  return offset;
}

void SharedMemoryAllReduce::await(Wait& wait, int member, uint32_t phase) {
  Line& line = segment_->line(channel_, member);
  const auto there = [&] {
    return reached(line.phase.load(std::memory_order_acquire), phase);
  };
  if (there() || (spin_us_ > 0 && spin_until(spin_us_, there))) return;
  const int rank = host_.ranks()[member];
  line.sleepers.fetch_add(1);
  try {
    for (;;) {
      const uint32_t now = line.phase.load();
      if (reached(now, phase)) break;
      if ((now & kEndedBit) != 0) wait.peers().raise_end();
      wait.check(rank);
      futex_sleep(line.phase, now, wait.slice_ms());
      // A rank that has gone may have arrived first.
      if (line.phase.load() == now && host_.gone(rank) &&
          line.phase.load() == now) {
        wait.peers().lost(rank, "connection closed", wait.call());
      }
    }
  } catch (...) {
    line.sleepers.fetch_sub(1);
    throw;
  }
  line.sleepers.fetch_sub(1);
  wait.done_waiting();
}

void SharedMemoryAllReduce::meet(Wait& wait) {
  std::atomic<uint32_t>& mine = segment_->line(channel_, me_).phase;
  phase_ = (phase_ + 1) & ~kEndedBit;
  uint32_t was = mine.load(std::memory_order_relaxed);
  do {
    if ((was & kEndedBit) != 0) wait.peers().raise_end();
  } while (!mine.compare_exchange_weak(was, phase_));
  if (segment_->line(channel_, me_).sleepers.load() != 0) {
    syscall(SYS_futex, &mine, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  for (int m = 0; m < size_; ++m) {
    if (m != me_) await(wait, m, phase_);
  }
  if (spin_us_ < 0) spin_us_ = segment_->has_cores() ? kSpinMicroseconds : 0;
}

void SharedMemoryAllReduce::offer(Wait& wait, Offer mine) {
  mine.call = wait.call();
  turn_ ^= 1;
  segment_->line(channel_, me_).offers[turn_] = mine;
  meet(wait);
  for (int m = 0; m < size_; ++m) {
    if (same(of(m).call, mine.call)) continue;
    wait.peers().differ(wait.peers().rank(), mine.call, host_.ranks()[m],
                        of(m).call, wait.channel().name);
  }
}

std::byte* SharedMemoryAllReduce::need(int member, int64_t offset,
                                       int64_t bytes, Wait& wait) {
  std::byte* p = segment_->at(member, offset, bytes);
  if (p == nullptr) {
    wait.peers().lost(host_.ranks()[member],
                      "published an invalid shared-memory offset", wait.call());
  }
  return p;
}

void SharedMemoryAllReduce::add(const SumRequest& s, void* out, int64_t count) {
  if (s.slices == 0) return sums_.chain(in_, out, count, s.dtype, s.reduction);
  sums_.tree(in_, parts_, s.slices, out, count, s.dtype);
}

void SharedMemoryAllReduce::check(Wait& wait, const SumRequest& s) {
  if (s.slices > 0) {
    return check_(wait.peers(), wait.call(), parts_, s.root, s.slices);
  }
  if (static_cast<int>(parts_.size()) == size_) return;
  wait.peers().invalid("a rank gave nothing to a sum", wait.call());
}

// Two windows of inputs and two of sums in each member's stage. Windows hold
// whole cache lines of each input if there is room. They exceed half of
// kWindowBytes, so the next call never starts to write where sums of this one
// are still read.
struct SharedMemoryAllReduce::Windows {
  int64_t elements;                // of a round
  int64_t input_bytes, sum_bytes;  // of a window
  int64_t rounds;

  Windows(const SumRequest& s, int members) {
    elements = kWindowBytes / (s.most_inputs() * s.element_bytes());
    if (elements > kPartAlign) elements = elements / kPartAlign * kPartAlign;
    input_bytes = elements * s.most_inputs() * s.element_bytes();
    sum_bytes = (elements / members + 2 * kPartAlign) * s.element_bytes();
    rounds = (s.count + elements - 1) / elements;
  }
  int64_t input_at(int64_t round) const { return (round & 1) * input_bytes; }
  int64_t sum_at(int64_t round) const {
    return 2 * input_bytes + (round & 1) * sum_bytes;
  }
};

void SharedMemoryAllReduce::sum(Wait& wait, const SumRequest& s) {
  const int64_t most = s.slices == 0 ? 2 : s.most_inputs();
  if (s.bytes() + 32 <= kSmallBytes / most) return sum_small(wait, s);
  const Windows windows(s, size_);
  offer_inputs(wait, s, windows);
  const bool all_there = read_offers(wait, s);
  check(wait, s);
  if (all_there) return sum_in_place(wait, s);
  sum_in_windows(wait, s, windows);
}

// Every member adds everything: one meeting.
void SharedMemoryAllReduce::sum_small(Wait& wait, const SumRequest& s) {
  const int64_t bytes = s.bytes();
  const int64_t each = (bytes + 15) / 16 * 16 + sizeof(OfferedInput);
  Offer mine;
  mine.small =
      space(small_, small_bytes_, 2 * kSmallBytes) + (turn_ ^ 1) * kSmallBytes;
  mine.pieces = static_cast<int64_t>(s.inputs.size());
  std::byte* to = segment_->at(me_, mine.small, kSmallBytes);
  for (const Input& input : s.inputs) {
    const OfferedInput piece{input.slices.first, input.slices.count};
    std::memcpy(to, &piece, sizeof(piece));
    if (bytes > 0) std::memcpy(to + sizeof(piece), input.data, bytes);
    to += each;
  }
  offer(wait, mine);
  in_.clear();
  parts_.clear();
  for (int m = 0; m < size_; ++m) {
    const int64_t pieces = std::clamp<int64_t>(of(m).pieces, 0, kSmallBytes);
    const std::byte* from = need(m, of(m).small, pieces * each, wait);
    for (int64_t i = 0; i < pieces; ++i, from += each) {
      OfferedInput piece;
      std::memcpy(&piece, from, sizeof(piece));
      parts_.push_back({piece.first, piece.count});
      in_.push_back(from + sizeof(piece));
    }
  }
  check(wait, s);
  add(s, s.out, s.count);
}

OfferedInput* SharedMemoryAllReduce::own_table(size_t inputs) {
  space(table_, table_bytes_,
        static_cast<int64_t>(std::max<size_t>(inputs, 64) *
                             sizeof(OfferedInput)));
  return reinterpret_cast<OfferedInput*>(segment_->at(
      me_, table_, static_cast<int64_t>(inputs * sizeof(OfferedInput))));
}

void SharedMemoryAllReduce::offer_inputs(Wait& wait, const SumRequest& s,
                                         const Windows& windows) {
  Offer mine;
  mine.pieces = static_cast<int64_t>(s.inputs.size());
  mine.out = segment_->offset_of(s.out, s.bytes());
  OfferedInput* table = own_table(s.inputs.size());
  mine.table = table_;
  mine.stage = space(stage_, stage_bytes_, kStageBytes);
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    table[i] = {s.inputs[i].slices.first, s.inputs[i].slices.count,
                segment_->offset_of(s.inputs[i].data, s.bytes())};
  }
  copy_in(s, windows, 0);
  offer(wait, mine);
}

void SharedMemoryAllReduce::copy_in(const SumRequest& s, const Windows& windows,
                                    int64_t round) {
  const OfferedInput* table = own_table(s.inputs.size());
  const int64_t window = windows.elements * s.element_bytes();
  const int64_t at = round * window;
  const int64_t n = std::min(window, s.bytes() - at);
  std::byte* to =
      segment_->at(me_, stage_ + windows.input_at(round), windows.input_bytes);
  for (size_t i = 0; i < s.inputs.size(); ++i, to += window) {
    if (table[i].at >= 0) continue;
    std::memcpy(to, static_cast<const std::byte*>(s.inputs[i].data) + at, n);
  }
}

bool SharedMemoryAllReduce::read_offers(Wait& wait, const SumRequest& s) {
  sources_.clear();
  parts_.clear();
  outs_.assign(size_, nullptr);
  bool all_there = true;
  for (int m = 0; m < size_; ++m) {
    const Offer o = of(m);
    const int64_t pieces = std::clamp<int64_t>(o.pieces, 0, s.most_inputs());
    const auto* t = reinterpret_cast<const OfferedInput*>(
        need(m, o.table, pieces * sizeof(OfferedInput), wait));
    for (int64_t i = 0; i < pieces; ++i) {
      const OfferedInput piece = t[i];
      parts_.push_back({piece.first, piece.count});
      Source source{nullptr, m, static_cast<int>(i)};
      if (piece.at >= 0) source.at = need(m, piece.at, s.bytes(), wait);
      sources_.push_back(source);
      all_there = all_there && piece.at >= 0;
    }
    if (o.out >= 0) outs_[m] = need(m, o.out, s.bytes(), wait);
    all_there = all_there && o.out >= 0;
    need(m, o.stage, kStageBytes, wait);
  }
  return all_there;
}

// All inputs and outputs are in the segment: nothing is copied.
void SharedMemoryAllReduce::sum_in_place(Wait& wait, const SumRequest& s) {
  const int64_t size = s.element_bytes();
  const auto [begin, end] = part_of(s.count, me_, size_);
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t n = std::min(kBlock, end - i);
    in_.clear();
    for (const Source& source : sources_) in_.push_back(source.at + i * size);
    add(s, outs_[me_] + i * size, n);
    for (int m = 0; m < size_; ++m) {
      if (m == me_) continue;
      std::memcpy(outs_[m] + i * size, outs_[me_] + i * size, n * size);
    }
  }
  meet(wait);
}

// Inputs outside the segment are copied into windows, sums out of windows.
void SharedMemoryAllReduce::sum_in_windows(Wait& wait, const SumRequest& s,
                                           const Windows& windows) {
  const int64_t size = s.element_bytes();
  const auto sum_at = [&](int m, int64_t round) {
    return segment_->at(m, of(m).stage + windows.sum_at(round),
                        windows.sum_bytes);
  };
  const auto input_at = [&](const Source& source, int64_t round) {
    const int64_t window = windows.elements * size;
    if (source.at != nullptr) return source.at + round * window;
    return segment_->at(source.member,
                        of(source.member).stage + windows.input_at(round),
                        windows.input_bytes) +
           source.index * window;
  };
  for (int64_t round = 0; round < windows.rounds; ++round) {
    const int64_t first = round * windows.elements;
    const int64_t n = std::min(windows.elements, s.count - first);
    if (round + 1 < windows.rounds) copy_in(s, windows, round + 1);
    const auto [begin, end] = part_of(n, me_, size_);
    in_.clear();
    for (const Source& source : sources_) {
      in_.push_back(input_at(source, round) + begin * size);
    }
    add(s, sum_at(me_, round), end - begin);
    meet(wait);
    auto* to = static_cast<std::byte*>(s.out) + first * size;
    for (int m = 0; m < size_; ++m) {
      const auto [b, e] = part_of(n, m, size_);
      if (e > b) std::memcpy(to + b * size, sum_at(m, round), (e - b) * size);
    }
  }
}

std::vector<Slices> SharedMemoryAllReduce::slices_of_all(
    Wait& wait, std::span<const Input> inputs) {
  Offer mine;
  mine.pieces = static_cast<int64_t>(inputs.size());
  OfferedInput* table = own_table(inputs.size());
  mine.table = table_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    table[i] = {inputs[i].slices.first, inputs[i].slices.count};
  }
  offer(wait, mine);
  std::vector<Slices> all;
  for (int m = 0; m < size_; ++m) {
    const int64_t pieces =
        std::clamp<int64_t>(of(m).pieces, 0, wait.call().number);
    const auto* t = reinterpret_cast<const OfferedInput*>(
        need(m, of(m).table, pieces * sizeof(OfferedInput), wait));
    for (int64_t i = 0; i < pieces; ++i)
      all.push_back({t[i].first, t[i].count});
  }
  meet(wait);  // the next call overwrites the tables
  return all;
}

void SharedMemoryAllReduce::all_gather(Wait& wait, const void* data,
                                       std::span<const int64_t> bytes,
                                       std::span<std::byte* const> out) {
  int64_t most = 0;
  for (const int64_t b : bytes) most = std::max(most, b);
  Offer mine;
  mine.stage = space(stage_, stage_bytes_, kStageBytes);
  const auto copy_in = [&](int64_t at) {
    const int64_t n = std::min(kWindowBytes, bytes[me_] - at);
    if (n <= 0 || data == nullptr) return;
    std::memcpy(
        segment_->at(me_, stage_ + (at / kWindowBytes & 1) * kWindowBytes,
                     kWindowBytes),
        static_cast<const std::byte*>(data) + at, n);
  };
  copy_in(0);
  offer(wait, mine);
  for (int m = 0; m < size_; ++m) need(m, of(m).stage, 2 * kWindowBytes, wait);
  for (int64_t at = 0; at < most; at += kWindowBytes) {
    copy_in(at + kWindowBytes);
    for (int m = 0; m < size_; ++m) {
      const int64_t n = std::min(kWindowBytes, bytes[m] - at);
      if (n <= 0 || out[m] == nullptr) continue;
      const int64_t from = of(m).stage + (at / kWindowBytes & 1) * kWindowBytes;
      std::memcpy(out[m] + at, segment_->at(m, from, kWindowBytes), n);
    }
    meet(wait);
  }
}

void SharedMemoryAllReduce::broadcast(Wait& wait, void* data, int64_t bytes,
                                      int root) {
  // A gather with one contributor.
  std::vector<int64_t> by_member(size_, 0);
  std::vector<std::byte*> out(size_, nullptr);
  by_member[root] = bytes;
  if (me_ != root) out[root] = static_cast<std::byte*>(data);
  all_gather(wait, me_ == root ? data : nullptr, by_member, out);
}

void SharedMemoryAllReduce::barrier(Wait& wait) { offer(wait, {}); }

}  // namespace berth::exchange
