#include "rpc/port_connection.h"

#include <poll.h>

#include <cstring>
#include <utility>

#include "base/live_counts.h"
#include "base/spin.h"
#include "berth/errors.h"

namespace berth::rpc {

namespace {

constexpr double kHelloSeconds = 10;
constexpr auto kSpin = std::chrono::microseconds(50);
// What was sent before the other end closed may still be under way.
constexpr auto kLate = std::chrono::milliseconds(200);
constexpr size_t kMostEarly = 1 << 10;
constexpr const char* kHungUp = "connection closed";
constexpr const char* kForeign = "sent what nobody asked for";

void raise_if(const std::string& why) {
  if (!why.empty()) throw errors::Unavailable(why);
}

// Whether part i is a tensor that goes by the port. A message of which some is
// sent has none.
bool is_large(const OutgoingMessage& m, size_t i) {
  return m.parts[i].iov_len >= PortConnection::kLarge && i > 0 &&
         m.parts.size() == m.tensors.size() + 1 &&
         m.tensors[i - 1].dtype() != string_;
}

}  // namespace

PortConnection::PortConnection(Socket socket, bool loopback)
    : SocketConnection(std::move(socket)),
      in_(open_port(loopback)),
      out_(open_port(loopback)),
      mine_(random_token()) {
  const Deadline deadline = after(kHelloSeconds);
  const std::string hello = encode({mine_, 0, in_->address()});
  raise_if(write_all(fd(), hello.data(), hello.size(), deadline));
  std::string read;
  PortHello theirs;
  try {
    while (!parse_port_hello(read, &theirs)) {
      // Nothing is read beyond the hello.
      const size_t known = read.size();
      read.resize(std::max(port_hello_bytes(read), known + 1));
      raise_if(
          read_all(fd(), read.data() + known, read.size() - known, deadline));
    }
  } catch (const errors::DataLoss& e) {
    throw errors::Unavailable(e.what());
  }
  theirs_ = theirs.token;
  to_ = out_->connect(theirs.address);
}

bool PortConnection::hung_up(int milliseconds, int port_fd) const {
  pollfd polled[] = {{fd(), POLLRDHUP, 0}, {port_fd, POLLIN, 0}};
  return poll(polled, 2, milliseconds) > 0 && polled[0].revents != 0;
}

// Moves what a port can move until `done`; returns "" or why not.
template <class Done>
std::string PortConnection::wait(MessagePort& port, Done done) {
  auto idle_since = Clock::now();
  Deadline over = Deadline::max();
  while (!done()) {
    if (port.progress()) {
      idle_since = Clock::now();
      continue;
    }
    if (done()) break;
    if (Clock::now() - idle_since < kSpin) {
      spin_pause();
      continue;
    }
    if (&port == out_.get() && port.broken(to_) != nullptr) {
      return port.broken(to_);
    }
    if (Clock::now() >= over) return kHungUp;
    const bool sleeps = port.arm();  // false: something came meanwhile
    if (over != Deadline::max()) {
      hung_up(1);
    } else if (hung_up(sleeps ? 100 : 0, sleeps ? port.fd() : -1)) {
      over = Clock::now() + kLate;
    }
  }
  return "";
}

std::string PortConnection::send(const void* data, size_t bytes) {
  const Head head{.token = theirs_, .serial = sent_++};
  PortOp op;
  out_->send(to_, {reinterpret_cast<const char*>(&head), sizeof(head)}, data,
             bytes, op);
  std::string why = wait(*out_, [&] { return op.done; });
  if (why.empty() && op.error != nullptr) why = op.error;
  if (why.empty()) live_counts::add_sent(static_cast<int64_t>(bytes));
  return why;
}

std::string PortConnection::write(OutgoingMessage message) {
  if (!out_) return kHungUp;
  std::string why;
  bool moved = false;
  for (size_t i = 0; i < message.parts.size(); ++i) {
    const iovec& part = message.parts[i];
    if (is_large(message, i)) {
      moved = true;
      why = send(part.iov_base, part.iov_len);
    } else if (part.iov_len > 0) {
      why = write_all(fd(), part.iov_base, part.iov_len);
    }
    if (!why.empty()) break;
  }
  // It arrives although nobody calls the port until the next message.
  PortOp flushed;
  if (why.empty() && moved) {
    out_->flush(flushed);
    why = wait(*out_, [&] { return flushed.done; });
    if (why.empty() && flushed.error != nullptr) why = flushed.error;
  }
  if (!why.empty()) out_.reset();
  return why;
}

bool PortConnection::write_now(OutgoingMessage* message) {
  for (size_t i = 0; i < message->parts.size(); ++i) {
    if (is_large(*message, i)) return false;
  }
  return SocketConnection::write_now(message);
}

// Keeps messages of the other end; one without its token is of nobody here.
void PortConnection::sort_arrivals() {
  for (PortArrival a; in_->next(&a);) {
    Head h, expected;
    const bool whole = a.head.size() == sizeof(h);
    if (whole) std::memcpy(&h, a.head.data(), sizeof(h));
    const bool theirs =
        whole && h.magic == expected.magic && equal(h.token, mine_);
    if (!theirs) tell_dropped();
    if (!theirs || h.serial < came_ || early_.size() >= kMostEarly) {
      in_->drop(a);
      continue;
    }
    early_.emplace(h.serial, std::move(a));
  }
}

std::string PortConnection::receive(void* data, size_t bytes) {
  const auto here = [&] {
    sort_arrivals();
    return early_.contains(came_);
  };
  std::string why = wait(*in_, here);
  if (!why.empty()) return why;
  PortArrival arrival = std::move(early_.extract(came_++).mapped());
  if (arrival.bytes != bytes) {
    in_->drop(arrival);
    return kForeign;
  }
  const bool far = arrival.far;
  PortOp op;
  in_->receive(arrival, data, op);
  why = wait(*in_, [&] { return op.done; });
  if (!why.empty()) return why;
  if (op.error != nullptr) return op.error;
  // A process that has gone may have used the memory for something else while
  // it was read.
  if (far && hung_up(0)) return kHungUp;
  live_counts::add_received(static_cast<int64_t>(bytes));
  return "";
}

std::string PortConnection::read_tensor(void* data, size_t bytes) {
  if (bytes < kLarge) return read(data, bytes);
  if (!in_) return kHungUp;
  std::string why = receive(data, bytes);
  if (!why.empty()) in_.reset();
  return why;
}

}  // namespace berth::rpc
