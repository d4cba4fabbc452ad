#include "rpc/service_client.h"

#include <fmt/format.h>

#include "rpc/call_log.h"

namespace berth::rpc {

void ServiceClient::start(Threads& threads) {
  threads.start([self = shared_from_this(), &threads] {
    self->connect();
    if (!self->connected_) return;
    threads.start([self] { self->run_reader(); });
    self->run_sender();
  });
}

// On the sender's thread, the only one that sets `connection_`.
void ServiceClient::connect() {
  try {
    auto connection =
        link_.dial_connection(to_, Purpose::kCall, service_, route_);
    std::lock_guard lock(mutex_);
    connection_ = std::move(connection);
    connected_ = true;
    if (ended_) connection_->shutdown();
  } catch (const errors::Unavailable& e) {
    broken(e.what());
  } catch (const std::exception&) {
    end(std::current_exception());
  }
}

std::future<Message> ServiceClient::call(Message request, double seconds) {
  int64_t bytes = static_cast<int64_t>(request.text.size());
  for (const Tensor& t : request.tensors) {
    bytes += t.num_elements() * static_cast<int64_t>(size_of(t.dtype()));
  }
  Pending p{{}, after(seconds), seconds, 0};
  std::future<Message> result = p.promise.get_future();
  std::unique_lock lock(mutex_);
  const uint64_t id = ++next_id_;
  lock.unlock();
  OutgoingMessage out = pack(MessageKind::kRequest, id, 0, std::move(request));
  lock.lock();
  if (ended_) {
    p.promise.set_exception(ended_);
    return result;
  }
  p.logged = CallLog::get().begin("call", service_, to_.str(), id, bytes);
  pending_.emplace(id, std::move(p));
  queue_.push_back(std::move(out));
  if (connected_ && !sending_ && queue_.size() == 1) send_at_once(lock);
  if (!queue_.empty()) changed_.notify_all();
  return result;
}

void ServiceClient::send_at_once(std::unique_lock<std::mutex>& lock) {
  sending_ = true;
  OutgoingMessage out = std::move(queue_.front());
  queue_.pop_front();
  lock.unlock();
  const bool sent = connection_->write_now(&out);
  lock.lock();
  sending_ = false;
  if (!sent) queue_.push_front(std::move(out));
  if (!queue_.empty()) changed_.notify_all();
}

void ServiceClient::run_sender() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      return ended_ || broken_ || (!queue_.empty() && !sending_);
    });
    if (ended_ || broken_) break;
    sending_ = true;
    OutgoingMessage out = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const std::string why = connection_->write(std::move(out));
    lock.lock();
    sending_ = false;
    if (why.empty()) continue;
    lock.unlock();
    broken(why);
    lock.lock();
  }
  queue_.clear();
  connection_->shutdown();  // the reader ends; the last handle closes it
}

void ServiceClient::run_reader() {
  for (;;) {
    MessageHead head;
    Message message;
    std::string why;
    try {
      why = read_message(*connection_, &head, &message);
    } catch (const std::exception& e) {
      why = e.what();
    }
    if (!why.empty()) return broken(why);
    resolve(head, std::move(message));
  }
}

void ServiceClient::resolve(const MessageHead& head, Message message) {
  std::unique_lock lock(mutex_);
  const auto found = pending_.find(head.id);
  if (found == pending_.end()) return;  // it has timed out
  std::promise<Message> promise = std::move(found->second.promise);
  CallLog::get().end(found->second.logged);
  pending_.erase(found);
  lock.unlock();
  if (head.kind == MessageKind::kReply) {
    promise.set_value(std::move(message));
    return;
  }
  const auto code = head.code >= 1 && head.code <= 15
                        ? static_cast<errors::Code>(head.code)
                        : errors::Code::kUnknown;
  try {
    errors::raise(code, link_.name_of(to_) + ": " + message.text);
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

void ServiceClient::broken(const std::string& cause) {
  {
    std::lock_guard lock(mutex_);
    if (ended_ || broken_) return;
    broken_ = true;
    changed_.notify_all();
  }
  if (may_go_) {
    end(std::make_exception_ptr(errors::Unavailable(
        fmt::format("{} was lost: {}", link_.name_of(to_), cause))));
  } else {
    link_.lost(to_, cause);  // this ends the generation and all open calls
  }
}

void ServiceClient::tick() {
  const Deadline now = Clock::now();
  std::vector<Pending> late;
  {
    std::lock_guard lock(mutex_);
    for (auto i = pending_.begin(); i != pending_.end();) {
      if (i->second.deadline > now) {
        ++i;
        continue;
      }
      late.push_back(std::move(i->second));
      i = pending_.erase(i);
    }
  }
  for (Pending& p : late) {
    p.promise.set_exception(std::make_exception_ptr(errors::DeadlineExceeded(
        fmt::format("a call of '{}' at {} had no answer after {:g} s", service_,
                    link_.name_of(to_), p.seconds))));
  }
}

void ServiceClient::end(std::exception_ptr why) {
  std::map<uint64_t, Pending> open;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = why;
    open.swap(pending_);
    if (connection_) connection_->shutdown();
    changed_.notify_all();
  }
  for (auto& [id, p] : open) p.promise.set_exception(why);
}

}  // namespace berth::rpc
