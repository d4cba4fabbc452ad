#include "rpc/exchange/host_allreduce.h"

#include <algorithm>
#include <cstring>

namespace berth::exchange {

namespace {

// Each host sends up to this much to all others, which all add everything.
constexpr int64_t kAllBytes = 16 << 10;
// Bytes per message of a part: the next one is sent while this one is added.
constexpr int64_t kPartBytes = 512 << 10;
// With up to this many hosts, each has a socket to every other.
constexpr int kDirectHosts = 8;
constexpr int64_t kBcubeBytes = 512 << 10;

// Slots of the messages of a call. Gloo's have a number in the upper byte.
enum : uint64_t {
  kMeetSlot = 1,
  kAllSlot = 64,
  kPartSlot,
  kGatherSlot = 1 << 30
};

}  // namespace

HostCollectives::HostCollectives(Peers& peers, std::vector<int> leaders, int me)
    : peers_(peers),
      messages_(peers, std::move(leaders), me),
      gloo_(messages_),
      size_(messages_.size()),
      me_(me) {}

std::byte* HostCollectives::scratch(size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

// After ceil(log2 n) steps each has heard from all others, directly or not.
void HostCollectives::meet(Wait& wait) {
  messages_.begin(wait);
  met_.clear();
  sent_.clear();
  size_t steps = 0;
  for (int far = 1; far < size_; far *= 2, ++steps) {
    const int from = (me_ - far + size_) % size_;
    messages_.receive(from, kMeetSlot + steps, nullptr, 0, met_);
    messages_.send((me_ + far) % size_, kMeetSlot + steps, nullptr, 0, sent_);
    messages_.wait_received(met_, steps + 1);
  }
  messages_.wait_sent(sent_, steps);
}

Algorithm HostCollectives::choose(int64_t bytes) const {
  const Algorithm asked = peers_.options().algorithm;
  if (asked != Algorithm::kAuto) return asked;
  if (size_ <= kDirectHosts) return Algorithm::kDirect;
  return bytes <= kBcubeBytes ? Algorithm::kBcube : Algorithm::kRing;
}

void HostCollectives::all_reduce(Wait& wait, void* data, int64_t count,
                                 DType dtype, Reduction reduction) {
  const int64_t bytes = count * static_cast<int64_t>(size_of(dtype));
  const Input mine{{}, data};
  if (bytes <= kAllBytes && size_ <= kDirectHosts) {
    return sum_all(wait, {&mine, 1}, 0, data, count, dtype, reduction);
  }
  meet(wait);
  const Algorithm algorithm = choose(bytes);
  if (count == 0) return;
  if (algorithm != Algorithm::kDirect) {
    const auto tag = static_cast<uint32_t>(wait.call().sequence);
    if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) {
      return gloo_.all_reduce(data, count, dtype, reduction, algorithm, tag);
    }
    // Gloo adds pairwise, which would round at each step.
    auto* wide = reinterpret_cast<float*>(scratch(count * sizeof(float)));
    widen(data, dtype, wide, count);
    gloo_.all_reduce(wide, count, DType::kFloat32, reduction, algorithm, tag);
    return narrow(wide, data, dtype, count);
  }
  parts_.assign(size_, {});
  pieces_.assign(size_, 1);
  sum_parts({&mine, 1}, 0, data, count, dtype, reduction);
}

void HostCollectives::ordered_sum(Wait& wait, std::span<const Input> inputs,
                                  int32_t slices, void* out, int64_t count,
                                  DType dtype) {
  const int64_t bytes = count * static_cast<int64_t>(size_of(dtype));
  if (bytes <= 4 * kAllBytes / slices) {
    return sum_all(wait, inputs, slices, out, count, dtype, Reduction::kSum);
  }
  exchange_all(wait, inputs, slices, 0);
  check_(peers_, wait.call(), parts_, {0, slices}, slices);
  sum_parts(inputs, slices, out, count, dtype, Reduction::kSum);
}

// All hosts get the inputs of all: the slices of each input, and its first
// `data_bytes`. Sets parts_, pieces_, in_.
void HostCollectives::exchange_all(Wait& wait, std::span<const Input> inputs,
                                   int32_t slices, int64_t data_bytes) {
  messages_.begin(wait);
  const int64_t each =
      static_cast<int64_t>(sizeof(Slices)) * 2 + (data_bytes + 15) / 16 * 16;
  const int64_t room = each * std::max(slices, 1);
  packed_.resize(inputs.size() * each);
  std::byte* to = packed_.data();
  for (const Input& input : inputs) {
    std::memcpy(to, &input.slices, sizeof(Slices));
    if (data_bytes > 0) {
      std::memcpy(to + 2 * sizeof(Slices), input.data, data_bytes);
    }
    to += each;
  }
  sent_.clear();
  met_.clear();
  std::byte* from = scratch(room * size_);
  pieces_.assign(size_, 0);
  pieces_[me_] = static_cast<int>(inputs.size());
  for (int i = 1; i < size_; ++i) {
    const int h = (me_ + i) % size_;
    messages_.receive(h, kAllSlot, from + h * room, room, met_);
    messages_.send(h, kAllSlot, packed_.data(), packed_.size(), sent_);
  }
  for (int i = 1; i < size_; ++i) {
    messages_.wait_received(met_, i);
    pieces_[met_.received[i - 1]] = static_cast<int>(met_.bytes[i - 1] / each);
  }
  messages_.wait_sent(sent_, size_ - 1);
  parts_.clear();
  in_.clear();
  for (int h = 0; h < size_; ++h) {
    const std::byte* at = h == me_ ? packed_.data() : from + h * room;
    for (int i = 0; i < pieces_[h]; ++i, at += each) {
      Slices s;
      std::memcpy(&s, at, sizeof(s));
      parts_.push_back(s);
      in_.push_back(at + 2 * sizeof(Slices));
    }
  }
}

void HostCollectives::add(int32_t slices, void* out, int64_t count, DType dtype,
                          Reduction reduction) {
  if (slices == 0) return sums_.chain(in_, out, count, dtype, reduction);
  sums_.tree(in_, parts_, slices, out, count, dtype);
}

void HostCollectives::sum_all(Wait& wait, std::span<const Input> inputs,
                              int32_t slices, void* out, int64_t count,
                              DType dtype, Reduction reduction) {
  exchange_all(wait, inputs, slices,
               count * static_cast<int64_t>(size_of(dtype)));
  if (slices > 0) {
    check_(peers_, wait.call(), parts_, {0, slices}, slices);
  } else if (static_cast<int>(in_.size()) != size_) {
    peers_.invalid("a rank gave nothing to a sum", wait.call());
  }
  add(slices, out, count, dtype, reduction);
}

// The elements of one round: each host adds its part of them.
struct HostCollectives::Stretch {
  int64_t first, count, each;
  int64_t begin(int h) const { return first + std::min(count, h * each); }
  int64_t size(int h) const {
    return std::min(count, (h + 1) * each) - std::min(count, h * each);
  }
};

// In each round all hosts send host h their inputs of its part; it adds them
// and sends the sum to all. A round is sent while the one before is added.
void HostCollectives::sum_parts(std::span<const Input> inputs, int32_t slices,
                                void* out, int64_t count, DType dtype,
                                Reduction reduction) {
  const auto size = static_cast<int64_t>(size_of(dtype));
  const int64_t total = static_cast<int64_t>(parts_.size());
  starts_.assign(size_, 0);
  for (int h = 1; h < size_; ++h) starts_[h] = starts_[h - 1] + pieces_[h - 1];
  const int64_t each = std::max<int64_t>(
      16, kPartBytes / size / std::max<int64_t>(1, total / size_) / 16 * 16);
  const int64_t rounds = (count + each * size_ - 1) / (each * size_);
  const auto stretch = [&](int64_t round) {
    const int64_t first = round * each * size_;
    const int64_t n = std::min(each * size_, count - first);
    return Stretch{first, n, ((n + size_ - 1) / size_ + 15) / 16 * 16};
  };
  std::byte* room = scratch(2 * each * size * total);
  const auto room_of = [&](int64_t round, int64_t piece) {
    return room + ((round & 1) * total + piece) * each * size;
  };
  sent_.clear();
  gathered_.clear();
  size_t sent = 0, gathered = 0, scattered[2] = {0, 0};

  const auto scatter = [&](int64_t round) {
    const Stretch s = stretch(round);
    SocketMessages::Box& box = scattered_[round & 1];
    box.clear();
    scattered[round & 1] = 0;
    const int64_t mine = s.size(me_) * size;
    for (int i = 1; i < size_; ++i) {
      const int h = (me_ + i) % size_;
      for (int p = 0; p < pieces_[h] && mine > 0; ++p) {
        messages_.receive(h, kPartSlot + p, room_of(round, starts_[h] + p),
                          mine, box);
        ++scattered[round & 1];
      }
    }
    for (int i = 1; i < size_; ++i) {
      const int h = (me_ + i) % size_;
      for (size_t p = 0; p < inputs.size() && s.size(h) > 0; ++p) {
        messages_.send(
            h, kPartSlot + p,
            static_cast<const std::byte*>(inputs[p].data) + s.begin(h) * size,
            s.size(h) * size, sent_);
        ++sent;
      }
    }
  };
  const auto gather = [&](int64_t round) {
    const Stretch s = stretch(round);
    auto* to = static_cast<std::byte*>(out);
    for (int i = 1; i < size_; ++i) {
      const int h = (me_ + i) % size_;
      if (s.size(h) == 0) continue;
      messages_.receive(h, kGatherSlot, to + s.begin(h) * size,
                        s.size(h) * size, gathered_);
      ++gathered;
    }
    if (s.size(me_) == 0) return;
    for (int i = 1; i < size_; ++i) {
      messages_.send((me_ + i) % size_, kGatherSlot, to + s.begin(me_) * size,
                     s.size(me_) * size, sent_);
      ++sent;
    }
  };

  scatter(0);
  for (int64_t round = 0; round < rounds; ++round) {
    if (round + 1 < rounds) scatter(round + 1);
    messages_.wait_received(scattered_[round & 1], scattered[round & 1]);
    const Stretch s = stretch(round);
    in_.clear();
    for (int h = 0; h < size_; ++h) {
      for (int p = 0; p < pieces_[h]; ++p) {
        in_.push_back(h == me_ ? static_cast<const std::byte*>(inputs[p].data) +
                                     s.begin(me_) * size
                               : room_of(round, starts_[h] + p));
      }
    }
    add(slices, static_cast<std::byte*>(out) + s.begin(me_) * size, s.size(me_),
        dtype, reduction);
    gather(round);
  }
  messages_.wait_received(gathered_, gathered);
  messages_.wait_sent(sent_, sent);
}

void HostCollectives::all_gather(Wait& wait, std::span<const int64_t> bytes,
                                 void* out) {
  meet(wait);
  if (std::all_of(bytes.begin(), bytes.end(),
                  [](int64_t b) { return b == 0; })) {
    return;
  }
  gloo_.all_gather(bytes, out, static_cast<uint32_t>(wait.call().sequence));
}

void HostCollectives::broadcast(Wait& wait, void* data, int64_t bytes,
                                int root) {
  meet(wait);
  if (bytes == 0) return;
  gloo_.broadcast(data, bytes, root,
                  static_cast<uint32_t>(wait.call().sequence));
}

}  // namespace berth::exchange
