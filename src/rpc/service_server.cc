#include "rpc/service_server.h"

#include <fmt/format.h>

#include <cstdio>

#include "device/device_manager.h"
#include "rpc/connection.h"
#include "rpc/message_frame.h"
#include "rpc/service_client.h"
#include "tensor/tensor_impl.h"

namespace berth::rpc {

void Services::serve(const std::string& name, Handler handler) {
  std::lock_guard lock(mutex_);
  handlers_[name] = std::move(handler);
  changed_.notify_all();
}

Handler Services::find(const std::string& name,
                       const std::function<bool()>& ended) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return handlers_.contains(name) || ended(); });
  const auto found = handlers_.find(name);
  return found == handlers_.end() ? Handler() : found->second;
}

void Services::wake() {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Services::clear() {
  std::map<std::string, Handler> handlers;
  std::lock_guard lock(mutex_);
  handlers.swap(handlers_);
}

ServiceCalls::ServiceCalls(Link& link, Services& services,
                           bool same_host_by_unix,
                           std::function<bool(const TaskId&)> may_go)
    : link_(link),
      services_(services),
      by_unix_(same_host_by_unix),
      may_go_(std::move(may_go)) {}

ServiceCalls::~ServiceCalls() {
  end(nullptr);
  while (!threads_.wait(10)) {
    std::fprintf(stderr,
                 "berth: %s: waiting for a handler of a service to return\n",
                 link_.task().str().c_str());
  }
}

std::future<Message> ServiceCalls::call(const TaskId& to,
                                        const std::string& service,
                                        Message request,
                                        double timeout_seconds) {
  std::shared_ptr<ServiceClient> client;
  {
    std::lock_guard lock(mutex_);
    if (ended_) {
      if (failure_) errors::raise(failure_->code, failure_->message);
      throw errors::Cancelled(
          fmt::format("a call of '{}' at {} after the cluster has ended",
                      service, to.str()));
    }
    std::shared_ptr<ServiceClient>& c = clients_[{to, service}];
    if (!c || c->ended()) {
      const bool unix_socket = by_unix_ && link_.same_host(to);
      c = std::make_shared<ServiceClient>(
          link_, to, service, unix_socket ? Route::kUnix : Route::kTcp,
          may_go_ && may_go_(to));
      c->start(threads_);
    }
    client = c;
  }
  if (timeout_seconds <= 0) timeout_seconds = link_.timeout_seconds();
  return client->call(std::move(request), timeout_seconds);
}

void ServiceCalls::accepted(Accepted accepted) {
  auto shared = std::make_shared<Accepted>(std::move(accepted));
  threads_.start([this, shared] { answer(std::move(*shared)); });
}

namespace {

OutgoingMessage error_message(uint64_t id, errors::Code code,
                              const std::string& text) {
  return pack(MessageKind::kError, id, static_cast<int32_t>(code),
              {.text = text.substr(0, 1 << 20)});
}

OutgoingMessage run_handler(const Handler& handler, const TaskId& from,
                            uint64_t id, Message request) {
  try {
    return pack(MessageKind::kReply, id, 0, handler(from, std::move(request)));
  } catch (const errors::Error& e) {
    return error_message(id, e.code(), e.what());
  } catch (const std::exception& e) {
    return error_message(id, errors::Code::kInternal, e.what());
  } catch (...) {
    return error_message(
        id, errors::Code::kUnknown,
        "the handler threw something other than a std::exception");
  }
}

}  // namespace

void ServiceCalls::answer(Accepted a) {
  const auto ended = [this] {
    std::lock_guard lock(mutex_);
    return ended_;
  };
  std::shared_ptr<Connection> connection = std::move(a.connection);
  try {
    if (!connection) {
      connection =
          connection_of(std::move(a.socket), a.route, link_.loopback_only());
    }
  } catch (const errors::Error&) {
    return;  // the caller sees that it is closed
  }
  Handler handler;
  for (;;) {
    MessageHead head;
    Message request;
    try {
      // A lost caller is reported elsewhere.
      if (!read_message(*connection, &head, &request).empty()) return;
    } catch (const std::exception& e) {
      // Invalid bytes: whatever follows them is meaningless, too.
      if (!ended()) link_.lost(a.from, e.what());
      return;
    }
    handler = services_.find(a.channel, ended);
    if (!handler) return;
    OutgoingMessage reply =
        run_handler(handler, a.from, head.id, std::move(request));
    if (!connection->write(std::move(reply)).empty()) return;
  }
}

void ServiceCalls::tick() {
  std::vector<std::shared_ptr<ServiceClient>> clients;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, client] : clients_) clients.push_back(client);
  }
  for (const auto& client : clients) client->tick();
}

void ServiceCalls::drop(const TaskId& task, const std::string& message) {
  std::vector<std::shared_ptr<ServiceClient>> clients;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, client] : clients_) {
      if (key.first == task) clients.push_back(client);
    }
  }
  for (const auto& client : clients) {
    client->end(std::make_exception_ptr(errors::Unavailable(message)));
  }
}

void ServiceCalls::end(const ClusterFailure* failure) {
  std::map<std::pair<TaskId, std::string>, std::shared_ptr<ServiceClient>>
      clients;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    if (failure) failure_ = std::make_shared<ClusterFailure>(*failure);
    clients.swap(clients_);
  }
  services_.wake();
  std::exception_ptr why;
  try {
    if (failure) errors::raise(failure->code, failure->message);
    throw errors::Cancelled("the cluster has ended: all tasks are done");
  } catch (...) {
    why = std::current_exception();
  }
  for (const auto& [key, client] : clients) client->end(why);
}

std::string read_message(Connection& connection, MessageHead* head,
                         Message* message) {
  char bytes[kHeadBytes];
  std::string why = connection.read(bytes, sizeof(bytes));
  if (!why.empty()) return why;
  *head = parse_head({bytes, sizeof(bytes)});
  std::string rest(size_t{head->meta_bytes} + head->text_bytes, '\0');
  why = connection.read(rest.data(), rest.size());
  if (!why.empty()) return why;
  const auto heads = parse_meta(
      std::string_view(rest).substr(0, head->meta_bytes), head->tensors);
  message->text = rest.substr(head->meta_bytes);
  for (const TensorHead& t : heads) {
    if (t.dtype == string_) {
      std::string block(t.bytes, '\0');
      why = connection.read(block.data(), block.size());
      if (!why.empty()) return why;
      message->tensors.push_back(strings_from(block, t.shape));
      continue;
    }
    Tensor tensor = make_tensor(DeviceManager::get().host(), t.dtype, t.shape);
    why = connection.read_tensor(tensor.impl()->data(), t.bytes);
    if (!why.empty()) return why;
    message->tensors.push_back(std::move(tensor));
  }
  return "";
}

}  // namespace berth::rpc
