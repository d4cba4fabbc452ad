#include "data/stop_link.h"

#include <fmt/format.h>

#include <system_error>

#include "device/engine_thread.h"

namespace berth::data {

std::jthread start_thread(const Node& node, std::function<void()> body) {
  host_cores();  // bad configurations throw here, not on the thread
  try {
    return std::jthread([body = std::move(body)] {
      enter_host_thread();
      body();
    });
  } catch (const std::system_error& e) {
    throw errors::ResourceExhausted(fmt::format(
        "{}: cannot start a thread ({}); use fewer", node.where(), e.what()));
  }
}

}  // namespace berth::data
