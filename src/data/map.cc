#include "data/map.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/where.h"
#include "data/pass_state.h"
#include "data/row_transform.h"
#include "data/stage_times.h"
#include "data/user_call.h"
#include "device/device_manager.h"
#include "device/engine_thread.h"
#include "ops/random_key.h"

namespace berth::data {

namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kTimedEvery = 16;

// The stage whose function this thread calls; null: none.
thread_local StageStats* t_called_stage = nullptr;

class MapStream : public TransformStream<MapNode> {
 public:
  MapStream(const MapNode& node, const PassInfo& pass)
      : TransformStream(node, pass), pass_(node.begin(pass)) {}
  bool next(Tensors* out) override {
    if (!source_->next(&element_)) return false;
    *out = node_.call(pass_, number_++, element_);
    ++node_.stats().elements;
    return true;
  }
  void state(PassState& s) override {
    s.begin(node_);
    s.any(pass_);
    s(number_);
    s(source_);
  }

 private:
  int64_t pass_;
  Tensors element_;
};

int thread_count(int64_t asked) {
  if (asked != AUTOTUNE) return static_cast<int>(asked);
  const CoreSet cores =
      DeviceManager::initialised() ? host_cores() : CoreSet::allowed();
  return std::max(1, cores.size());
}

// The line, and how many transforms come before.
uint64_t place_of(const MapNode& node) {
  uint64_t depth = 0;
  for (const Node* n = &node; n != nullptr; ++depth) {
    const auto inputs = n->inputs();
    n = inputs.empty() ? nullptr : inputs[0];
  }
  return (depth << 32) + static_cast<uint64_t>(node.site().line);
}

}  // namespace

void note_manner(const char* manner) {
  if (t_called_stage != nullptr) t_called_stage->manner = manner;
}

Tensors MapNode::call(int64_t pass, int64_t number,
                      const Tensors& element) const {
  const ElementRandomKeys keys(place_, static_cast<uint64_t>(pass),
                               static_cast<uint64_t>(number));
  struct Called {
    explicit Called(StageStats* s) : outer(std::exchange(t_called_stage, s)) {}
    ~Called() { t_called_stage = outer; }
    StageStats* const outer;
  } const called(&stats_);
  if (number % kTimedEvery != 0) return call_map(*this, number, fn_, element);
  const int64_t since = stage_clock_ns();
  Tensors result = call_map(*this, number, fn_, element);
  stats_.timed_ns += stage_clock_ns() - since;
  ++stats_.timed;
  return result;
}

std::string MapNode::explain() const {
  std::string text;
  if (threads_ == 0) {
    text = "in the thread that reads";
  } else if (const int64_t n = stats_.size; autotune_ && n == 0) {
    text = fmt::format("AUTOTUNE, not run yet, at most {} threads", threads_);
  } else {
    text = fmt::format("{} {} threads", autotune_ ? "AUTOTUNE" : "told",
                       n > 0 ? n : threads_);
  }
  text += stats_.manner.load() + stats_text(stats_) + stats_.why.load();
  if (threads_ > 0 && stats_.waits > 0 && with_inputs_ns(parent()) > own_ns()) {
    text += "; what comes before is the slower part";
  }
  return text;
}

// Threads that call the function tell how long from a share of its calls.
int64_t MapNode::own_ns() const {
  if (threads_ == 0) return Node::own_ns();
  const int64_t calls = stats_.timed;
  if (calls == 0) return 0;
  return static_cast<int64_t>(static_cast<double>(stats_.timed_ns) /
                              static_cast<double>(calls) *
                              static_cast<double>(stats_.elements)) /
         std::max<int64_t>(stats_.size, 1);
}

std::string MapNode::advice() const {
  const std::string manner = stats_.manner.load();
  if (manner.find("Python") != std::string::npos) {
    return "; Python runs it on one thread at a time: ops that can be traced "
           "run as a plan";
  }
  return threads_ == 0 ? "; with num_parallel_calls several threads share it"
                       : "";
}

MapNode::MapNode(const Dataset& parent, MapFunction fn,
                 const MapOptions& options, Site site,
                 std::shared_ptr<const ResultNames> names)
    : Transform("map", site, parent),
      fn_(std::move(fn)),
      threads_(thread_count(options.num_parallel_calls)),
      autotune_(options.num_parallel_calls == AUTOTUNE),
      place_(place_of(*this)),
      deterministic_(options.deterministic),
      names_(std::move(names)) {}

std::unique_ptr<ElementStream> MapNode::elements(const PassInfo& pass) const {
  if (threads_ == 0 || pass.peek) {
    return std::make_unique<MapStream>(*this, pass);
  }
  return parallel_map(*this, pass);
}

namespace {

constexpr int kLooksAt = 4;  // elements, where lengths may vary

bool any_unknown(const std::vector<TensorSpec>& specs) {
  return std::any_of(specs.begin(), specs.end(), [](const TensorSpec& s) {
    return !s.shape.is_fully_defined();
  });
}

void open_where_different(const Tensors& element,
                          std::vector<TensorSpec>* specs) {
  for (size_t c = 0; c < std::min(element.size(), specs->size()); ++c) {
    Shape& shape = (*specs)[c].shape;
    const Shape& other = element[c].shape();
    for (int d = 0; d < shape.rank() && shape.rank() == other.rank(); ++d) {
      if (shape[d] != other[d]) shape[d] = kUnknownDim;
    }
  }
}

}  // namespace

const std::vector<TensorSpec>& MapNode::specs() const {
  std::lock_guard lock(mutex_);
  if (specs_) return *specs_;
  auto specs = std::make_unique<std::vector<TensorSpec>>();
  std::stop_source stop;
  Tensors element;
  const auto pass = open({.stop = stop.get_token(), .peek = true});
  if (pass->next(&element)) {
    // Batches of unknown size stay so.
    const auto& before = parent().specs();
    const bool unknown =
        !before.empty() && before[0].shape.rank() > 0 && before[0].shape[0] < 0;
    for (const Tensor& t : element) {
      TensorSpec spec = t.spec();
      if (unknown && spec.shape.rank() > 0) spec.shape[0] = kUnknownDim;
      specs->push_back(std::move(spec));
    }
    // Where elements differ, a few of them say where.
    for (int i = 1; i < kLooksAt && any_unknown(before); ++i) {
      if (!pass->next(&element)) break;
      open_where_different(element, specs.get());
    }
  }
  specs_ = std::move(specs);
  return *specs_;
}

namespace {

void check_map(bool any, const MapOptions& options, Site site) {
  const std::string where = call_text("map", site);
  if (!any) refuse(where, "the function is empty; expected one to call");
  const int64_t n = options.num_parallel_calls;
  if (n != AUTOTUNE && (n < 0 || n > kMaxThreads)) {
    refuse(where, fmt::format("num_parallel_calls is {}; expected 0 to {}, or "
                              "data::AUTOTUNE",
                              n, kMaxThreads));
  }
}

}  // namespace

Dataset Dataset::map(MapFunction fn, const MapOptions& options,
                     Site site) const {
  check_map(fn != nullptr, options, site);
  if (options.vectorized) {
    return row_map("map", *this, vectorized_kernel(std::move(fn)), site);
  }
  return make_dataset<MapNode>(*this, std::move(fn), options, site);
}

Dataset Dataset::map_named(NamedMapFunction fn, const MapOptions& options,
                           Site site) const {
  check_map(fn != nullptr, options, site);
  const auto names = std::make_shared<const ResultNames>();
  MapFunction list = with_names(std::move(fn), node_, names);
  if (options.vectorized) {
    return row_map("map", *this, vectorized_kernel(std::move(list), names),
                   site);
  }
  return make_dataset<MapNode>(*this, std::move(list), options, site, names);
}

}  // namespace berth::data
