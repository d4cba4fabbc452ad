// The parts of map: the node, and its stream with threads of its own.

#ifndef BERTH_DATA_MAP_H_
#define BERTH_DATA_MAP_H_

#include <memory>
#include <mutex>
#include <vector>

#include "data/node.h"

namespace berth::data {

class MapNode : public Transform {
 public:
  MapNode(const Dataset& parent, MapFunction fn, const MapOptions& options,
          Site site);
  std::unique_ptr<ElementStream> elements(const Pass& pass) const override;
  const std::vector<TensorSpec>& specs() const override;

  const MapFunction& fn() const { return fn_; }
  int threads() const { return threads_; }
  bool deterministic() const { return deterministic_; }

 private:
  MapFunction fn_;
  int threads_;
  bool deterministic_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<std::vector<TensorSpec>> specs_;  // under mutex_
};

// Calls the function on node.threads() threads, at most twice as many
// elements ahead of the reader.
std::unique_ptr<ElementStream> parallel_map(const MapNode& node,
                                            const Pass& pass);

}  // namespace berth::data

#endif  // BERTH_DATA_MAP_H_
