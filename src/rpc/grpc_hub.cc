// The only source that includes gRPC.

#include <fcntl.h>
#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <condition_variable>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "rpc/grpc_stream.h"

namespace berth::rpc {

namespace {

constexpr const char* kTicket = "berth-hello-bin";
constexpr int kFrameBytes = 1 << 20;  // of HTTP/2; the default is 16 KiB
// The window of a stream is fixed: gRPC's own estimate stays far below what a
// fast network takes and halves the rate of large tensors on loopback.
constexpr int kWindowBytes = 8 << 20;
constexpr const char* kMethod = "/berth.Cluster/Stream";

// Takes ownership of the string, without a copy.
grpc::ByteBuffer buffer_of(std::string bytes) {
  auto* owned = new std::string(std::move(bytes));  // NOLINT: gRPC frees it
  const grpc::Slice slice(
      owned->data(), owned->size(),
      [](void* s) { delete static_cast<std::string*>(s); }, owned);
  return grpc::ByteBuffer(&slice, 1);
}

// Each slice keeps the owner.
grpc::ByteBuffer buffer_of(const std::shared_ptr<const void>& owner,
                           std::span<const iovec> parts) {
  using Owner = std::shared_ptr<const void>;
  std::vector<grpc::Slice> slices;
  slices.reserve(parts.size());
  for (const iovec& part : parts) {
    auto* owned = new Owner(owner);  // NOLINT: gRPC frees it
    slices.emplace_back(
        part.iov_base, part.iov_len,
        [](void* o) { delete static_cast<Owner*>(o); }, owned);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

StreamBytes pieces_of(const grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  StreamBytes bytes;
  if (!buffer.Dump(slices.get()).ok()) return bytes;
  for (const grpc::Slice& s : *slices) {
    bytes.parts.push_back({const_cast<uint8_t*>(s.begin()), s.size()});
    bytes.size += s.size();
  }
  bytes.owner = std::move(slices);
  return bytes;
}

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return {};
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& s : slices) {
    bytes.append(reinterpret_cast<const char*>(s.begin()), s.size());
  }
  return bytes;
}

Refusal refusal_of(const grpc::Status& status) {
  const int code = static_cast<int>(status.error_code());
  // The codes are gRPC's, except 16, which TLS reports.
  return {code >= 1 && code <= 15 ? static_cast<errors::Code>(code)
                                  : errors::Code::kPermissionDenied,
          status.error_message()};
}

// The number of streams with outstanding gRPC callbacks.
struct Live {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
  void add(int n) {
    std::lock_guard lock(mutex);
    count += n;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return count == 0; });
  }
};

// The common part of both ends of a stream. `Reactor` has gRPC's StartRead and
// StartWrite; every callback takes the mutex first.
template <class Reactor>
class Stream : public GrpcStream, public Reactor {
 public:
  void send(std::string bytes) override {
    const size_t size = bytes.size();
    enqueue({buffer_of(std::move(bytes)), size});
  }
  void send_parts(std::shared_ptr<const void> owner,
                  std::span<const iovec> parts) override {
    size_t size = 0;
    for (const iovec& part : parts) size += part.iov_len;
    enqueue({buffer_of(owner, parts), size});
  }
  size_t queued() const override {
    std::lock_guard lock(mutex_);
    return ended_ ? 0 : queued_;
  }
  bool idle() const override {
    std::lock_guard lock(mutex_);
    return ended_ || (!writing_ && queue_.empty());
  }
  void resume() override {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!paused_) {  // on_message() has not returned yet
      resumed_ = true;
      return;
    }
    paused_ = false;
    Reactor::StartRead(&incoming_);
  }
  void close(bool now) override {
    std::lock_guard lock(mutex_);
    closing_ = true;
    if (ended_) return;
    if (now) {
      queue_.clear();
      return cancel();
    }
    if (!writing_) finish_writing();
  }

  void OnReadDone(bool ok) override {
    std::unique_lock lock(mutex_);
    if (!ok) return read_ended();
    const auto on_message = events_.on_message;
    const auto on_bytes = events_.on_bytes;
    bool more = true;
    lock.unlock();  // gRPC does not touch `incoming_` until the next read
    if (on_bytes) {
      StreamBytes bytes = pieces_of(incoming_);
      incoming_.Clear();
      more = on_bytes(std::move(bytes));
    } else if (on_message) {
      std::string bytes = bytes_of(incoming_);
      incoming_.Clear();
      more = on_message(std::move(bytes));
    }
    lock.lock();
    paused_ = !more && !std::exchange(resumed_, false);
    if (!paused_) Reactor::StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    std::unique_lock lock(mutex_);
    writing_ = false;
    if (!ok) {
      queue_.clear();
      return write_failed();
    }
    write_next();
    if (closing_ && !writing_) finish_writing();
    const auto on_sent = events_.on_sent;
    lock.unlock();
    if (on_sent) on_sent();
  }

 protected:
  // Called with the mutex held.
  virtual void cancel() = 0;
  virtual void finish_writing() = 0;
  virtual void read_ended() = 0;
  virtual void write_failed() {}

  struct Item {
    grpc::ByteBuffer buffer;
    size_t size;
  };
  void enqueue(Item item) {
    std::lock_guard lock(mutex_);
    if (ended_ || closing_) return;
    queued_ += item.size;
    queue_.push_back(std::move(item));
    write_next();
  }
  void write_next() {
    if (writing_ || queue_.empty()) return;
    writing_ = true;
    outgoing_ = std::move(queue_.front().buffer);
    queued_ -= queue_.front().size;
    queue_.pop_front();
    Reactor::StartWrite(&outgoing_);
  }
  void end(const Refusal& why) {
    std::unique_lock lock(mutex_);
    ended_ = true;
    queue_.clear();
    const Events events = std::exchange(events_, {});
    auto self = std::move(self_);
    lock.unlock();
    if (events.on_closed) events.on_closed(why);
  }

  mutable std::mutex mutex_;
  Events events_;
  std::shared_ptr<GrpcStream> self_;  // until gRPC releases it
  grpc::ByteBuffer incoming_, outgoing_;
  std::deque<Item> queue_;
  size_t queued_ = 0;
  bool writing_ = false, paused_ = false, resumed_ = false, closing_ = false,
       ended_ = false;
};

class ClientStream final
    : public Stream<
          grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  void start(const std::shared_ptr<ClientStream>& self,
             const std::shared_ptr<grpc::Channel>& channel,
             const std::string& ticket, Events events,
             std::shared_ptr<Live> live) {
    std::lock_guard lock(mutex_);
    live_ = std::move(live);
    live_->add(1);
    self_ = self;
    events_ = std::move(events);
    channel_ = channel;
    stub_ = std::make_unique<grpc::GenericStub>(channel);
    context_.AddMetadata(kTicket, ticket);
    stub_->PrepareBidiStreamingCall(&context_, kMethod, {}, this);
    AddHold();  // writes start outside of callbacks
    StartRead(&incoming_);
    StartCall();
  }

  void OnReadInitialMetadataDone(bool ok) override {
    std::unique_lock lock(mutex_);
    const auto on_open = ok ? events_.on_open : nullptr;
    lock.unlock();
    if (on_open) on_open();
  }
  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<Live> live = live_;
    end_with(status);
    live->add(-1);
  }

 private:
  void end_with(const grpc::Status& status) {
    if (status.ok()) {
      end({errors::Code::kUnavailable, "connection closed"});
    } else {
      end(refusal_of(status));
    }
  }
  void cancel() override { context_.TryCancel(); }
  void finish_writing() override {
    if (!held_ || std::exchange(half_closed_, true)) return;
    StartWritesDone();
  }
  void read_ended() override {
    closing_ = true;  // no new writes
    queue_.clear();
    if (std::exchange(held_, false)) RemoveHold();
  }

  grpc::ClientContext context_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::shared_ptr<Live> live_;
  bool held_ = true, half_closed_ = false;
};

class ServerStream final : public Stream<grpc::ServerGenericBidiReactor> {
 public:
  void start(const std::shared_ptr<ServerStream>& self,
             grpc::GenericCallbackServerContext* context, Events events) {
    std::lock_guard lock(mutex_);
    self_ = self;
    events_ = std::move(events);
    context_ = context;
    StartSendInitialMetadata();
    StartRead(&incoming_);
  }
  void OnDone() override {
    end({errors::Code::kUnavailable, "connection closed"});
  }

 private:
  void cancel() override {
    if (!finished_) context_->TryCancel();
  }
  void finish_writing() override { finish(); }
  void read_ended() override {
    closing_ = true;
    queue_.clear();
    if (!writing_) finish();
  }
  void write_failed() override {
    if (closing_) finish();
  }
  void finish() {
    if (!std::exchange(finished_, true)) Finish(grpc::Status::OK);
  }

  grpc::GenericCallbackServerContext* context_ = nullptr;
  bool finished_ = false;
};

// A stream that is refused at once.
class RefusedStream final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedStream(const Refusal& why) {
    Finish(grpc::Status(static_cast<grpc::StatusCode>(why.code), why.reason));
  }
  void OnDone() override { delete this; }
};

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) {
    throw errors::InvalidArgument(
        fmt::format("the TLS file '{}' cannot be read; expected PEM", path));
  }
  return text.str();
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(-1);
  args.SetMaxSendMessageSize(-1);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  args.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  args.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return args;
}

}  // namespace

struct GrpcHub::Impl final : public grpc::CallbackGenericService {
  Impl(const Handshake::Gate& gate, const TlsFiles& tls, OnStream on_stream)
      : gate(gate), tls(tls), on_stream(std::move(on_stream)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const std::string peer = context->peer();
    std::optional<Refusal> refusal;
    Hello hello;
    try {
      const auto& metadata = context->client_metadata();
      const auto found = metadata.find(kTicket);
      const std::string_view ticket =
          found == metadata.end()
              ? std::string_view()
              : std::string_view(found->second.data(), found->second.size());
      hello = parse_ticket(ticket, gate, &refusal);
    } catch (const errors::Error& e) {
      refusal = Refusal{errors::Code::kPermissionDenied, e.what()};
    }
    if (!refusal && !tls) {
      std::lock_guard lock(mutex);
      const auto from = peers.find(peer);
      if (from == peers.end() || from->second != hello.from) {
        refusal = Refusal{errors::Code::kPermissionDenied,
                          "a stream of another task than its connection's"};
      }
    }
    if (refusal) return new RefusedStream(*refusal);  // NOLINT: deletes itself
    auto stream = std::make_shared<ServerStream>();
    stream->start(stream, context, on_stream(stream, hello));
    return stream.get();
  }

  const Handshake::Gate& gate;
  const TlsFiles tls;
  const OnStream on_stream;
  std::string ca, certificate, key;
  int port = 0;
  std::mutex mutex;
  std::map<std::string, TaskId> peers;  // by gRPC's name of the connection
  std::map<TaskId, std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::weak_ptr<ClientStream>> opened;
  const std::shared_ptr<Live> live = std::make_shared<Live>();
  std::unique_ptr<grpc::Server> server;
};

GrpcHub::GrpcHub(const Handshake::Gate& gate, const TlsFiles& tls,
                 const std::string& listen, OnStream on_stream)
    : impl_(std::make_unique<Impl>(gate, tls, std::move(on_stream))) {
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(impl_.get());
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                             kWindowBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  if (tls) {
    impl_->ca = file_text(tls.ca);
    impl_->certificate = file_text(tls.certificate);
    impl_->key = file_text(tls.key);
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = impl_->ca;
    options.pem_key_cert_pairs.push_back({impl_->key, impl_->certificate});
    builder.AddListeningPort(listen, grpc::SslServerCredentials(options),
                             &impl_->port);
  }
  impl_->server = builder.BuildAndStart();
  if (!impl_->server || (tls && impl_->port == 0)) {
    throw errors::AlreadyExists(fmt::format(
        "gRPC cannot serve {}: the port is in use by another process, or the "
        "certificate {} and its key do not belong together",
        listen, tls.certificate));
  }
}

GrpcHub::~GrpcHub() { stop(); }

void GrpcHub::stop() {
  std::vector<std::weak_ptr<ClientStream>> opened;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->channels.clear();
    opened.swap(impl_->opened);
  }
  for (const auto& weak : opened) {
    if (const auto stream = weak.lock()) stream->close(true);
  }
  impl_->live->wait();
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
}

int GrpcHub::port() const { return impl_->port; }

void GrpcHub::add(Socket socket, const TaskId& from) {
  const int fd = socket.release();
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);  // required by gRPC
  {
    std::lock_guard lock(impl_->mutex);
    impl_->peers[fmt::format("fd:{}", fd)] = from;
  }
  grpc::AddInsecureChannelFromFd(impl_->server.get(), fd);
}

void GrpcHub::forget(const TaskId& task) {
  std::lock_guard lock(impl_->mutex);
  impl_->channels.erase(task);
}

std::shared_ptr<GrpcStream> GrpcHub::open(
    const std::string& address, const Hello& hello,
    const std::function<Socket()>& connect, GrpcStream::Events events) {
  std::shared_ptr<grpc::Channel> channel;
  {
    std::lock_guard lock(impl_->mutex);
    const auto found = impl_->channels.find(hello.to);
    if (found != impl_->channels.end()) channel = found->second;
  }
  if (!channel && impl_->tls) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = impl_->ca;
    options.pem_private_key = impl_->key;
    options.pem_cert_chain = impl_->certificate;
    channel = grpc::CreateCustomChannel(address, grpc::SslCredentials(options),
                                        channel_arguments());
  } else if (!channel) {
    Socket socket = connect();
    channel = grpc::CreateCustomInsecureChannelFromFd("berth", socket.release(),
                                                      channel_arguments());
  }
  auto stream = std::make_shared<ClientStream>();
  {
    std::lock_guard lock(impl_->mutex);
    impl_->channels[hello.to] = channel;
    std::erase_if(impl_->opened, [](const auto& w) { return w.expired(); });
    impl_->opened.push_back(stream);
  }
  stream->start(stream, channel, encode_ticket(hello, impl_->gate.secret),
                std::move(events), impl_->live);
  return stream;
}

}  // namespace berth::rpc
