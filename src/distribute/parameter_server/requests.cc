#include "distribute/parameter_server/requests.h"

#include <fmt/format.h>

#include <random>

#include "device/device_manager.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

namespace {

constexpr const char* kErrorWord = "error";
constexpr const char* kLostWord = "lost";

}  // namespace

Request::Request(const std::string& text) {
  const size_t end = text.find('\n');
  operands.str(text.substr(0, end));
  operands >> word;
  if (end != std::string::npos) body = text.substr(end + 1);
}

cluster::Handler answering(
    std::function<cluster::Message(const cluster::TaskId&, Request&, Tensors&)>
        fn) {
  return [fn = std::move(fn)](const cluster::TaskId& from,
                              cluster::Message m) -> cluster::Message {
    try {
      Request request(m.text);
      return fn(from, request, m.tensors);
    } catch (const TaskLost& e) {
      return {fmt::format("{} {} {}\n{}", kLostWord, e.task().job,
                          e.task().index, e.what()),
              {}};
    } catch (const errors::Error& e) {
      return {fmt::format("{} {}\n{}", kErrorWord, static_cast<int>(e.code()),
                          e.what()),
              {}};
    } catch (const std::exception& e) {
      return {fmt::format("{} {}\n{}", kErrorWord,
                          static_cast<int>(errors::Code::kInternal), e.what()),
              {}};
    }
  };
}

std::future<cluster::Message> begin_call(cluster::Member& member,
                                         const cluster::TaskId& to,
                                         const char* service,
                                         cluster::Message request,
                                         double timeout_seconds) {
  try {
    return member.call(to, service, std::move(request), timeout_seconds);
  } catch (const errors::Error&) {
    std::promise<cluster::Message> failed;
    failed.set_exception(std::current_exception());
    return failed.get_future();
  }
}

cluster::Message answer_of(std::future<cluster::Message>& answer,
                           const cluster::TaskId& task) {
  cluster::Message m;
  try {
    m = answer.get();
  } catch (const std::exception& e) {
    throw TaskLost(task, fmt::format("{}: {}", task.str(), e.what()));
  }
  if (!m.text.starts_with(kErrorWord) && !m.text.starts_with(kLostWord)) {
    return m;
  }
  Request error(m.text);
  if (error.word == kLostWord) {
    cluster::TaskId lost;
    error.operands >> lost.job >> lost.index;
    throw TaskLost(std::move(lost), error.body);
  }
  errors::raise(static_cast<errors::Code>(operand<int>(error.operands)),
                fmt::format("{}: {}", task.str(), error.body));
}

Tensor for_sending(const Tensor& t) {
  Device& host = DeviceManager::get().host();
  Tensor sent = t.dtype() == string_ ? t : own_copy(t, host);
  synchronize(sent.impl()->block->ready);
  return sent;
}

uint64_t new_incarnation() {
  std::random_device bits;
  return (static_cast<uint64_t>(bits()) << 32) | bits();
}

}  // namespace berth::distribute
