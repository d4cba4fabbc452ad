#include "rpc/exchange/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace berth::exchange {

namespace {

const char* name_of_reduction(cluster::Reduction r) {
  switch (r) {
    case cluster::Reduction::kSum:
      return "sum";
    case cluster::Reduction::kMin:
      return "min";
    case cluster::Reduction::kMax:
      return "max";
  }
  return "?";
}

}  // namespace

void describe(ExchangeCall& call, const cluster::Tag& tag) {
  call.hash = tag.hash;
  call.step = tag.step;
  std::memset(call.what, 0, sizeof(call.what));
  std::memcpy(call.what, tag.what.data(),
              std::min(tag.what.size(), sizeof(call.what) - 1));
}

bool same(const ExchangeCall& a, const ExchangeCall& b) {
  return a.sequence == b.sequence && a.hash == b.hash && a.count == b.count &&
         a.number == b.number && a.kind == b.kind && a.dtype == b.dtype &&
         a.reduction == b.reduction;
}

std::string text_of(const ExchangeCall& c) {
  std::string text;
  switch (c.kind) {
    case CallKind::kAllReduce:
      text = fmt::format("all_reduce of {} {} ({})", c.count, name_of(c.dtype),
                         name_of_reduction(c.reduction));
      break;
    case CallKind::kOrderedSum:
      text = fmt::format("ordered_sum of {} {} over {} slices", c.count,
                         name_of(c.dtype), c.number);
      break;
    case CallKind::kAllGather:
      text = fmt::format("all_gather of {} bytes", c.count);
      break;
    case CallKind::kBroadcast:
      text =
          fmt::format("broadcast of {} bytes from rank {}", c.count, c.number);
      break;
    case CallKind::kBarrier:
      text = "barrier";
      break;
    default:
      text = "nothing that this build knows";
  }
  const std::string what(c.what, strnlen(c.what, sizeof(c.what)));
  if (!what.empty()) text += fmt::format(", '{}'", what);
  if (c.hash != 0) text += fmt::format(" [{:016x}]", c.hash);
  return text;
}

}  // namespace berth::exchange
