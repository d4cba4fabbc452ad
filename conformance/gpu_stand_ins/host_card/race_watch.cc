#include "conformance/gpu_stand_ins/host_card/race_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::gpu {

namespace {

RaceWatch* g_watch = nullptr;  // the active one
constexpr uint32_t kMany = UINT32_MAX;

}  // namespace

void RaceWatch::begin(const HostCode& code) {
  code_ = &code;
  found_.clear();
  ranges_.clear();
  section_ = 1;
  g_watch = this;
}

void RaceWatch::add(int index, const void* begin, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(begin);
  // Overlapping arguments share the cells of the first.
  if (Range* r = find(at)) {
    const size_t more = at - r->begin + bytes;
    if (more > r->bytes) {
      r->bytes = more;
      r->cells.resize(more);
    }
    return;
  }
  auto range = std::make_unique<Range>();
  range->begin = at;
  range->bytes = bytes;
  range->name = fmt::format("argument {}", index);
  range->cells.resize(bytes);
  ranges_.push_back(std::move(range));
}

std::string RaceWatch::end() {
  g_watch = nullptr;
  ranges_.clear();
  return std::move(found_);
}

RaceWatch::Range* RaceWatch::find(uintptr_t at) {
  for (const auto& r : ranges_) {
    if (at - r->begin < r->bytes) return r.get();
  }
  return nullptr;
}

std::string RaceWatch::describe(const Range& range, size_t byte, uint32_t one,
                                uint32_t other, bool both_write) const {
  const auto items = static_cast<uint32_t>(code_->item->items);
  const auto name_of = [items](uint32_t number) {
    if (number == kMany) return std::string("others");
    return fmt::format("item {} of group {}", (number - 1) % items,
                       (number - 1) / items);
  };
  return fmt::format(
      "GPU kernel {}: a race: {} writes byte {} of {}, which {} {} "
      "without a barrier between them{}",
      code_->name, name_of(one), byte, range.name, name_of(other),
      both_write       ? "writes"
      : other == kMany ? "read"
                       : "reads",
      range.local ? "" : " that would order it");
}

void RaceWatch::see(Range& range, size_t first, size_t count, bool writes) {
  const HostItem& item = *code_->item;
  const long long rows = item.group[2] * code_->item->groups_y + item.group[1];
  const auto group = static_cast<uint64_t>(rows * item.groups + item.group[0]);
  const auto me =
      static_cast<uint32_t>(group * static_cast<uint64_t>(item.items) +
                            static_cast<uint64_t>(item.id) + 1);
  const uint32_t epoch = range.local ? section_ : 1;
  for (size_t i = first; i < std::min(first + count, range.bytes); ++i) {
    Cell& c = range.cells[i];
    if (c.epoch != epoch) c = {epoch, 0, 0};
    if (c.writer != 0 && c.writer != me && found_.empty()) {
      found_ = describe(range, i, c.writer, me, writes);
    }
    if (writes && c.reader != 0 && c.reader != me && found_.empty()) {
      found_ = describe(range, i, me, c.reader, false);
    }
    if (writes) {
      c.writer = me;
    } else {
      c.reader = c.reader == 0 || c.reader == me ? me : kMany;
    }
  }
}

void RaceWatch::touch(const void* p, unsigned bytes, int writes) {
  if (g_watch == nullptr) return;
  const auto at = reinterpret_cast<uintptr_t>(p);
  if (Range* r = g_watch->find(at)) {
    g_watch->see(*r, at - r->begin, bytes, writes != 0);
  }
}

void RaceWatch::see_local(const void* begin, unsigned bytes, const char* name) {
  if (g_watch == nullptr) return;
  const auto at = reinterpret_cast<uintptr_t>(begin);
  if (g_watch->find(at) != nullptr) return;
  auto range = std::make_unique<Range>();
  range->begin = at;
  range->bytes = bytes;
  range->name = name;
  range->local = true;
  range->cells.resize(bytes);
  g_watch->ranges_.push_back(std::move(range));
}

void RaceWatch::new_section() {
  if (g_watch != nullptr) ++g_watch->section_;
}

}  // namespace berth::gpu
