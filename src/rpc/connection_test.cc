// Connections over gRPC streams, on a stream that keeps what is sent.

#include "rpc/connection.h"

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <numeric>
#include <thread>

#include "berth/ops/array.h"
#include "rpc/threads.h"
#include "tensor/tensor_impl.h"

namespace berth::rpc {
namespace {

// Keeps what is sent, in the memory that it was sent from.
class KeptStream : public GrpcStream {
 public:
  struct Sent {
    std::shared_ptr<const void> owner;
    std::vector<iovec> parts;
  };

  void send(std::string bytes) override {
    const auto owner = std::make_shared<std::string>(std::move(bytes));
    const iovec part{owner->data(), owner->size()};
    send_parts(owner, std::span(&part, 1));
  }
  void send_parts(std::shared_ptr<const void> owner,
                  std::span<const iovec> parts) override {
    for (const iovec& p : parts) queued_ += p.iov_len;
    sent.push_back({std::move(owner), {parts.begin(), parts.end()}});
  }
  size_t queued() const override { return queued_; }
  bool idle() const override { return true; }
  void resume() override { ++resumed; }
  void close(bool) override { closed = true; }
  void all_is_sent() { queued_ = 0; }

  std::vector<Sent> sent;
  int resumed = 0;
  bool closed = false;

 private:
  std::atomic<size_t> queued_{0};
};

StreamBytes bytes_in_parts(std::string text, size_t first) {
  const auto owner = std::make_shared<std::string>(std::move(text));
  StreamBytes bytes;
  bytes.parts = {{owner->data(), first},
                 {owner->data() + first, owner->size() - first}};
  bytes.size = owner->size();
  bytes.owner = owner;
  return bytes;
}

TEST(GrpcConnection, SendsATensorFromWhereItLies) {
  const auto stream = std::make_shared<KeptStream>();
  GrpcConnection connection;
  connection.attach(stream);
  const Tensor t = zeros({3 << 18});  // 3 MiB
  OutgoingMessage message = pack(MessageKind::kRequest, 7, 0, {"text", {t}});
  const auto* begin = reinterpret_cast<const char*>(t.impl()->data());
  const std::string head = message.head;
  ASSERT_TRUE(connection.write_now(&message));

  std::string first;
  const char* expected = begin;
  size_t tensor_bytes = 0;
  for (const KeptStream::Sent& s : stream->sent) {
    size_t together = 0;
    for (const iovec& p : s.parts) {
      together += p.iov_len;
      if (first.empty()) {
        first.assign(static_cast<const char*>(p.iov_base), p.iov_len);
        continue;
      }
      EXPECT_EQ(p.iov_base, expected);
      expected += p.iov_len;
      tensor_bytes += p.iov_len;
    }
    EXPECT_LE(together, size_t{1} << 20);
  }
  EXPECT_EQ(first, head);
  EXPECT_EQ(tensor_bytes, size_t{3} << 20);
}

TEST(GrpcConnection, ReadsAcrossPartsAndMessages) {
  const auto stream = std::make_shared<KeptStream>();
  GrpcConnection connection;
  connection.attach(stream);
  const GrpcStream::Events events = connection.events();
  events.on_bytes(bytes_in_parts("abcdef", 1));
  events.on_bytes(bytes_in_parts("ghij", 3));
  char read[8] = {};
  EXPECT_EQ(connection.read(read, 4), "");
  EXPECT_EQ(std::string(read, 4), "abcd");
  EXPECT_EQ(connection.read(read, 5), "");
  EXPECT_EQ(std::string(read, 5), "efghi");
  events.on_closed({});
  EXPECT_EQ(connection.read(read, 1), "");  // what came before the end
  EXPECT_EQ(read[0], 'j');
  EXPECT_EQ(connection.read(read, 1), "connection closed");
}

TEST(GrpcConnection, HoldsBothEndsBackWhenMuchWaits) {
  const auto stream = std::make_shared<KeptStream>();
  GrpcConnection connection;
  connection.attach(stream);
  const GrpcStream::Events events = connection.events();
  // What arrives: at most 8 MiB wait for the reader, then it goes on.
  const std::string piece(1 << 20, 'x');
  int taken = 0;
  while (events.on_bytes(bytes_in_parts(piece, 5))) ASSERT_LT(++taken, 9);
  EXPECT_EQ(taken, 8);
  std::string read(6 << 20, ' ');
  EXPECT_EQ(connection.read(read.data(), read.size()), "");
  EXPECT_EQ(read, std::string(6 << 20, 'x'));
  EXPECT_EQ(stream->resumed, 1);
  // What is sent: write() waits until the stream has sent the rest.
  const Tensor t = zeros({9 << 18});
  OutgoingMessage big = pack(MessageKind::kReply, 1, 0, {"", {t}});
  ASSERT_TRUE(connection.write_now(&big));
  OutgoingMessage more = pack(MessageKind::kReply, 2, 0, {"more", {}});
  EXPECT_FALSE(connection.write_now(&more));
  const size_t before = stream->sent.size();
  std::thread writer([&] { EXPECT_EQ(connection.write(std::move(more)), ""); });
  stream->all_is_sent();
  events.on_sent();
  writer.join();
  EXPECT_EQ(stream->sent.size(), before + 1);
}

TEST(GrpcConnection, EndsWaitsWhenItIsShutDown) {
  const auto stream = std::make_shared<KeptStream>();
  GrpcConnection connection;
  connection.attach(stream);
  std::thread reader([&] {
    char byte;
    EXPECT_EQ(connection.read(&byte, 1), "connection closed");
  });
  connection.shutdown();
  reader.join();
  EXPECT_TRUE(stream->closed);
  EXPECT_TRUE(connection.events().on_bytes(bytes_in_parts("late", 1)));
  EXPECT_EQ(connection.write(pack(MessageKind::kReply, 1, 0, {"late", {}})),
            "connection closed");
}

TEST(Threads, DoNotWaitForThemselves) {
  Threads threads;
  std::promise<bool> waited;
  threads.start([&] { waited.set_value(threads.wait(60)); });
  auto result = waited.get_future();
  ASSERT_EQ(result.wait_for(std::chrono::seconds(30)),
            std::future_status::ready);
  EXPECT_TRUE(result.get());
  EXPECT_TRUE(threads.wait(60));
}

}  // namespace
}  // namespace berth::rpc
