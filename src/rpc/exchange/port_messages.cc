#include "rpc/exchange/port_messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>

#include "base/live_counts.h"
#include "rpc/exchange/socket_messages.h"

namespace berth::exchange {

namespace {

using rpc::PortArrival;
using rpc::PortHello;
using rpc::PortOp;

constexpr uint32_t kPortMessageMagic = 0x4d787555;  // "UuxM"
// Messages of a rank that may wait for their receive.
constexpr size_t kMostArrived = 1 << 16;

}  // namespace

struct PortMessages::Header {
  uint32_t magic = kPortMessageMagic;
  uint32_t number = 0;  // by which the receiver knows the sender
  rpc::PortToken token{};
  uint64_t serial = 0;  // of the pair: messages may overtake one another
  uint64_t slot = 0;
  ExchangeCall call;
};

struct PortMessages::Arrived {
  Header header;
  PortArrival message;
};

struct PortMessages::Sending {
  Header header;
  PortOp op;
  int to;
  Box* box;
  size_t bytes;
};

struct PortMessages::Receiving {
  PortOp op;
  int from;
  Box* box;
  size_t bytes;
  bool far;
};

struct PortMessages::Posted {
  std::vector<int> from;  // allowed senders
  uint64_t slot;
  void* data;
  size_t bytes;
  Box* box;

  bool is_for(int rank) const {
    return std::find(from.begin(), from.end(), rank) != from.end();
  }
};

struct PortMessages::Pair {
  struct Waiting {
    Sending* what;
    const void* data;
  };
  Socket socket;
  bool told = false;    // the other end knows this one's address
  int connection = -1;  // of the port; -1: not known yet
  std::string read;     // of the other's hello
  PortHello mine, theirs;
  std::string over;  // why it has ended; "": it has not
  std::deque<Waiting> waiting;
  uint64_t sent = 0, came = 0;        // serials
  std::map<uint64_t, Arrived> early;  // which have overtaken another
  std::deque<Arrived> arrived;        // in order
};

PortMessages::PortMessages(Peers& peers, std::vector<int> ranks, int me)
    : Messages(peers, std::move(ranks), me),
      pairs_(ranks_.size()),
      port_(rpc::open_port(peers.link().loopback_only())) {
  static_assert(sizeof(Header) <= rpc::MessagePort::kMostHead);
}

PortMessages::~PortMessages() = default;

void PortMessages::begin(Wait& wait) {
  wait_ = &wait;
  if (!port_) peers_.raise_end();
}

PortMessages::Pair& PortMessages::pair(int rank) {
  if (!pairs_[rank]) {
    auto p = std::make_unique<Pair>();
    p->mine = {rpc::random_token(), static_cast<uint32_t>(rank),
               port_->address()};
    if (ranks_[rank] > ranks_[me_]) {
      p->socket = peers_.dial_channel(ranks_[rank], *wait_);
    }
    pairs_[rank] = std::move(p);
  }
  return *pairs_[rank];
}

void PortMessages::closed(int rank, const std::string& cause) {
  if (peers_.ended()) peers_.raise_end();
  peers_.lost(ranks_[rank], cause, wait_->call());
}

// Whether the addresses are exchanged; looks for a socket that the other rank
// dialled.
bool PortMessages::connected(int rank, Pair& p) {
  if (p.connection >= 0) return true;
  if (!p.socket) {
    p.socket = peers_.find_channel(ranks_[rank], wait_->channel().name);
  }
  if (!p.socket) return false;
  if (!std::exchange(p.told, true)) {
    const std::string bytes = encode(p.mine);
    const std::string why =
        rpc::write_all(p.socket.fd(), bytes.data(), bytes.size(),
                       std::min(wait_->deadline(), after(5)));
    if (!why.empty()) closed(rank, why);
  }
  read_hello(rank, p);
  return p.connection >= 0;
}

void PortMessages::read_hello(int rank, Pair& p) {
  try {
    while (!parse_port_hello(p.read, &p.theirs)) {
      // Nothing is read beyond the hello.
      const size_t known = p.read.size();
      p.read.resize(std::max(rpc::port_hello_bytes(p.read), known + 1));
      const ssize_t n = recv(p.socket.fd(), p.read.data() + known,
                             p.read.size() - known, MSG_DONTWAIT);
      p.read.resize(known + std::max<ssize_t>(n, 0));
      if (n > 0 || (n < 0 && errno == EINTR)) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      return closed(rank, n == 0 ? "connection closed" : std::strerror(errno));
    }
    p.connection = port_->connect(p.theirs.address);
  } catch (const errors::DataLoss& e) {
    closed(rank, e.what());
  }
}

// A hello is all that a socket carries: whatever else it says is its end.
void PortMessages::look_at_socket(Pair& p) {
  if (!p.over.empty()) return;
  char byte = 0;
  const ssize_t n = recv(p.socket.fd(), &byte, 1, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    return;
  }
  p.over = n == 0  ? "connection closed"
           : n > 0 ? "sent what nobody asked for"
                   : std::strerror(errno);
}

void PortMessages::send(int to, uint64_t slot, const void* data, size_t bytes,
                        Box& box) {
  Pair& p = pair(to);
  Sending& s = sending_.emplace_back(Sending{{}, {}, to, &box, bytes});
  s.header.serial = p.sent++;
  s.header.slot = slot;
  s.header.call = wait_->call();
  p.waiting.push_back({&s, data});
  if (connected(to, p)) flush(p);
}

bool PortMessages::flush(Pair& p) {
  const bool moved = !p.waiting.empty();
  for (; !p.waiting.empty(); p.waiting.pop_front()) {
    Sending& s = *p.waiting.front().what;
    s.header.number = p.theirs.number;
    s.header.token = p.theirs.token;
    port_->send(p.connection,
                {reinterpret_cast<const char*>(&s.header), sizeof(Header)},
                p.waiting.front().data, s.bytes, s.op);
  }
  return moved;
}

void PortMessages::receive(int from, uint64_t slot, void* data, size_t bytes,
                           Box& box) {
  receive(std::vector<int>{from}, slot, data, bytes, box);
}

void PortMessages::receive(const std::vector<int>& from, uint64_t slot,
                           void* data, size_t bytes, Box& box) {
  for (const int rank : from) pair(rank);
  posted_.push_back({from, slot, data, bytes, &box});
}

bool PortMessages::wants(int rank) const {
  return std::any_of(posted_.begin(), posted_.end(),
                     [&](const Posted& r) { return r.is_for(rank); });
}

bool PortMessages::busy_with(int rank) const {
  return std::any_of(receiving_.begin(), receiving_.end(),
                     [&](const Receiving& r) { return r.from == rank; }) ||
         std::any_of(sending_.begin(), sending_.end(),
                     [&](const Sending& s) { return s.to == rank; });
}

// Gives each message to its pair, in the order in which it was sent. One
// without the token of a rank is of nobody in this cluster.
void PortMessages::sort_arrivals() {
  for (PortArrival a; port_->next(&a);) {
    Header h;
    bool known = a.head.size() == sizeof(Header);
    if (known) std::memcpy(&h, a.head.data(), sizeof(Header));
    known = known && h.magic == kPortMessageMagic && h.number < pairs_.size() &&
            pairs_[h.number] &&
            rpc::equal(h.token, pairs_[h.number]->mine.token);
    if (!known) {
      port_->drop(a);
      rpc::tell_dropped();
      continue;
    }
    Pair& p = *pairs_[h.number];
    if (h.serial < p.came || p.early.size() + p.arrived.size() > kMostArrived) {
      port_->drop(a);
      p.over = "sent what nobody asked for";
      continue;
    }
    p.early.emplace(h.serial, Arrived{h, std::move(a)});
    for (auto i = p.early.begin(); i != p.early.end() && i->first == p.came;
         ++p.came) {
      p.arrived.push_back(std::move(i->second));
      i = p.early.erase(i);
    }
  }
}

// Receives those messages for which a receive is posted.
void PortMessages::take(int rank, Pair& p) {
  const ExchangeCall& mine = wait_->call();
  for (auto a = p.arrived.begin(); a != p.arrived.end();) {
    const ExchangeCall& theirs = a->header.call;
    if (theirs.sequence > mine.sequence && !wants(rank)) return;  // it is ahead
    if (!same(theirs, mine)) {
      peers_.differ(peers_.rank(), mine, ranks_[rank], theirs,
                    wait_->channel().name);
    }
    const auto posted =
        std::find_if(posted_.begin(), posted_.end(), [&](const Posted& r) {
          return r.slot == a->header.slot && r.is_for(rank);
        });
    if (posted == posted_.end()) {
      ++a;  // it may wait
      continue;
    }
    if (a->message.bytes > posted->bytes) {
      closed(rank, "sent more than was asked for");
    }
    Receiving& r = receiving_.emplace_back(
        Receiving{{}, rank, posted->box, a->message.bytes, a->message.far});
    void* const data = posted->data;
    posted_.erase(posted);
    port_->receive(a->message, data, r.op);
    a = p.arrived.erase(a);
  }
}

bool PortMessages::finish_sends() {
  const auto done = [&](const Sending& s) {
    if (!s.op.done) return false;
    if (s.op.error != nullptr) closed(s.to, s.op.error);
    live_counts::add_sent(static_cast<int64_t>(s.bytes + sizeof(Header)));
    s.box->sent.push_back(s.to);
    return true;
  };
  return std::erase_if(sending_, done) > 0;
}

bool PortMessages::finish_receives() {
  const auto done = [&](const Receiving& r) {
    if (!r.op.done) return false;
    Pair& p = *pairs_[r.from];
    if (r.op.error != nullptr) closed(r.from, r.op.error);
    if (r.far) {
      // A process that has gone may have used the memory for something else
      // while it was read.
      look_at_socket(p);
      if (!p.over.empty()) closed(r.from, p.over);
    }
    live_counts::add_received(static_cast<int64_t>(r.bytes + sizeof(Header)));
    r.box->bytes.push_back(static_cast<int64_t>(r.bytes));
    r.box->received.push_back(r.from);
    return true;
  };
  return std::erase_if(receiving_, done) > 0;
}

bool PortMessages::move() {
  bool moved = false;
  for (int r = 0; r < size(); ++r) {
    if (pairs_[r] && connected(r, *pairs_[r])) moved |= flush(*pairs_[r]);
  }
  moved |= port_->progress();
  sort_arrivals();
  for (int r = 0; r < size(); ++r) {
    if (pairs_[r]) take(r, *pairs_[r]);
  }
  moved |= finish_sends();
  moved |= finish_receives();
  return moved;
}

// The awaited rank; of several, the first that has sent nothing.
int PortMessages::awaited() const {
  if (!posted_.empty()) return ranks_[posted_[0].from[0]];
  if (!receiving_.empty()) return ranks_[receiving_.front().from];
  if (!sending_.empty()) return ranks_[sending_.front().to];
  return ranks_[me_ == 0 ? size() - 1 : 0];
}

// Waits for messages, for the end of a pair or of the generation.
void PortMessages::sleep() {
  int slice_ms = wait_->slice_ms();
  polled_.assign(1, {peers_.end_fd(), POLLIN, 0});
  polled_.push_back({port_->fd(), POLLIN, 0});
  std::vector<int> of = {-1, -1};
  for (int r = 0; r < size(); ++r) {
    if (!pairs_[r]) continue;
    Pair& p = *pairs_[r];
    if (p.connection >= 0) {
      if (const char* why = port_->broken(p.connection)) p.over = why;
    }
    if (!p.over.empty()) {
      // A rank that has sent everything may leave before others.
      if (wants(r) || busy_with(r)) closed(r, p.over);
    } else if (p.socket) {
      polled_.push_back({p.socket.fd(), POLLIN, 0});
      of.push_back(r);
    } else {
      slice_ms = 1;
    }
  }
  wait_->check(awaited());
  if (!port_->arm()) return;  // something came meanwhile
  if (poll(polled_.data(), polled_.size(), slice_ms) <= 0) return;
  for (size_t i = 2; i < polled_.size(); ++i) {
    Pair& p = *pairs_[of[i]];
    // Before the hello it is read elsewhere.
    if (polled_[i].revents != 0 && p.connection >= 0) look_at_socket(p);
  }
}

void PortMessages::abandon() {
  port_.reset();
  posted_.clear();
  sending_.clear();
  receiving_.clear();
  pairs_.clear();
}

void PortMessages::end() {
  run_until([&] { return sending_.empty(); });
  flushed_ = {};
  port_->flush(flushed_);
  run_until([&] { return flushed_.done; });
}

void PortMessages::forget(Box& box) {
  std::erase_if(posted_, [&](const Posted& r) { return r.box == &box; });
  const auto refers = [&](const auto& x) { return x.box == &box; };
  if (std::any_of(sending_.begin(), sending_.end(), refers) ||
      std::any_of(receiving_.begin(), receiving_.end(), refers)) {
    abandon();
  }
}

std::unique_ptr<Messages> make_messages(Peers& peers, std::vector<int> ranks,
                                        int me) {
  if (peers.options().ucx) {
    return std::make_unique<PortMessages>(peers, std::move(ranks), me);
  }
  return std::make_unique<SocketMessages>(peers, std::move(ranks), me);
}

}  // namespace berth::exchange
