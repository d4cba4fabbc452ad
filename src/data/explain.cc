// Dataset::explain: the chain as text.

#include <fmt/format.h>

#include "berth/config.h"
#include "data/host_budget.h"
#include "data/stage_times.h"
#include "device/engine_thread.h"

namespace berth::data {

namespace {

std::string cardinality_text(int64_t n) {
  if (n == kInfinite) return "without an end";
  if (n == kUnknown) return "number of elements unknown";
  return fmt::format("{} elements", n);
}

void explain_chain(const Node& node, int depth,
                   const std::optional<SlowStage>& slow, std::string* out) {
  std::string text = node.explain();
  if (text.empty()) text = cardinality_text(node.cardinality());
  if (node.rows() != nullptr && depth > 0) text += ", by row numbers";
  if (const int64_t own = node.own_ns();
      slow && 100 * own >= slow->all_ns && own > 0) {
    text += fmt::format("; took {} itself",
                        time_text(static_cast<double>(own) * 1e-9));
  }
  *out += fmt::format("{:{}}{}: {}\n", "", 2 * depth, node.where(), text);
  const auto inputs = node.inputs();
  for (const Node* input : inputs) {
    explain_chain(*input, inputs.size() > 1 ? depth + 1 : std::max(depth, 1),
                  slow, out);
  }
}

}  // namespace

std::string Dataset::explain() const {
  std::string text = fmt::format(
      "host: {} of {} cores ({}) in use by pipelines, {} of {} held ready\n",
      CoreClaim::in_use(), CoreClaim::available(), host_cores().str(),
      bytes_text(ByteClaim::in_use()),
      bytes_text(config::get_host_memory_budget()));
  const std::optional<SlowStage> slow = slow_stage(node());
  if (slow) text += "slow stage: " + slow->str() + "\n";
  explain_chain(node(), 1, slow, &text);
  return text;
}

}  // namespace berth::data
