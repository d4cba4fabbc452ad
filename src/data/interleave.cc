#include "data/interleave.h"

#include <fmt/format.h>

#include "base/where.h"
#include "data/auto_shard.h"
#include "data/user_call.h"
#include "device/device_manager.h"
#include "device/engine_thread.h"

namespace berth::data {

namespace {

// Reads the datasets of a cycle in turn.
class InterleaveStream : public ElementStream {
 public:
  InterleaveStream(const InterleaveNode& node, const PassInfo& pass)
      : node_(node),
        pass_(pass),
        source_(node.parent().open(pass)),
        cycle_(node.cycle_length()) {}

  bool next(Tensors* out) override {
    while (!stopped(pass_.stop)) {
      Open& open = cycle_[at_];
      if (!open.stream && !refill(&open)) {
        if (open_ == 0) return false;
        advance();
        continue;
      }
      if (open.stream->next(out)) {
        if (++block_ == node_.block_length()) advance();
        return true;
      }
      open = {};
      --open_;
      advance();
    }
    return false;
  }

  void save(PassWriter& w) override {
    w.begin(node_);
    w.put(number_);
    w.put(at_);
    w.put(block_);
    for (Open& open : cycle_) {
      w.put(open.stream != nullptr);
      if (!open.stream) continue;
      w.put(open.number);
      w.put(open.element);
      open.stream->save(w);
    }
    save_source(w, source_);
  }

  void restore(PassReader& r) override {
    r.begin(node_);
    number_ = r.number(0);
    at_ = static_cast<size_t>(
        r.number(0, static_cast<int64_t>(cycle_.size()) - 1));
    block_ = r.number(0, node_.block_length() - 1);
    for (Open& open : cycle_) {
      if (!r.flag()) continue;
      open.number = r.number(0);
      open.element = r.element();
      open.dataset = node_.make(open.element, open.number);
      open.stream = open.dataset->node().open(pass_);
      open.stream->restore(r);
      ++open_;
    }
    restore_source(r, &source_);
  }

 private:
  struct Open {
    Tensors element;  // that the dataset was made of
    int64_t number = 0;
    std::optional<Dataset> dataset;  // keeps what the stream refers to
    std::unique_ptr<ElementStream> stream;
  };

  bool refill(Open* open) {
    if (!source_) return false;
    Tensors element;
    if (!source_->next(&element)) {
      source_.reset();
      return false;
    }
    open->number = number_++;
    open->dataset = node_.make(element, open->number);
    open->element = std::move(element);
    open->stream = open->dataset->node().open(pass_);
    ++open_;
    return true;
  }
  void advance() {
    block_ = 0;
    at_ = (at_ + 1) % cycle_.size();
  }

  const InterleaveNode& node_;
  const PassInfo pass_;
  std::unique_ptr<ElementStream> source_;  // null at its end
  std::vector<Open> cycle_;
  size_t open_ = 0;  // streams in it
  size_t at_ = 0;
  int64_t block_ = 0;   // elements that cycle_[at_] gave in this turn
  int64_t number_ = 0;  // of the next element of source_
};

int64_t default_cycle() {
  const CoreSet cores =
      DeviceManager::initialised() ? host_cores() : CoreSet::allowed();
  return std::max(1, cores.size());
}

}  // namespace

InterleaveNode::InterleaveNode(const char* what, const Dataset& parent,
                               DatasetFunction fn,
                               const InterleaveOptions& options, Site site)
    : Transform(what, site, parent),
      fn_(std::move(fn)),
      options_(options),
      autotune_(options.num_parallel_calls == AUTOTUNE) {
  if (options_.cycle_length == AUTOTUNE) {
    options_.cycle_length = default_cycle();
  }
  if (options_.num_parallel_calls == AUTOTUNE) {
    options_.num_parallel_calls = default_cycle();
  }
}

Dataset InterleaveNode::make(const Tensors& element, int64_t number) const {
  return call_user(*this, number, [&] { return fn_(element); });
}

const std::vector<TensorSpec>& InterleaveNode::specs() const {
  return specs_.get([&] {
    std::stop_source stop;
    const auto source = parent().open({.stop = stop.get_token(), .peek = true});
    Tensors element;
    if (!source->next(&element)) return std::vector<TensorSpec>();
    const Dataset first = make(element, 0);
    reads_files_ = reads_files(first.node());
    return first.element_spec();
  });
}

std::optional<int64_t> InterleaveNode::num_files() const {
  specs();
  if (!reads_files_) return std::nullopt;
  return parent().cardinality();
}

std::unique_ptr<ElementStream> InterleaveNode::elements(
    const PassInfo& pass) const {
  if (options_.num_parallel_calls > 0 && !pass.peek) {
    return parallel_interleave(*this, pass);
  }
  return std::make_unique<InterleaveStream>(*this, pass);
}

Dataset Dataset::interleave(DatasetFunction fn,
                            const InterleaveOptions& options, Site site) const {
  const std::string where = call_text("interleave", site);
  if (!fn) refuse(where, "the function is empty; expected one to call");
  const auto in_range = [&](const char* what, int64_t n, int64_t least,
                            bool may_choose) {
    if ((n >= least && n <= 4096) || (may_choose && n == AUTOTUNE)) return;
    refuse(where, fmt::format("{} is {}; expected {} to 4096{}", what, n, least,
                              may_choose ? ", or data::AUTOTUNE" : ""));
  };
  in_range("cycle_length", options.cycle_length, 1, true);
  in_range("num_parallel_calls", options.num_parallel_calls, 0, true);
  if (options.block_length < 1) {
    refuse(where, fmt::format("block_length is {}; expected at least 1",
                              options.block_length));
  }
  return make_dataset<InterleaveNode>("interleave", *this, std::move(fn),
                                      options, site);
}

Dataset Dataset::flat_map(DatasetFunction fn, Site site) const {
  if (!fn) {
    refuse(call_text("flat_map", site),
           "the function is empty; expected one to call");
  }
  return make_dataset<InterleaveNode>("flat_map", *this, std::move(fn),
                                      InterleaveOptions{.cycle_length = 1},
                                      site);
}

}  // namespace berth::data
