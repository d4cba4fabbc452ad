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

// What a message of a call is for.
enum class Stage : uint8_t { kMeet = 1, kAllInputs, kInput, kSum };

// The slot of a message: its stage, and its number in it. Gloo's slots have a
// number in the highest byte, which is 0 here.
uint64_t slot(Stage stage, uint64_t number = 0) {
  return static_cast<uint64_t>(stage) << 32 | number;
}

}  // namespace

// A sum in rounds: in each, all hosts send host h their inputs of its part; it
// adds them and sends the sum to all. A round's inputs travel while those of
// the round before are added.
class HostCollectives::PartSum {
 public:
  PartSum(HostCollectives& c, const SumRequest& s)
      : c_(c),
        s_(s),
        size_(s.element_bytes()),
        total_(static_cast<int64_t>(c.parts_.size())) {
    c.starts_.assign(c.size_, 0);
    for (int h = 1; h < c.size_; ++h) {
      c.starts_[h] = c.starts_[h - 1] + c.pieces_[h - 1];
    }
    const int64_t by_host = std::max<int64_t>(1, total_ / c.size_);
    each_ = std::max<int64_t>(16, kPartBytes / size_ / by_host / 16 * 16);
    room_ = c.scratch(2 * each_ * size_ * total_);
  }

  void run() {
    c_.sent_.clear();
    c_.results_.clear();
    const int64_t all = each_ * c_.size_;
    const int64_t rounds = (s_.count + all - 1) / all;
    exchange_inputs(0);
    for (int64_t round = 0; round < rounds; ++round) {
      if (round + 1 < rounds) exchange_inputs(round + 1);
      c_.wait_received(c_.inputs_[round & 1]);
      add_own_part(round);
      exchange_sums(round);
    }
    c_.wait_received(c_.results_);
    c_.wait_sent();
  }

 private:
  // The elements of a round: each host adds its part of them.
  struct Round {
    int64_t first, count, each;
    int64_t begin(int h) const { return first + std::min(count, h * each); }
    int64_t size(int h) const {
      return std::min(count, (h + 1) * each) - std::min(count, h * each);
    }
  };
  Round at(int64_t round) const {
    const int64_t first = round * each_ * c_.size_;
    const int64_t n = std::min(each_ * c_.size_, s_.count - first);
    return {first, n, ((n + c_.size_ - 1) / c_.size_ + 15) / 16 * 16};
  }
  // Where an input of another host arrives.
  std::byte* room_of(int64_t round, int host, int input) const {
    const int64_t piece = c_.starts_[host] + input;
    return room_ + ((round & 1) * total_ + piece) * each_ * size_;
  }
  int other(int i) const { return (c_.me_ + i) % c_.size_; }
  const std::byte* own(size_t input, int64_t element) const {
    return static_cast<const std::byte*>(s_.inputs[input].data) +
           element * size_;
  }
  std::byte* out(int64_t element) const {
    return static_cast<std::byte*>(s_.out) + element * size_;
  }

  void exchange_inputs(int64_t round) {
    const Round r = at(round);
    Posted& arriving = c_.inputs_[round & 1];
    arriving.clear();
    const int64_t mine = r.size(c_.me_) * size_;
    for (int i = 1; i < c_.size_; ++i) {
      const int h = other(i);
      for (int p = 0; p < c_.pieces_[h] && mine > 0; ++p) {
        c_.receive(h, slot(Stage::kInput, p), room_of(round, h, p), mine,
                   arriving);
      }
    }
    for (int i = 1; i < c_.size_; ++i) {
      const int h = other(i);
      for (size_t p = 0; p < s_.inputs.size() && r.size(h) > 0; ++p) {
        c_.send(h, slot(Stage::kInput, p), own(p, r.begin(h)),
                r.size(h) * size_);
      }
    }
  }

  void add_own_part(int64_t round) {
    const Round r = at(round);
    const int64_t begin = r.begin(c_.me_);
    c_.in_.clear();
    for (int h = 0; h < c_.size_; ++h) {
      for (int p = 0; p < c_.pieces_[h]; ++p) {
        c_.in_.push_back(h == c_.me_ ? own(p, begin) : room_of(round, h, p));
      }
    }
    c_.add(s_, out(begin), r.size(c_.me_));
  }

  void exchange_sums(int64_t round) {
    const Round r = at(round);
    for (int i = 1; i < c_.size_; ++i) {
      const int h = other(i);
      if (r.size(h) == 0) continue;
      c_.receive(h, slot(Stage::kSum), out(r.begin(h)), r.size(h) * size_,
                 c_.results_);
    }
    if (r.size(c_.me_) == 0) return;
    for (int i = 1; i < c_.size_; ++i) {
      c_.send(other(i), slot(Stage::kSum), out(r.begin(c_.me_)),
              r.size(c_.me_) * size_);
    }
  }

  HostCollectives& c_;
  const SumRequest& s_;
  const int64_t size_, total_;  // bytes of an element; inputs of all hosts
  int64_t each_ = 0;            // elements that a host adds in a round
  std::byte* room_ = nullptr;
};

HostCollectives::HostCollectives(Peers& peers, std::vector<int> leaders, int me)
    : peers_(peers),
      messages_(make_messages(peers, std::move(leaders), me)),
      gloo_(*messages_),
      size_(messages_->size()),
      me_(me) {}

std::byte* HostCollectives::scratch(size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

void HostCollectives::send(int to, uint64_t slot, const void* data,
                           int64_t bytes) {
  messages_->send(to, slot, data, static_cast<size_t>(bytes), sent_.box);
  ++sent_.count;
}

void HostCollectives::receive(int from, uint64_t slot, void* data,
                              int64_t bytes, Posted& p) {
  messages_->receive(from, slot, data, static_cast<size_t>(bytes), p.box);
  ++p.count;
}

// After ceil(log2 n) steps each has heard from all others, directly or not.
void HostCollectives::meet(Wait& wait) {
  messages_->begin(wait);
  met_.clear();
  sent_.clear();
  uint64_t step = 0;
  for (int far = 1; far < size_; far *= 2, ++step) {
    const int from = (me_ - far + size_) % size_;
    receive(from, slot(Stage::kMeet, step), nullptr, 0, met_);
    send((me_ + far) % size_, slot(Stage::kMeet, step), nullptr, 0);
    wait_received(met_);
  }
  wait_sent();
}

Algorithm HostCollectives::choose(int64_t bytes) const {
  const Algorithm asked = peers_.options().algorithm;
  if (asked != Algorithm::kAuto) return asked;
  if (size_ <= kDirectHosts) return Algorithm::kDirect;
  return bytes <= kBcubeBytes ? Algorithm::kBcube : Algorithm::kRing;
}

void HostCollectives::all_reduce(Wait& wait, void* data, int64_t count,
                                 DType dtype, Reduction reduction) {
  const Input mine{{}, data};
  const SumRequest s{{&mine, 1}, 0, data, count, dtype, reduction};
  if (s.bytes() <= kAllBytes && size_ <= kDirectHosts) return sum_all(wait, s);
  meet(wait);
  const Algorithm algorithm = choose(s.bytes());
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
  PartSum(*this, s).run();
}

void HostCollectives::ordered_sum(Wait& wait, std::span<const Input> inputs,
                                  int32_t slices, void* out, int64_t count,
                                  DType dtype) {
  const SumRequest s{inputs, slices, out, count, dtype};
  if (s.bytes() <= 4 * kAllBytes / slices) return sum_all(wait, s);
  exchange_all(wait, inputs, slices, 0);
  check_(peers_, wait.call(), parts_, {0, slices}, slices);
  PartSum(*this, s).run();
}

// All hosts get the inputs of all: the slices of each input, and its first
// `data_bytes`. Sets parts_, pieces_, in_.
void HostCollectives::exchange_all(Wait& wait, std::span<const Input> inputs,
                                   int32_t slices, int64_t data_bytes) {
  messages_->begin(wait);
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
    receive(h, slot(Stage::kAllInputs), from + h * room, room, met_);
    send(h, slot(Stage::kAllInputs), packed_.data(),
         static_cast<int64_t>(packed_.size()));
  }
  for (int i = 1; i < size_; ++i) {
    messages_->wait_received(met_.box, i);
    pieces_[met_.box.received[i - 1]] =
        static_cast<int>(met_.box.bytes[i - 1] / each);
  }
  wait_sent();
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

void HostCollectives::add(const SumRequest& s, void* out, int64_t count) {
  if (s.slices == 0) return sums_.chain(in_, out, count, s.dtype, s.reduction);
  sums_.tree(in_, parts_, s.slices, out, count, s.dtype);
}

void HostCollectives::sum_all(Wait& wait, const SumRequest& s) {
  exchange_all(wait, s.inputs, s.slices, s.bytes());
  if (s.slices > 0) {
    check_(peers_, wait.call(), parts_, {0, s.slices}, s.slices);
  } else if (static_cast<int>(in_.size()) != size_) {
    peers_.invalid("a rank gave nothing to a sum", wait.call());
  }
  add(s, s.out, s.count);
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
