#include "data/stage_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/timeline.h"
#include "data/host_budget.h"
#include "data/pass_state.h"

namespace berth::data {

namespace {

constexpr int kTimedOne = 13;       // a prime, unlike most sizes of batches
constexpr int kTimedFirst = 64;     // calls
constexpr int64_t kCheapNs = 5000;  // of a call
constexpr int64_t kLeastNs = 1000 * 1000;

class TimedStream : public ElementStream {
 public:
  TimedStream(const Node& node, std::unique_ptr<ElementStream> source)
      : node_(node), times_(node.times()), source_(std::move(source)) {}
  bool next(Tensors* out) override {
    const bool recorded = timeline::is_on();
    if (skip_ > 0 && !recorded) {
      --skip_;
      return source_->next(out);
    }
    const double begin = host_clock_us();
    const bool any = source_->next(out);
    const double end = host_clock_us();
    const auto took = std::llround((end - begin) * 1e3);
    const int weight = recorded ? 1 : weight_;
    times_.ns += took * weight;
    if (any) times_.elements += weight;
    if (recorded) [[unlikely]] {
      timeline::add({begin, end, type()});
      return any;
    }
    first_ += first_ < kTimedFirst;
    weight_ = first_ == kTimedFirst && took < kCheapNs ? kTimedOne : 1;
    skip_ = weight_ - 1;
    return any;
  }
  void save(PassWriter& w) override { source_->save(w); }
  void restore(PassReader& r) override { source_->restore(r); }

 private:
  timeline::TypeId type() {
    if (recording_ != timeline::recording()) {
      recording_ = timeline::recording();
      type_ = timeline::add_types(
          {{"input: " + node_.where(), node_.where(), "stage", node_.site()}});
    }
    return type_;
  }

  const Node& node_;
  uint64_t recording_ = 0;
  timeline::TypeId type_ = 0;
  StageTimes& times_;
  std::unique_ptr<ElementStream> source_;
  int first_ = 0, weight_ = 1, skip_ = 0;
};

void find(const Node& node, std::set<const Node*>* seen,
          std::optional<SlowStage>* slow) {
  if (!seen->insert(&node).second) return;
  const int64_t own = node.own_ns();
  const int64_t all = own + (*slow ? (*slow)->all_ns : 0);
  if (!*slow || own > (*slow)->own_ns) {
    *slow = {&node, own, 0, node.times().elements};
  }
  (*slow)->all_ns = all;
  for (const Node* input : node.inputs()) find(*input, seen, slow);
}

}  // namespace

std::unique_ptr<ElementStream> timed(const Node& node,
                                     std::unique_ptr<ElementStream> stream) {
  return std::make_unique<TimedStream>(node, std::move(stream));
}

int64_t with_inputs_ns(const Node& node) {
  if (const int64_t ns = node.times().ns; ns > 0) return ns;
  int64_t sum = 0;
  for (const Node* input : node.inputs()) sum += with_inputs_ns(*input);
  return sum;
}

int64_t Node::own_ns() const {
  int64_t own = times_.ns;
  for (const Node* input : inputs()) own -= with_inputs_ns(*input);
  return std::max(own, int64_t{0});
}

std::string SlowStage::str() const {
  std::string text = node->where();
  if (elements > 0) {
    text += fmt::format(": {} for each of {} elements",
                        time_text(static_cast<double>(own_ns) * 1e-9 /
                                  static_cast<double>(elements)),
                        elements);
  }
  return text + fmt::format(", {} % of the time of the pipeline{}",
                            100 * own_ns / std::max(all_ns, int64_t{1}),
                            node->advice());
}

std::optional<SlowStage> slow_stage(const Node& last) {
  std::optional<SlowStage> slow;
  std::set<const Node*> seen;
  find(last, &seen, &slow);
  if (slow && slow->all_ns < kLeastNs) slow.reset();
  return slow;
}

}  // namespace berth::data
