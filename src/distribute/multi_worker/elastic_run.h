// ElasticRun: what a task keeps while elastic() runs, from one generation of
// the cluster to the next.
//
// Made by elastic(), found through the strategy by the fits of `train`, which
// put their state here. One thread.

#ifndef BERTH_DISTRIBUTE_MULTI_WORKER_ELASTIC_RUN_H_
#define BERTH_DISTRIBUTE_MULTI_WORKER_ELASTIC_RUN_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "berth/multi_worker.h"
#include "ops/random_key.h"

namespace berth::distribute {

// The state of one fit; keras/training/elastic_keeper.h.
struct KeptFit {
  virtual ~KeptFit() = default;
};

struct ElasticRun {
  ElasticOptions options;
  // Returns true once this task was told to end.
  std::function<bool()> told_to_end;
  std::mutex mutex;  // of fits: threads of the member read them
  // The fits of `train`, in order of their calls.
  std::vector<std::shared_ptr<KeptFit>> fits;
  // What `train` draws from when it begins, in all tasks and each time.
  std::optional<RandomState> first;
  size_t next_fit = 0;    // of this call of `train`
  bool restored = false;  // the current fit, from memory or a peer
  bool leaving = false;   // this task hands over and ends
  bool over = false;      // `train` has returned here
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_MULTI_WORKER_ELASTIC_RUN_H_
