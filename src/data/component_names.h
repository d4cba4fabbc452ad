// Names of components that are known from the datasets they come from.

#ifndef BERTH_DATA_COMPONENT_NAMES_H_
#define BERTH_DATA_COMPONENT_NAMES_H_

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "data/node.h"

namespace berth::data {

// The names of the first dataset that a node made while it ran. Thread-safe.
class LearntNames {
 public:
  void learn(const Dataset& made) const {
    std::lock_guard lock(mutex_);
    if (!known_ && !first_) first_ = made;
  }
  // `compute` makes the node learn, where it has not run.
  template <class F>
  NamesRef get(F&& compute) const {
    std::unique_lock lock(mutex_);
    if (!known_ && !first_) {
      lock.unlock();
      compute();
      lock.lock();
    }
    if (!known_) {
      const std::optional<Dataset> first = std::exchange(first_, std::nullopt);
      if (first) names_ = first->node().names();
      known_ = true;
    }
    return names_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::optional<Dataset> first_;
  mutable NamesRef names_;
  mutable bool known_ = false;
};

// The names of what a function returns: those of its first result. Thread-safe.
class ResultNames {
 public:
  // Throws errors::InvalidArgument when the names are not those of the first.
  void check(const Element& result) const;
  // `compute` calls the function, where it has not been called.
  template <class F>
  NamesRef get(F&& compute) const {
    std::unique_lock lock(mutex_);
    if (!names_) {
      lock.unlock();
      compute();
      lock.lock();
    }
    return names_ && !names_->empty() ? names_ : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  mutable NamesRef names_;
};

// `fn` as a function of lists, whose results' names are checked by `names`.
MapFunction with_names(NamedMapFunction fn, std::shared_ptr<const Node> before,
                       std::shared_ptr<const ResultNames> names);

// `name`, then `names`; null where there are none.
inline NamesRef names_after(const char* name, const NamesRef& names) {
  if (!names) return nullptr;
  Names all = {name};
  all.insert(all.end(), names->begin(), names->end());
  return std::make_shared<const Names>(std::move(all));
}

// The names of several datasets side by side; null where one has none, or two
// the same.
inline NamesRef joined_names(const std::vector<Dataset>& datasets) {
  Names all;
  for (const Dataset& d : datasets) {
    const NamesRef names = d.node().names();
    if (!names) return nullptr;
    for (const std::string& name : *names) {
      if (std::find(all.begin(), all.end(), name) != all.end()) return nullptr;
      all.push_back(name);
    }
  }
  return std::make_shared<const Names>(std::move(all));
}

}  // namespace berth::data

#endif  // BERTH_DATA_COMPONENT_NAMES_H_
