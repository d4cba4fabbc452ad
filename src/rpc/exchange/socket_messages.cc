#include "rpc/exchange/socket_messages.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/live_counts.h"

namespace berth::exchange {

namespace {

constexpr uint32_t kMessageMagic = 0x4d787442;  // "BtxM"
constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kStrayBytes = size_t{64} << 20;
constexpr ssize_t kTurnBytes = 128 << 10;

}  // namespace

struct SocketMessages::Header {
  uint32_t magic = kMessageMagic;
  uint32_t zero = 0;
  uint64_t slot = 0;
  uint64_t bytes = 0;
  ExchangeCall call;
};

struct SocketMessages::Outgoing {
  Header header;
  const std::byte* data;
  size_t done;  // of header and data
  Box* box;
};

struct SocketMessages::Posted {
  int from;
  std::vector<int> others;  // further allowed senders
  uint64_t slot;
  std::byte* data;
  size_t bytes;
  Box* box;

  bool is_for(int rank) const {
    return rank == from ||
           std::find(others.begin(), others.end(), rank) != others.end();
  }
};

// A message that arrived before its receive was posted.
struct SocketMessages::Stray {
  int from;
  uint64_t slot;
  std::vector<std::byte> data;
};

struct SocketMessages::Pair {
  Socket socket;
  bool ready = false;
  const char* over = nullptr;  // why the connection has ended
  std::deque<Outgoing> out;
  std::vector<std::byte> buffer = std::vector<std::byte>(kReadBytes);
  size_t begin = 0, end = 0;  // valid bytes of the buffer
  bool have_header = false;   // of a message that is incomplete
  bool matched = false;
  Header header;
  std::byte* data = nullptr;
  size_t got = 0;
  Box* box = nullptr;  // null: a stray
  Stray stray;
};

SocketMessages::SocketMessages(Peers& peers, std::vector<int> ranks, int me)
    : Messages(peers, std::move(ranks), me), pairs_(ranks_.size()) {}

SocketMessages::~SocketMessages() = default;

void SocketMessages::begin(Wait& wait) { wait_ = &wait; }

SocketMessages::Pair& SocketMessages::pair(int rank) {
  if (!pairs_[rank]) {
    auto p = std::make_unique<Pair>();
    if (ranks_[rank] > ranks_[me_]) {
      p->socket = peers_.dial_channel(ranks_[rank], *wait_);
    }
    pairs_[rank] = std::move(p);
  }
  return *pairs_[rank];
}

// Whether the pair is connected; looks for a socket that the other rank
// dialled.
bool SocketMessages::connected(int rank, Pair& p) {
  if (!p.ready) {
    if (!p.socket) {
      p.socket = peers_.find_channel(ranks_[rank], wait_->channel().name);
    }
    if (!p.socket) return false;
    const int one = 1;
    setsockopt(p.socket.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    p.ready = true;
  }
  return true;
}

void SocketMessages::closed(int rank, const char* cause) {
  if (peers_.ended()) peers_.raise_end();
  peers_.lost(ranks_[rank], cause, wait_->call());
}

void SocketMessages::send(int to, uint64_t slot, const void* data, size_t bytes,
                          Box& box) {
  Pair& p = pair(to);
  Outgoing& o = p.out.emplace_back();
  o.header.slot = slot;
  o.header.bytes = bytes;
  o.header.call = wait_->call();
  o.data = static_cast<const std::byte*>(data);
  o.done = 0;
  o.box = &box;
  flush(to, p);
}

bool SocketMessages::flush(int rank, Pair& p) {
  bool moved = false;
  if (!connected(rank, p)) return false;
  while (!p.out.empty()) {
    Outgoing& o = p.out.front();
    const size_t all = sizeof(Header) + o.header.bytes;
    iovec parts[2];
    int count = 0;
    if (o.done < sizeof(Header)) {
      parts[count++] = {reinterpret_cast<std::byte*>(&o.header) + o.done,
                        sizeof(Header) - o.done};
    }
    const size_t of_data = o.done - std::min(o.done, sizeof(Header));
    if (o.header.bytes > of_data) {
      parts[count++] = {const_cast<std::byte*>(o.data) + of_data,
                        o.header.bytes - of_data};
    }
    msghdr m{};
    m.msg_iov = parts;
    m.msg_iovlen = count;
    const ssize_t n = sendmsg(p.socket.fd(), &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return moved;
      if (errno == EINTR) continue;
      closed(rank, std::strerror(errno));
    }
    moved = true;
    o.done += n;
    live_counts::add_sent(n);
    if (o.done < all) return moved;
    o.box->sent.push_back(rank);
    p.out.pop_front();
  }
  return moved;
}

bool SocketMessages::find_stray(const Posted& posted) {
  const auto s =
      std::find_if(strays_.begin(), strays_.end(), [&](const Stray& stray) {
        return stray.slot == posted.slot && posted.is_for(stray.from);
      });
  if (s == strays_.end()) return false;
  const size_t n = std::min(posted.bytes, s->data.size());
  if (n > 0) std::memcpy(posted.data, s->data.data(), n);
  posted.box->bytes.push_back(static_cast<int64_t>(n));
  posted.box->received.push_back(s->from);
  strays_.erase(s);
  return true;
}

void SocketMessages::receive(int from, uint64_t slot, void* data, size_t bytes,
                             Box& box) {
  pair(from);
  Posted posted{from, {}, slot, static_cast<std::byte*>(data), bytes, &box};
  if (!strays_.empty() && find_stray(posted)) return;
  posted_.push_back(std::move(posted));
}

void SocketMessages::receive(const std::vector<int>& from, uint64_t slot,
                             void* data, size_t bytes, Box& box) {
  for (const int rank : from) pair(rank);
  Posted posted{from.at(0), from, slot, static_cast<std::byte*>(data),
                bytes,      &box};
  if (!find_stray(posted)) posted_.push_back(std::move(posted));
}

// Moves bytes from the buffer or the socket to `data`: returns true once it is
// complete. `p.got` counts.
bool SocketMessages::take(Pair& p, void* data, size_t bytes) {
  auto* to = static_cast<std::byte*>(data);
  const size_t held = std::min(bytes - p.got, p.end - p.begin);
  if (held > 0) {
    std::memcpy(to + p.got, p.buffer.data() + p.begin, held);
    p.begin += held;
    p.got += held;
  }
  return p.got == bytes;
}

bool SocketMessages::wants(int rank) const {
  return std::any_of(posted_.begin(), posted_.end(),
                     [&](const Posted& r) { return r.is_for(rank); });
}

// Reads the header and finds the receive posted for the message.
bool SocketMessages::begin_message(int rank, Pair& p) {
  if (!p.have_header) {
    if (!take(p, &p.header, sizeof(Header))) return false;
    p.have_header = true;
    p.got = 0;
    if (p.header.magic != kMessageMagic ||
        p.header.bytes > (uint64_t{1} << 48)) {
      closed(rank, "sent what is no message of an exchange");
    }
  }
  const ExchangeCall& theirs = p.header.call;
  const ExchangeCall& mine = wait_->call();
  const bool wanted = wants(rank);
  if (theirs.sequence > mine.sequence && !wanted) return false;  // it is ahead
  if (!same(theirs, mine)) {
    peers_.differ(peers_.rank(), mine, ranks_[rank], theirs,
                  wait_->channel().name);
  }
  const auto it =
      std::find_if(posted_.begin(), posted_.end(), [&](const Posted& r) {
        return r.slot == p.header.slot && r.is_for(rank);
      });
  if (it == posted_.end()) {
    if (!wanted) return false;  // it may wait
    if (p.header.bytes > kStrayBytes)
      closed(rank, "sent what nobody asked for");
    p.stray = {rank, p.header.slot, std::vector<std::byte>(p.header.bytes)};
    p.data = p.stray.data.data();
    p.box = nullptr;
  } else {
    if (p.header.bytes > it->bytes) {
      closed(rank, "sent more than was asked for");
    }
    p.data = it->data;
    p.box = it->box;
    posted_.erase(it);
  }
  p.matched = true;
  return true;
}

void SocketMessages::finish_message(int rank, Pair& p) {
  if (p.box != nullptr) {
    p.box->bytes.push_back(static_cast<int64_t>(p.header.bytes));
    p.box->received.push_back(rank);
  } else {  // a receive was posted meanwhile
    const auto it =
        std::find_if(posted_.begin(), posted_.end(), [&](const Posted& r) {
          return r.slot == p.header.slot && r.is_for(rank);
        });
    strays_.push_back(std::move(p.stray));
    if (it != posted_.end() && find_stray(*it)) posted_.erase(it);
  }
  p.have_header = p.matched = false;
  p.got = 0;
}

bool SocketMessages::read(int rank, Pair& p) {
  bool moved = false;
  if (!connected(rank, p)) return false;
  if (p.over != nullptr) {
    // A rank that has sent everything may leave before others.
    if (wants(rank)) closed(rank, p.over);
    return false;
  }
  for (;;) {
    if (!p.matched) {
      if (!begin_message(rank, p)) {
        if (p.have_header) return moved;  // for a later call
      } else if (take(p, p.data, p.header.bytes)) {
        finish_message(rank, p);
        moved = true;
        continue;
      }
    }
    // Large messages are read straight into their destination, together with
    // the bytes that follow.
    iovec parts[2];
    int count = 0;
    const size_t missing = p.matched ? p.header.bytes - p.got : 0;
    if (p.matched) parts[count++] = {p.data + p.got, missing};
    if (p.begin == p.end) p.begin = p.end = 0;
    if (p.end < p.buffer.size()) {
      parts[count++] = {p.buffer.data() + p.end, p.buffer.size() - p.end};
    }
    msghdr m{};
    m.msg_iov = parts;
    m.msg_iovlen = count;
    const ssize_t n = recvmsg(p.socket.fd(), &m, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return moved;
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      p.over = n == 0 ? "connection closed" : std::strerror(errno);
      if (p.have_header || p.got > 0) closed(rank, p.over);
      return moved;
    }
    moved = true;
    live_counts::add_received(n);
    const size_t direct = std::min<size_t>(n, missing);
    p.got += direct;
    p.end += n - direct;
    if (p.matched && p.got == p.header.bytes) finish_message(rank, p);
    if (n >= kTurnBytes) return true;  // let pending sends proceed
  }
}

bool SocketMessages::move() {
  bool moved = false;
  for (int r = 0; r < size(); ++r) {
    if (!pairs_[r]) continue;
    moved |= flush(r, *pairs_[r]);
    moved |= read(r, *pairs_[r]);
  }
  return moved;
}

// The awaited rank; of several, the first that has sent nothing.
int SocketMessages::awaited() const {
  if (!posted_.empty()) return ranks_[posted_[0].from];
  for (int r = 0; r < size(); ++r) {
    if (pairs_[r] && (pairs_[r]->matched || !pairs_[r]->out.empty())) {
      return ranks_[r];
    }
  }
  return ranks_[me_ == 0 ? size() - 1 : 0];
}

void SocketMessages::sleep() {
  int slice_ms = wait_->slice_ms();
  polled_.assign(1, {peers_.end_fd(), POLLIN, 0});
  for (const auto& pair : pairs_) {
    if (!pair || pair->over != nullptr) continue;
    if (!pair->ready) {
      slice_ms = 1;
      continue;
    }
    const bool later = pair->have_header && !pair->matched;
    short events = later ? 0 : POLLIN;
    if (!pair->out.empty()) events |= POLLOUT;
    polled_.push_back({pair->socket.fd(), events, 0});
  }
  wait_->check(awaited());
  poll(polled_.data(), polled_.size(), slice_ms);
}

void SocketMessages::forget(Box& box) {
  std::erase_if(posted_, [&](const Posted& r) { return r.box == &box; });
  for (auto& p : pairs_) {
    if (!p) continue;
    // A partial message cannot be cancelled: the pair becomes unusable.
    const bool reading = p->matched && p->box == &box;
    const bool writing =
        std::any_of(p->out.begin(), p->out.end(),
                    [&](const Outgoing& o) { return o.box == &box; });
    if (reading || writing) p.reset();
  }
}

}  // namespace berth::exchange
