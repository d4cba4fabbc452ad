#include "rpc/exchange/gloo_transport.h"

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <string>
#include <vector>

namespace berth::exchange {

namespace {

namespace tp = gloo::transport;

// The call has the deadline, not Gloo.
constexpr auto kNever = std::chrono::hours(24 * 365);

class MessageBuffer final : public tp::UnboundBuffer {
 public:
  MessageBuffer(Messages& messages, void* data, size_t bytes)
      : UnboundBuffer(data, bytes), messages_(messages) {}
  ~MessageBuffer() override {
    if (posted_ > sent_ + received_) messages_.forget(box_);
  }

  bool waitRecv(int* rank, std::chrono::milliseconds) override {
    messages_.wait_received(box_, received_ + 1);
    const int from = box_.received[received_++];
    if (rank != nullptr) *rank = from;
    return true;
  }
  bool waitSend(int* rank, std::chrono::milliseconds) override {
    messages_.wait_sent(box_, sent_ + 1);
    const int to = box_.sent[sent_++];
    if (rank != nullptr) *rank = to;
    return true;
  }
  // Never aborted: the end of a generation wakes waiting threads.
  void abortWaitRecv() override {}
  void abortWaitSend() override {}

  void send(int rank, uint64_t slot, size_t offset, size_t bytes) override {
    ++posted_;
    messages_.send(rank, slot, static_cast<std::byte*>(ptr) + offset,
                   length(offset, bytes), box_);
  }
  void recv(int rank, uint64_t slot, size_t offset, size_t bytes) override {
    ++posted_;
    messages_.receive(rank, slot, static_cast<std::byte*>(ptr) + offset,
                      length(offset, bytes), box_);
  }
  void recv(std::vector<int> ranks, uint64_t slot, size_t offset,
            size_t bytes) override {
    ++posted_;
    messages_.receive(ranks, slot, static_cast<std::byte*>(ptr) + offset,
                      length(offset, bytes), box_);
  }

 private:
  size_t length(size_t offset, size_t bytes) const {
    return bytes == kUnspecifiedByteCount ? size - offset : bytes;
  }

  Messages& messages_;
  Messages::Box box_;
  size_t posted_ = 0, sent_ = 0, received_ = 0;
};

class WireAddress final : public tp::Address {
 public:
  std::string str() const override { return "a rank of the exchange"; }
  std::vector<char> bytes() const override { return {}; }
};

class WirePair final : public tp::Pair {
 public:
  explicit WirePair(int rank) : rank_(rank) {}
  const tp::Address& address() const override { return address_; }
  void connect(const std::vector<char>&) override {}  // connected on first use
  void close() override {}
  void setSync(bool, bool) override {}
  // Used by older algorithms only, which are not called.
  std::unique_ptr<tp::Buffer> createSendBuffer(int, void*, size_t) override {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("buffers are not bound to pairs");
  }
  std::unique_ptr<tp::Buffer> createRecvBuffer(int, void*, size_t) override {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("buffers are not bound to pairs");
  }
  void send(tp::UnboundBuffer* buffer, uint64_t slot, size_t offset,
            size_t bytes) override {
    buffer->send(rank_, slot, offset, bytes);
  }
  void recv(tp::UnboundBuffer* buffer, uint64_t slot, size_t offset,
            size_t bytes) override {
    buffer->recv(rank_, slot, offset, bytes);
  }

 private:
  const int rank_;
  WireAddress address_;
};

class MessageContext final : public tp::Context {
 public:
  explicit MessageContext(Messages& messages)
      : tp::Context(messages.me(), messages.size()), messages_(messages) {}
  std::unique_ptr<tp::Pair>& getPair(int rank) override {
    return pairs_.at(rank) ? pairs_[rank] : createPair(rank);
  }
  std::unique_ptr<tp::Pair>& createPair(int rank) override {
    return pairs_.at(rank) = std::make_unique<WirePair>(rank);
  }
  std::unique_ptr<tp::UnboundBuffer> createUnboundBuffer(
      void* data, size_t bytes) override {
    return std::make_unique<MessageBuffer>(messages_, data, bytes);
  }

 private:
  Messages& messages_;
};

class MessageDevice final : public tp::Device {
 public:
  explicit MessageDevice(Messages& messages) : messages_(messages) {}
  std::string str() const override { return "messages of the exchange"; }
  const std::string& getPCIBusID() const override { return bus_; }
  std::shared_ptr<tp::Context> createContext(int, int) override {
    return std::make_shared<MessageContext>(messages_);
  }

 private:
  Messages& messages_;
  const std::string bus_;
};

}  // namespace

class Gloo::Context final : public gloo::Context {
 public:
  explicit Context(Messages& messages)
      : gloo::Context(messages.me(), messages.size()) {
    device_ = std::make_shared<MessageDevice>(messages);
    transportContext_ = device_->createContext(rank, size);
    setTimeout(kNever);
  }
};

Gloo::Gloo(Messages& messages)
    : messages_(messages), context_(std::make_shared<Context>(messages)) {}

Gloo::~Gloo() = default;

void Gloo::all_reduce(void* data, int64_t count, DType dtype,
                      cluster::Reduction reduction, Algorithm algorithm,
                      uint32_t tag) {
  gloo::AllreduceOptions options(context_);
  const auto by_bytes = [&]<class T>(T*) {
    options.setOutput(static_cast<T*>(data), count);
  };
  switch (size_of(dtype)) {  // Gloo only knows the size of elements
    case 8:
      by_bytes(static_cast<uint64_t*>(nullptr));
      break;
    case 4:
      by_bytes(static_cast<uint32_t*>(nullptr));
      break;
    case 2:
      by_bytes(static_cast<uint16_t*>(nullptr));
      break;
    default:
      by_bytes(static_cast<uint8_t*>(nullptr));
  }
  options.setAlgorithm(algorithm == Algorithm::kBcube
                           ? gloo::AllreduceOptions::Algorithm::BCUBE
                           : gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction(
      [&](void* out, const void* a, const void* b, size_t n) {
        const void* in[] = {a, b};
        sums_.chain(in, out, static_cast<int64_t>(n), dtype, reduction);
      });
  options.setTag(tag);
  gloo::allreduce(options);
}

void Gloo::all_gather(std::span<const int64_t> bytes, void* out, uint32_t tag) {
  gloo::AllgathervOptions options(context_);
  options.setOutput(static_cast<uint8_t*>(out),
                    std::vector<size_t>(bytes.begin(), bytes.end()));
  options.setTag(tag);
  gloo::allgatherv(options);
}

void Gloo::broadcast(void* data, int64_t bytes, int root, uint32_t tag) {
  gloo::BroadcastOptions options(context_);
  options.setOutput(static_cast<uint8_t*>(data), bytes);
  options.setRoot(root);
  options.setTag(tag);
  gloo::broadcast(options);
}

}  // namespace berth::exchange
