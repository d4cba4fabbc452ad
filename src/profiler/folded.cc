// Timeline::folded(): stacks for flame graphs.

#include <fmt/format.h>

#include <map>

#include "profiler/layout.h"

namespace berth::profiler {

namespace {

// A name as a frame of a stack, which ends at ";" and stands in a line.
std::string frame_of(std::string_view name) {
  std::string frame(name);
  for (char& c : frame) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ';' || byte < 0x20 || byte == 0x7f) c = '_';
  }
  return frame;
}

std::string stack_of(const TimelineEvent& e) {
  std::string stack = frame_of(e.track);
  if (!e.task.empty()) stack = frame_of(e.task) + ";" + stack;
  const size_t slash = e.name.rfind('/');
  if (slash == std::string::npos || slash == 0) {
    return stack + ";" + frame_of(e.name);
  }
  return stack + ";" + frame_of(e.name.substr(0, slash)) + ";" +
         frame_of(e.name.substr(slash + 1));
}

}  // namespace

std::string Timeline::folded() const {
  const Layout layout(events_);
  std::vector<int64_t> self_ns(events_.size());
  for (size_t k = 0; k < events_.size(); ++k) {
    const int64_t ns = layout.end_ns[k] - layout.begin_ns[k];
    self_ns[k] += ns;
    if (layout.within[k] >= 0) self_ns[layout.within[k]] -= ns;
  }
  std::map<std::string, int64_t> total;
  for (size_t k = 0; k < events_.size(); ++k) {
    if (!is_memory(events_[k])) total[stack_of(events_[k])] += self_ns[k];
  }
  std::string text;
  for (const auto& [stack, ns] : total) {
    const int64_t us = (ns + 500) / 1000;
    if (us > 0) text += fmt::format("{} {}\n", stack, us);
  }
  return text;
}

}  // namespace berth::profiler
