#include "rpc/message_port.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/environment.h"
#include "base/immortal.h"
#include "berth/errors.h"
#include "device/inner_plugin.h"

namespace berth::rpc {

namespace {

constexpr uint32_t kPortMagic = 0x48787542;  // "BuxH"
constexpr size_t kHelloHead = 4 + 4 + sizeof(PortToken) + 4;
constexpr uint32_t kMostAddress = 64 << 10;

// UCX takes signals over while it is opened: SIGHUP for its debugging, and
// those of crashes.
class KeptSignals {
 public:
  KeptSignals() {
    for (int s = 1; s < kSignals; ++s) sigaction(s, nullptr, &before_[s]);
  }
  ~KeptSignals() {
    for (int s = 1; s < kSignals; ++s) {
      if (s != SIGKILL && s != SIGSTOP) sigaction(s, &before_[s], nullptr);
    }
  }

 private:
  static constexpr int kSignals = 32;
  struct sigaction before_[kSignals] = {};
};

const UcxPlugin& ucx() {
  static auto& mutex = immortal<std::mutex>();
  static const UcxPlugin* opened = nullptr;
  std::lock_guard lock(mutex);
  if (opened != nullptr) return *opened;
  const KeptSignals kept;
  const InnerPlugin plugin =
      open_inner_plugin("libberth_ucx.so", "berth_ucx_plugin");
  if (plugin.symbol == nullptr) {
    throw errors::FailedPrecondition(fmt::format(
        "BERTH_TRANSPORT asks for ucx, which needs {}, which cannot be opened: "
        "{}; it needs UCX (`apt-get install libucx0`) and is built where UCX's "
        "headers are (`apt-get install libucx-dev`, then `./dev build`); or "
        "unset BERTH_TRANSPORT on all tasks",
        plugin.path, plugin.why));
  }
  opened = static_cast<const UcxPlugin*>(plugin.symbol);
  return *opened;
}

}  // namespace

Transport transport_of_environment() {
  const std::string name = environment_choice(
      "BERTH_TRANSPORT", {"auto", "sockets", "memory,ucx", "ucx"});
  return {.memory = name == "auto" || name == "memory,ucx",
          .ucx = name.ends_with("ucx")};
}

void require_ucx() { ucx(); }

std::unique_ptr<MessagePort> open_port(bool loopback) {
  return ucx().open(loopback);
}

PortToken random_token() {
  PortToken token;
  if (getrandom(token.data(), token.size(), 0) !=
      static_cast<ssize_t>(token.size())) {
    throw errors::Internal("getrandom() gives no random bytes");
  }
  return token;
}

bool equal(const PortToken& a, const PortToken& b) {
  int different = 0;
  for (size_t i = 0; i < a.size(); ++i) different |= a[i] ^ b[i];
  return different == 0;
}

void tell_dropped() {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::fprintf(
      stderr,
      "berth: a message by UCX without the token of a task was dropped "
      "(told once); who else reaches UCX's ports?\n");
}

std::string encode(const PortHello& h) {
  std::string bytes(kHelloHead, '\0');
  const auto length = static_cast<uint32_t>(h.address.size());
  std::memcpy(bytes.data(), &kPortMagic, 4);
  std::memcpy(bytes.data() + 4, &length, 4);
  std::memcpy(bytes.data() + 8, h.token.data(), h.token.size());
  std::memcpy(bytes.data() + 8 + h.token.size(), &h.number, 4);
  return bytes + h.address;
}

size_t port_hello_bytes(std::string_view bytes) {
  const size_t known = std::min<size_t>(4, bytes.size());
  if (std::memcmp(bytes.data(), &kPortMagic, known) != 0) {
    throw errors::DataLoss(
        "it sent what is no address of UCX: BERTH_TRANSPORT must be the same "
        "on all tasks");
  }
  if (bytes.size() < kHelloHead) return 0;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 4, 4);
  if (length == 0 || length > kMostAddress) {
    throw errors::DataLoss("it sent an address of UCX of a wrong length");
  }
  return kHelloHead + length;
}

bool parse_port_hello(std::string_view bytes, PortHello* hello) {
  const size_t all = port_hello_bytes(bytes);
  if (all == 0 || bytes.size() < all) return false;
  std::memcpy(hello->token.data(), bytes.data() + 8, hello->token.size());
  std::memcpy(&hello->number, bytes.data() + 8 + hello->token.size(), 4);
  hello->address = bytes.substr(kHelloHead, all - kHelloHead);
  return true;
}

}  // namespace berth::rpc
