// TaskExchange: cluster::Exchange over shared memory and sockets.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/environment.h"
#include "berth/errors.h"
#include "rpc/exchange/host_allreduce.h"
#include "rpc/exchange/shared_memory_allreduce.h"
#include "rpc/message_port.h"

namespace berth::exchange {

namespace {

using cluster::SlicePart;
using cluster::Tag;

constexpr int32_t kMostSlices = 1 << 16;

uint64_t mixed(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  return h;
}

// State for one thread at a time.
struct Channel {
  explicit Channel(ChannelState& s) : state(s) {}
  ChannelState& state;
  uint64_t sequence = 0;
  std::unique_ptr<SharedMemoryAllReduce> shared_memory;
  std::unique_ptr<HostCollectives> hosts;
  std::vector<Input> inputs;
  std::vector<std::byte> scratch;
  std::vector<std::byte*> outs;
  std::vector<int64_t> bytes;
};

class TaskExchange final : public cluster::Exchange {
 public:
  TaskExchange(Link& link, ExchangeOptions options)
      : peers_(link, std::move(options)), host_(peers_) {}
  ~TaskExchange() override { peers_.detach(); }

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }

  void all_reduce(void* data, int64_t count, DType dtype, Reduction reduction,
                  const Tag& tag) override;
  void ordered_sum(std::span<const SlicePart> parts, int32_t slices, void* sum,
                   int64_t count, DType dtype, const Tag& tag) override;
  void all_gather(const void* data, std::span<const int64_t> bytes_by_rank,
                  void* out, const Tag& tag) override;
  void broadcast(void* data, int64_t bytes, int root, const Tag& tag) override;
  void barrier(const Tag& tag) override;
  std::shared_ptr<void> shared_buffer(int64_t bytes) override;

 private:
  // Whether tasks share this host; whether there are several hosts.
  bool shares() const { return host_.size() > 1; }
  bool travels() const { return peers_.hosts().size() > 1; }
  bool leads() const { return host_.member() == 0; }

  Channel& channel(const std::string& name);
  double seconds(const Tag& tag) {
    return tag.timeout_seconds > 0 ? tag.timeout_seconds
                                   : peers_.link().timeout_seconds();
  }
  // The channel's next call.
  ExchangeCall next(Channel& c, ExchangeCall call, const Tag& tag);
  // Sets up what the first call of the channel needs.
  void prepare(Channel& c, Wait& wait);
  // Runs `work` with the leaders of other hosts.
  template <class Work>
  void between_hosts(Channel& c, Work work) {
    try {
      work(*c.hosts);
      c.hosts->end();
    } catch (...) {
      c.hosts->abandon();
      throw;
    }
  }
  void sum_of_hosts(Wait& wait, Channel& c, int32_t slices, void* sum,
                    int64_t count, DType dtype);

  Peers peers_;
  Host host_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Channel>, std::less<>> channels_;
};

Channel& TaskExchange::channel(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto it = channels_.find(name);
  if (it != channels_.end()) return *it->second;
  if (name.size() > 200) {
    throw errors::InvalidArgument("the name of a channel has over 200 bytes");
  }
  auto c = std::make_unique<Channel>(peers_.channel(name));
  return *channels_.emplace(name, std::move(c)).first->second;
}

ExchangeCall TaskExchange::next(Channel& c, ExchangeCall call, const Tag& tag) {
  peers_.link().check();
  if (tag.step >= 0) peers_.link().at_step(tag.step);
  describe(call, tag);
  call.sequence = ++c.sequence;
  return call;
}

void TaskExchange::prepare(Channel& c, Wait& wait) {
  if (shares() && !c.shared_memory) {
    c.shared_memory = std::make_unique<SharedMemoryAllReduce>(
        host_, host_.segment(wait), c.state.name);
  }
  if (travels() && leads() && !c.hosts) {
    std::vector<int> leaders;
    for (const std::vector<int>& ranks : peers_.hosts()) {
      leaders.push_back(ranks[0]);
    }
    c.hosts = std::make_unique<HostCollectives>(peers_, std::move(leaders),
                                                peers_.host());
  }
}

void TaskExchange::all_reduce(void* data, int64_t count, DType dtype,
                              Reduction reduction, const Tag& tag) {
  check_dtype(dtype, reduction);
  if (count < 0)
    throw errors::InvalidArgument("all_reduce of under 0 elements");
  Channel& c = channel(tag.channel);
  const ExchangeCall call = next(c,
                                 {.count = count,
                                  .kind = CallKind::kAllReduce,
                                  .dtype = dtype,
                                  .reduction = reduction},
                                 tag);
  Wait wait(peers_, c.state, call, seconds(tag));
  prepare(c, wait);
  const Input mine{{}, data};
  if (shares()) {
    c.shared_memory->sum(wait, {{&mine, 1}, 0, data, count, dtype, reduction});
  }
  if (travels() && leads()) {
    between_hosts(c, [&](HostCollectives& hosts) {
      hosts.all_reduce(wait, data, count, dtype, reduction);
    });
  }
  if (shares() && travels()) {
    c.shared_memory->broadcast(wait, data,
                               count * static_cast<int64_t>(size_of(dtype)), 0);
  }
}

void TaskExchange::ordered_sum(std::span<const SlicePart> parts, int32_t slices,
                               void* sum, int64_t count, DType dtype,
                               const Tag& tag) {
  check_dtype(dtype, Reduction::kSum);
  if (count < 0 || slices < 1 || slices > kMostSlices) {
    throw errors::InvalidArgument(fmt::format(
        "ordered_sum of {} elements over {} slices: 1 to {} slices can be",
        count, slices, kMostSlices));
  }
  for (const SlicePart& p : parts) {
    if (p.first >= 0 && p.count >= 1 && p.first <= slices - p.count) continue;
    throw errors::InvalidArgument(
        fmt::format("ordered_sum: a part of {} slices from {} on, of {} in all",
                    p.count, p.first, slices));
  }
  Channel& c = channel(tag.channel);
  const ExchangeCall call = next(c,
                                 {.count = count,
                                  .number = slices,
                                  .kind = CallKind::kOrderedSum,
                                  .dtype = dtype},
                                 tag);
  Wait wait(peers_, c.state, call, seconds(tag));
  prepare(c, wait);
  c.inputs.clear();
  for (const SlicePart& p : parts) {
    c.inputs.push_back({{p.first, p.count}, p.data});
  }
  if (static_cast<int64_t>(parts.size()) > slices) {
    peers_.invalid("ordered_sum: a task has more parts than there are slices",
                   wait.call());
  }
  if (shares() && travels()) {
    return sum_of_hosts(wait, c, slices, sum, count, dtype);
  }
  if (shares()) {
    c.shared_memory->sum(
        wait,
        {c.inputs, slices, sum, count, dtype, Reduction::kSum, {0, slices}});
  } else if (travels()) {
    between_hosts(c, [&](HostCollectives& hosts) {
      hosts.ordered_sum(wait, c.inputs, slices, sum, count, dtype);
    });
  } else {
    std::vector<Slices> own;
    std::vector<const void*> in;
    for (const Input& i : c.inputs) {
      own.push_back(i.slices);
      in.push_back(i.data);
    }
    const std::string wrong = check_slices(own, {0, slices}, slices);
    if (!wrong.empty()) throw errors::InvalidArgument("ordered_sum: " + wrong);
    Sums().tree(in, own, slices, sum, count, dtype);
  }
}

// Each host adds its part of the tree, then the hosts add the results.
void TaskExchange::sum_of_hosts(Wait& wait, Channel& c, int32_t slices,
                                void* sum, int64_t count, DType dtype) {
  const std::vector<Slices> of_host =
      c.shared_memory->slices_of_all(wait, c.inputs);
  const std::vector<Slices> roots = roots_of(of_host, slices);
  const int64_t bytes = count * static_cast<int64_t>(size_of(dtype));
  const int64_t each = (bytes + 63) / 64 * 64;
  const auto needed = static_cast<size_t>(each) * roots.size();
  if (c.scratch.size() < needed) c.scratch.resize(needed);
  std::vector<Input> sums, below;
  for (const Slices root : roots) {
    below.clear();
    for (const Input& i : c.inputs) {
      if (i.slices.first >= root.first &&
          i.slices.first < root.first + root.count) {
        below.push_back(i);
      }
    }
    std::byte* to = c.scratch.data() + sums.size() * each;
    c.shared_memory->sum(
        wait, {below, slices, to, count, dtype, Reduction::kSum, root});
    sums.push_back({root, to});
  }
  if (leads()) {
    between_hosts(c, [&](HostCollectives& hosts) {
      hosts.ordered_sum(wait, sums, slices, sum, count, dtype);
    });
  }
  c.shared_memory->broadcast(wait, sum, bytes, 0);
}

void TaskExchange::all_gather(const void* data,
                              std::span<const int64_t> bytes_by_rank, void* out,
                              const Tag& tag) {
  if (static_cast<int>(bytes_by_rank.size()) != size()) {
    throw errors::InvalidArgument(
        fmt::format("all_gather: the bytes of {} ranks, but there are {}",
                    bytes_by_rank.size(), size()));
  }
  Tag mine = tag;
  int64_t total = 0;
  for (const int64_t b : bytes_by_rank) {
    if (b < 0) throw errors::InvalidArgument("all_gather of under 0 bytes");
    total += b;
    mine.hash = mixed(mine.hash, static_cast<uint64_t>(b));
  }
  Channel& c = channel(tag.channel);
  const ExchangeCall call =
      next(c, {.count = total, .kind = CallKind::kAllGather}, mine);
  Wait wait(peers_, c.state, call, seconds(tag));
  prepare(c, wait);
  // By host: if ranks of a host are not adjacent, `out` has another order.
  std::vector<std::byte*> at(size());
  auto* next = static_cast<std::byte*>(out);
  for (int r = 0; r < size(); ++r) {
    at[r] = next;
    next += bytes_by_rank[r];
  }
  std::byte* own = at[rank()];
  if (bytes_by_rank[rank()] > 0 && own != data) {
    std::memmove(own, data, bytes_by_rank[rank()]);
  }
  if (shares()) {
    c.bytes.clear();
    c.outs.clear();
    for (const int r : host_.ranks()) {
      c.bytes.push_back(bytes_by_rank[r]);
      c.outs.push_back(r == rank() ? nullptr : at[r]);
    }
    c.shared_memory->all_gather(wait, own, c.bytes, c.outs);
  }
  if (!travels()) return;
  if (leads()) {
    c.scratch.resize(std::max<size_t>(c.scratch.size(), total));
    std::byte* packed = c.scratch.data();
    c.bytes.clear();
    for (size_t h = 0; h < peers_.hosts().size(); ++h) {
      c.bytes.push_back(0);
      for (const int r : peers_.hosts()[h]) {
        if (static_cast<int>(h) == peers_.host() && bytes_by_rank[r] > 0) {
          std::memcpy(packed, at[r], bytes_by_rank[r]);
        }
        packed += bytes_by_rank[r];
        c.bytes.back() += bytes_by_rank[r];
      }
    }
    between_hosts(c, [&](HostCollectives& hosts) {
      hosts.all_gather(wait, c.bytes, c.scratch.data());
    });
    packed = c.scratch.data();
    for (const std::vector<int>& ranks : peers_.hosts()) {
      for (const int r : ranks) {
        if (bytes_by_rank[r] > 0) std::memcpy(at[r], packed, bytes_by_rank[r]);
        packed += bytes_by_rank[r];
      }
    }
  }
  if (shares()) c.shared_memory->broadcast(wait, out, total, 0);
}

void TaskExchange::broadcast(void* data, int64_t bytes, int root,
                             const Tag& tag) {
  if (bytes < 0 || root < 0 || root >= size()) {
    throw errors::InvalidArgument(fmt::format(
        "broadcast of {} bytes from rank {} of {}", bytes, root, size()));
  }
  Channel& c = channel(tag.channel);
  const ExchangeCall call = next(
      c, {.count = bytes, .number = root, .kind = CallKind::kBroadcast}, tag);
  Wait wait(peers_, c.state, call, seconds(tag));
  prepare(c, wait);
  int root_host = 0, root_member = 0;
  for (size_t h = 0; h < peers_.hosts().size(); ++h) {
    for (size_t m = 0; m < peers_.hosts()[h].size(); ++m) {
      if (peers_.hosts()[h][m] != root) continue;
      root_host = static_cast<int>(h);
      root_member = static_cast<int>(m);
    }
  }
  const bool here = root_host == peers_.host();
  if (shares() && here)
    c.shared_memory->broadcast(wait, data, bytes, root_member);
  if (travels() && leads()) {
    between_hosts(c, [&](HostCollectives& hosts) {
      hosts.broadcast(wait, data, bytes, root_host);
    });
  }
  // The root's host, too, so that all hosts have equally many meetings.
  if (shares() && travels()) {
    here ? c.shared_memory->barrier(wait)
         : c.shared_memory->broadcast(wait, data, bytes, 0);
  }
}

void TaskExchange::barrier(const Tag& tag) {
  Channel& c = channel(tag.channel);
  const ExchangeCall call = next(c, {.kind = CallKind::kBarrier}, tag);
  Wait wait(peers_, c.state, call, seconds(tag));
  prepare(c, wait);
  if (shares()) c.shared_memory->barrier(wait);
  if (travels() && leads()) {
    between_hosts(c, [&](HostCollectives& hosts) { hosts.meet(wait); });
  }
  if (shares() && travels()) c.shared_memory->barrier(wait);
}

std::shared_ptr<void> TaskExchange::shared_buffer(int64_t bytes) {
  if (bytes < 0) throw errors::InvalidArgument("a buffer of under 0 bytes");
  if (shares()) {
    const std::shared_ptr<Segment> segment =
        host_.segment(peers_.link().timeout_seconds());
    const int64_t offset = segment->allocate(bytes);
    if (offset >= 0) {
      return {segment->at(segment->member(), offset, 0),
              [segment, offset](void*) { segment->free(offset); }};
    }
  }
  constexpr size_t kAlign = 64;
  const size_t room = (static_cast<size_t>(bytes) + kAlign) / kAlign * kAlign;
  void* p = std::aligned_alloc(kAlign, room);
  if (p == nullptr) {
    throw errors::ResourceExhausted(
        fmt::format("no memory for a buffer of {} bytes", bytes));
  }
  std::memset(p, 0, room);
  return {p, [](void* q) { std::free(q); }};
}

}  // namespace

}  // namespace berth::exchange

namespace berth::rpc {

std::unique_ptr<cluster::Exchange> make_exchange(
    Link& link, exchange::ExchangeOptions options) {
  return std::make_unique<exchange::TaskExchange>(link, std::move(options));
}

std::unique_ptr<cluster::Exchange> make_exchange(Link& link) {
  exchange::ExchangeOptions options;
  const Transport transport = transport_of_environment();
  options.shared_memory = transport.memory;
  options.ucx = transport.ucx;
  const std::string warn = environment("BERTH_WAIT_WARNING_SECONDS");
  if (!warn.empty()) {
    char* end = nullptr;
    options.warn_after_seconds = std::strtod(warn.c_str(), &end);
    if (*end != '\0' || !(options.warn_after_seconds > 0)) {
      throw errors::InvalidArgument(fmt::format(
          "BERTH_WAIT_WARNING_SECONDS is '{}': a number over 0 is expected",
          warn));
    }
  }
  return make_exchange(link, std::move(options));
}

}  // namespace berth::rpc
