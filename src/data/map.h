// The parts of map: the node, and its stream with threads of its own.

#ifndef BERTH_DATA_MAP_H_
#define BERTH_DATA_MAP_H_

#include <memory>
#include <mutex>
#include <vector>

#include "data/component_names.h"
#include "data/host_budget.h"
#include "data/node.h"

namespace berth::data {

class MapNode : public Transform {
 public:
  MapNode(const Dataset& parent, MapFunction fn, const MapOptions& options,
          Site site, std::shared_ptr<const ResultNames> names = nullptr);
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  const std::vector<TensorSpec>& specs() const override;

  NamesRef names() const override {
    return names_ ? names_->get([&] { specs(); }) : nullptr;
  }
  const MapFunction& fn() const { return fn_; }
  // The most, where AUTOTUNE chooses.
  int threads() const { return threads_; }
  bool autotune() const { return autotune_; }
  StageStats& stats() const { return stats_; }
  std::string explain() const override;
  int64_t own_ns() const override;
  std::string advice() const override;
  NodeMemory memory() const override { return {passes_.load(), 0}; }
  void set_memory(const NodeMemory& m) const override { passes_ = m.passes; }
  // The number of a new pass.
  int64_t begin(const PassInfo& pass) const {
    return pass.peek ? passes_.load() : passes_.fetch_add(1);
  }
  // Calls the function for element `number` of pass `pass`: random ops in it
  // draw numbers of that element, whatever thread calls.
  Tensors call(int64_t pass, int64_t number, const Tensors& element) const;
  bool deterministic() const { return deterministic_; }

 private:
  MapFunction fn_;
  int threads_;
  bool autotune_;
  uint64_t place_;  // in the program: tells random numbers of maps apart
  mutable StageStats stats_;
  mutable std::atomic<int64_t> passes_{0};
  bool deterministic_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<std::vector<TensorSpec>> specs_;  // under mutex_
  std::shared_ptr<const ResultNames> names_;  // null: a function of lists
};

// Calls the function on node.threads() threads, at most twice as many
// elements ahead of the reader.
std::unique_ptr<ElementStream> parallel_map(const MapNode& node,
                                            const PassInfo& pass);

}  // namespace berth::data

#endif  // BERTH_DATA_MAP_H_
