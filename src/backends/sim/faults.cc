#include "backends/sim/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "backends/sim/sim_device.h"
#include "berth/errors.h"

namespace berth::sim {

namespace {

template <class T>
bool parse_number(std::string_view s, T* out) {
  const auto [end, error] =
      std::from_chars(s.data(), s.data() + s.size(), *out);
  return error == std::errc() && end == s.data() + s.size();
}

FaultRequest parse_fault(std::string_view entry) {
  FaultRequest r;
  const size_t equals = entry.find('=');
  const size_t at = entry.find('@');
  if (equals != entry.npos && at != entry.npos && equals < at) {
    const std::string_view kind = entry.substr(0, equals);
    std::string_view device = entry.substr(equals + 1, at - equals - 1);
    bool known = true;
    if (kind == "launch") {
      r.kind = FaultRequest::Kind::kLaunch;
    } else if (kind == "oom") {
      r.kind = FaultRequest::Kind::kOutOfMemory;
    } else if (kind == "pin") {
      r.kind = FaultRequest::Kind::kPinned;
    } else if (kind == "lost") {
      r.kind = FaultRequest::Kind::kLost;
    } else if (kind == "hang") {
      r.kind = FaultRequest::Kind::kHang;
    } else {
      known = false;
    }
    if (known && device.starts_with("GPU:")) {
      device.remove_prefix(4);
      if (parse_number(device, &r.device) && r.device >= 0 &&
          parse_number(entry.substr(at + 1), &r.at) && r.at > 0) {
        return r;
      }
    }
  }
  throw errors::InvalidArgument(fmt::format(
      "BERTH_SIM_FAULTS: entry '{}' is not understood; expected a comma list "
      "of 'launch=GPU:0@17', 'oom=GPU:0@1000000', 'pin=GPU:0@1000000', "
      "'lost=GPU:1@20' or 'hang=GPU:1@20'",
      entry));
}

}  // namespace

void fail_launch(Device& device, uint64_t n) {
  sim_device(device).compute().with_faults(
      [n](FaultPlan& f) { f.fail_at = f.launches + n; });
}

void lose_device(Device& device, uint64_t n) {
  sim_device(device).compute().with_faults(
      [n](FaultPlan& f) { f.lose_at = f.launches + n; });
}

void hang_device(Device& device, uint64_t n) {
  sim_device(device).compute().with_faults(
      [n](FaultPlan& f) { f.hang_at = f.launches + n; });
}

void out_of_memory_at(Device& device, size_t bytes) {
  Allocator& allocator = sim_device(device).allocator();
  allocator.empty_cache();
  allocator.set_limit_bytes(bytes);
}

void limit_pinned(Device& device, size_t bytes) {
  sim_device(device).memory().pinned()->set_limit(bytes);
}

void clear_faults(Device& device) {
  SimDevice& d = sim_device(device);
  d.compute().with_faults([](FaultPlan& f) {
    f.fail_at = f.lose_at = f.hang_at = 0;
    f.lost = f.let_go = false;
  });
  d.allocator().set_limit_bytes(d.memory_bytes());
  limit_pinned(device, SIZE_MAX);
}

std::vector<FaultRequest> parse_faults(std::string_view text) {
  std::vector<FaultRequest> list;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    list.push_back(parse_fault(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

}  // namespace berth::sim
