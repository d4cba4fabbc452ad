#include "data/stop_link.h"

#include <fmt/format.h>

#include <system_error>

namespace berth::data {

std::jthread start_thread(const Node& node, std::function<void()> body) {
  try {
    return std::jthread(std::move(body));
  } catch (const std::system_error& e) {
    throw errors::ResourceExhausted(fmt::format(
        "{}: cannot start a thread ({}); use fewer", node.where(), e.what()));
  }
}

}  // namespace berth::data
