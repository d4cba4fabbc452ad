// MessagePort by UCX's active messages, and the symbol that the plug-in of
// clusters looks for.

#include <fmt/format.h>
#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "berth/device/build_id.h"
#include "berth/errors.h"
#include "rpc/message_port.h"

namespace berth::rpc {

namespace {

constexpr unsigned kMessageId = 1;
constexpr auto kCloseTime = std::chrono::seconds(2);

[[noreturn]] void raise_ucx(const char* call, ucs_status_t status,
                            const char* advice) {
  throw errors::Unavailable(fmt::format("BERTH_TRANSPORT=ucx: {} of UCX: {}{}",
                                        call, ucs_status_string(status),
                                        advice));
}

struct ConfigRelease {
  void operator()(ucp_config_t* c) const { ucp_config_release(c); }
};
using Config = std::unique_ptr<ucp_config_t, ConfigRelease>;

// Sets what the environment leaves open. UCX 1.13 knows settings of transports
// without their prefix; those that an UCX does not know have no effect.
void prefer(ucp_config_t* config, const std::string& transport,
            const std::string& name, const char* value) {
  const std::string whole = transport + "_" + name;
  if (!environment(("UCX_" + whole).c_str()).empty()) return;
  static_cast<void>(ucp_config_modify(config, whole.c_str(), value));
  static_cast<void>(ucp_config_modify(config, name.c_str(), value));
}

Config configured(bool loopback) {
  ucp_config_t* read = nullptr;
  const ucs_status_t status = ucp_config_read(nullptr, nullptr, &read);
  if (status != UCS_OK) {
    raise_ucx("ucp_config_read", status,
              "; a variable UCX_... has a value that it does not take");
  }
  Config config(read);
  // Memory of one host reports the end of a process, too.
  prefer(read, "MM", "ERROR_HANDLING", "y");
  // In segments of 8 KiB a tensor takes many system calls.
  prefer(read, "TCP", "TX_SEG_SIZE", "64k");
  prefer(read, "TCP", "RX_SEG_SIZE", "64k");
  // Any process that connects could write to memory: UCX does not ask which.
  prefer(read, "TCP", "PUT_ENABLE", "n");
  if (loopback) {
    const std::string devices = environment("UCX_NET_DEVICES");
    if (!devices.empty() && devices != "lo") {
      throw errors::InvalidArgument(fmt::format(
          "UCX_NET_DEVICES is '{}', but the addresses of this cluster are "
          "those of one machine: expected 'lo', or no such variable",
          devices));
    }
    static_cast<void>(ucp_config_modify(read, "NET_DEVICES", "lo"));
  }
  return config;
}

// One for all ports; it lives as long as the process.
ucp_context_h context_of(bool loopback) {
  static std::mutex* const mutex = new std::mutex;
  static ucp_context_h contexts[2] = {};
  std::lock_guard lock(*mutex);
  ucp_context_h& context = contexts[loopback ? 1 : 0];
  if (context != nullptr) return context;
  if (environment("UCX_LOG_LEVEL").empty()) {
    // To stdout, about what is reported as an error here anyway.
    static_cast<void>(ucs_global_opts_set_value("LOG_LEVEL", "fatal"));
  }
  const Config config = configured(loopback);
  ucp_params_t params{};
  params.field_mask =
      UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  const ucs_status_t status = ucp_init(&params, config.get(), &context);
  if (status != UCS_OK) {
    context = nullptr;
    raise_ucx("ucp_init", status,
              "; look at UCX_TLS and UCX_NET_DEVICES, and at `ucx_info -d`");
  }
  return context;
}

void finish(PortOp& op, ucs_status_t status) {
  if (status != UCS_OK) op.error = ucs_status_string(status);
  op.done = true;
}

void on_sent(void* request, ucs_status_t status, void* op) {
  finish(*static_cast<PortOp*>(op), status);
  ucp_request_free(request);
}

void on_received(void* request, ucs_status_t status, size_t, void* op) {
  on_sent(request, status, op);
}

// What a call that may end later has returned.
void begun(ucs_status_ptr_t request, PortOp& op) {
  if (request == nullptr) {
    finish(op, UCS_OK);
  } else if (UCS_PTR_IS_ERR(request)) {
    finish(op, UCS_PTR_STATUS(request));
  }
}

class UcxPort final : public MessagePort {
 public:
  explicit UcxPort(bool loopback) {
    ucp_worker_params_t params{};
    params.field_mask =
        UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;
    ucs_status_t status =
        ucp_worker_create(context_of(loopback), &params, &worker_);
    if (status != UCS_OK) raise_ucx("ucp_worker_create", status, "");
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                         UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = kMessageId;
    handler.cb = &UcxPort::on_message;
    handler.arg = this;
    status = ucp_worker_set_am_recv_handler(worker_, &handler);
    if (status == UCS_OK) status = ucp_worker_get_efd(worker_, &fd_);
    if (status == UCS_OK) return;
    ucp_worker_destroy(worker_);
    raise_ucx("ucp_worker_get_efd", status, "");
  }

  ~UcxPort() override {
    for (void* held : held_) ucp_am_data_release(worker_, held);
    std::vector<void*> closing;
    for (const Connection& c : connections_) {
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = UCP_EP_CLOSE_FLAG_FORCE;
      void* request = ucp_ep_close_nbx(c.endpoint, &param);
      if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
    }
    const auto limit = std::chrono::steady_clock::now() + kCloseTime;
    for (void* request : closing) {
      while (ucp_request_check_status(request) == UCS_INPROGRESS &&
             std::chrono::steady_clock::now() < limit) {
        ucp_worker_progress(worker_);
      }
      ucp_request_free(request);
    }
    ucp_worker_destroy(worker_);
  }

  std::string address() const override {
    ucp_address_t* own = nullptr;
    size_t bytes = 0;
    const ucs_status_t status = ucp_worker_get_address(worker_, &own, &bytes);
    if (status != UCS_OK) raise_ucx("ucp_worker_get_address", status, "");
    std::string text(reinterpret_cast<const char*>(own), bytes);
    ucp_worker_release_address(worker_, own);
    return text;
  }

  int connect(std::string_view address) override {
    Connection& c = connections_.emplace_back();
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {&UcxPort::on_broken, &c};
    const ucs_status_t status = ucp_ep_create(worker_, &params, &c.endpoint);
    if (status != UCS_OK) {
      connections_.pop_back();
      raise_ucx("ucp_ep_create", status,
                "; both tasks need a transport of UCX that reports the loss of "
                "its peer: look at UCX_TLS and UCX_NET_DEVICES on both");
    }
    return static_cast<int>(connections_.size()) - 1;
  }

  const char* broken(int connection) const override {
    return connections_.at(connection).broken;
  }

  void send(int connection, std::string_view head, const void* data,
            size_t bytes, PortOp& op) override {
    const ucp_request_param_t param = param_of(op);
    begun(ucp_am_send_nbx(connections_.at(connection).endpoint, kMessageId,
                          head.data(), head.size(), data, bytes, &param),
          op);
  }

  bool next(PortArrival* arrival) override {
    if (arrivals_.empty()) return false;
    *arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    return true;
  }

  void receive(PortArrival& a, void* data, PortOp& op) override {
    if (!a.far) {
      const void* from = a.held != nullptr ? a.held : a.data.data();
      if (a.bytes > 0) std::memcpy(data, from, a.bytes);
      drop(a);
      return finish(op, UCS_OK);
    }
    ucp_request_param_t param = param_of(op);
    param.cb.recv_am = &on_received;
    held_.erase(a.held);
    begun(ucp_am_recv_data_nbx(worker_, std::exchange(a.held, nullptr), data,
                               a.bytes, &param),
          op);
  }

  void drop(PortArrival& a) override {
    if (a.held == nullptr) return;
    held_.erase(a.held);
    ucp_am_data_release(worker_, std::exchange(a.held, nullptr));
  }

  void flush(PortOp& op) override {
    const ucp_request_param_t param = param_of(op);
    begun(ucp_worker_flush_nbx(worker_, &param), op);
  }

  bool progress() override { return ucp_worker_progress(worker_) != 0; }
  int fd() const override { return fd_; }
  bool arm() override { return ucp_worker_arm(worker_) == UCS_OK; }

 private:
  struct Connection {
    ucp_ep_h endpoint = nullptr;
    const char* broken = nullptr;
  };

  static ucp_request_param_t param_of(PortOp& op) {
    ucp_request_param_t param{};
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = &on_sent;
    param.user_data = &op;
    return param;
  }

  static void on_broken(void* connection, ucp_ep_h, ucs_status_t status) {
    static_cast<Connection*>(connection)->broken = ucs_status_string(status);
  }

  static ucs_status_t on_message(void* port, const void* head,
                                 size_t head_bytes, void* data, size_t bytes,
                                 const ucp_am_recv_param_t* param) {
    if (head_bytes == 0 || head_bytes > kMostHead) return UCS_OK;
    auto& self = *static_cast<UcxPort*>(port);
    PortArrival& a = self.arrivals_.emplace_back();
    a.head.assign(static_cast<const char*>(head), head_bytes);
    a.bytes = bytes;
    a.far = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    if (a.far || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0) {
      a.held = data;
      self.held_.insert(data);
      return UCS_INPROGRESS;
    }
    const auto* begin = static_cast<const std::byte*>(data);
    if (bytes > 0) a.data.assign(begin, begin + bytes);
    return UCS_OK;
  }

  ucp_worker_h worker_ = nullptr;
  int fd_ = -1;
  std::deque<Connection> connections_;  // which UCX points to
  std::deque<PortArrival> arrivals_;
  std::unordered_set<void*> held_;
};

std::unique_ptr<MessagePort> open_ucx_port(bool loopback) {
  return std::make_unique<UcxPort>(loopback);
}

}  // namespace

}  // namespace berth::rpc

extern "C" {
__attribute__((
    visibility("default"))) extern const berth::rpc::UcxPlugin berth_ucx_plugin;
const berth::rpc::UcxPlugin berth_ucx_plugin = {BERTH_BUILD_ID,
                                                berth::rpc::open_ucx_port};
}
