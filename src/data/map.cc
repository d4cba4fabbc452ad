#include "data/map.h"

#include <fmt/format.h>

#include "data/pass_state.h"
#include "data/user_call.h"
#include "device/device_manager.h"
#include "device/engine_thread.h"

namespace berth::data {

namespace {

constexpr int64_t kMaxThreads = 1024;

class MapStream : public ElementStream {
 public:
  MapStream(const MapNode* node, const Pass& pass)
      : node_(node), source_(node->parent().open(pass)) {}
  bool next(Tensors* out) override {
    if (!source_->next(&element_)) return false;
    *out = call_map(*node_, number_++, node_->fn(), element_);
    return true;
  }
  void save(PassWriter& w) override {
    w.begin(*node_);
    w.put(number_);
    source_->save(w);
  }
  void restore(PassReader& r) override {
    r.begin(*node_);
    number_ = r.number(0);
    source_->restore(r);
  }

 private:
  const MapNode* node_;
  std::unique_ptr<ElementStream> source_;
  Tensors element_;
  int64_t number_ = 0;
};

int thread_count(int64_t asked) {
  if (asked != AUTOTUNE) return static_cast<int>(asked);
  const CoreSet cores =
      DeviceManager::initialised() ? host_cores() : CoreSet::allowed();
  return std::max(1, cores.size());
}

}  // namespace

MapNode::MapNode(const Dataset& parent, MapFunction fn,
                 const MapOptions& options, Site site)
    : Transform("map", site, parent),
      fn_(std::move(fn)),
      threads_(thread_count(options.num_parallel_calls)),
      deterministic_(options.deterministic) {}

std::unique_ptr<ElementStream> MapNode::elements(const Pass& pass) const {
  if (threads_ == 0 || pass.peek) {
    return std::make_unique<MapStream>(this, pass);
  }
  return parallel_map(*this, pass);
}

const std::vector<TensorSpec>& MapNode::specs() const {
  std::lock_guard lock(mutex_);
  if (specs_) return *specs_;
  auto specs = std::make_unique<std::vector<TensorSpec>>();
  std::stop_source stop;
  Tensors element;
  if (open({.stop = stop.get_token(), .peek = true})->next(&element)) {
    // Batches of unknown size stay so.
    const auto& before = parent().specs();
    const bool unknown =
        !before.empty() && before[0].shape.rank() > 0 && before[0].shape[0] < 0;
    for (const Tensor& t : element) {
      TensorSpec spec = t.spec();
      if (unknown && spec.shape.rank() > 0) spec.shape[0] = kUnknownDim;
      specs->push_back(std::move(spec));
    }
  }
  specs_ = std::move(specs);
  return *specs_;
}

Dataset Dataset::map(MapFunction fn, const MapOptions& options,
                     Site site) const {
  const std::string where = fmt::format("map ({}:{})", site.file, site.line);
  if (!fn) refuse(where, "the function is empty; expected one to call");
  const int64_t n = options.num_parallel_calls;
  if (n != AUTOTUNE && (n < 0 || n > kMaxThreads)) {
    refuse(where, fmt::format("num_parallel_calls is {}; expected 0 to {}, or "
                              "data::AUTOTUNE",
                              n, kMaxThreads));
  }
  return make_dataset<MapNode>(*this, std::move(fn), options, site);
}

}  // namespace berth::data
