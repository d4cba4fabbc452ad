// Messages: tagged messages between ranks of different hosts, on one channel.
//
// A message goes to the receive posted for its slot (its tag); each carries the
// sender's call, which must equal the receiver's. They have no thread: the
// waiting thread moves bytes. A rank that is lost ends the generation with a
// failure that names it. One thread.

#ifndef BERTH_RPC_EXCHANGE_MESSAGES_H_
#define BERTH_RPC_EXCHANGE_MESSAGES_H_

#include <memory>
#include <thread>
#include <vector>

#include "base/spin.h"
#include "rpc/exchange/peers.h"

namespace berth::exchange {

class Messages {
 public:
  // Counts the finished messages that refer to it.
  struct Box {
    std::vector<int> sent, received;  // receivers, senders; in order
    std::vector<int64_t> bytes;       // of those received
    void clear() {
      sent.clear();
      received.clear();
      bytes.clear();
    }
  };

  virtual ~Messages() = default;

  int me() const { return me_; }
  int size() const { return static_cast<int>(ranks_.size()); }

  // All messages until end() belong to this call.
  virtual void begin(Wait& wait) = 0;
  // The memory must stay valid until the box counts the message.
  virtual void send(int to, uint64_t slot, const void* data, size_t bytes,
                    Box& box) = 0;
  // Receives from any of `from`; a shorter message is allowed.
  virtual void receive(const std::vector<int>& from, uint64_t slot, void* data,
                       size_t bytes, Box& box) = 0;
  virtual void receive(int from, uint64_t slot, void* data, size_t bytes,
                       Box& box) = 0;
  // Waits until the box has counted this many.
  void wait_sent(Box& box, size_t count) {
    run_until([&] { return box.sent.size() >= count; });
  }
  void wait_received(Box& box, size_t count) {
    run_until([&] { return box.received.size() >= count; });
  }
  // Waits until what was sent arrives without further calls of this rank.
  virtual void end() = 0;
  // Drops messages that refer to the box after a failed call.
  virtual void forget(Box& box) = 0;
  // After a failed call: afterwards nothing refers to its memory.
  virtual void abandon() = 0;

 protected:
  Messages(Peers& peers, std::vector<int> ranks, int me)
      : peers_(peers), ranks_(std::move(ranks)), me_(me) {}

  // Moves bytes; while none move it spins for a moment, then sleeps.
  template <class Done>
  void run_until(Done done) {
    auto idle_since = Clock::now();
    while (!done()) {
      if (move()) {
        idle_since = Clock::now();
        continue;
      }
      if (done()) break;
      if (spins_ && Clock::now() - idle_since < kSpin && !peers_.ended()) {
        spin_pause();
        continue;
      }
      sleep();
    }
    wait_->done_waiting();
  }
  virtual bool move() = 0;   // whether any bytes moved
  virtual void sleep() = 0;  // until some can, or for a slice

  Peers& peers_;
  const std::vector<int> ranks_;  // of the exchange, by position here
  const int me_;                  // the own position
  Wait* wait_ = nullptr;

 private:
  static constexpr auto kSpin = std::chrono::microseconds(50);
  const bool spins_ = std::thread::hardware_concurrency() > 1;
};

// By sockets, or (ExchangeOptions::ucx) by UCX.
std::unique_ptr<Messages> make_messages(Peers& peers, std::vector<int> ranks,
                                        int me);

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_MESSAGES_H_
