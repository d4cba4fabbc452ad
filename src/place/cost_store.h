// CostStore: what was measured on this machine, in memory and in a file.
//
// Keeps ops by everything their time depends on, rates by device class, links
// by their classes, and the errors of predictions. The process's store is read
// at first use from $BERTH_CACHE_DIR/costs.json, else
// $XDG_CACHE_HOME/berth/costs.json, else ~/.cache/berth/costs.json; without any
// of these it stays in memory. A file that cannot be read, or has another
// format, counts as empty; failing to write one has no effect. Several
// processes may share a file: save() merges. Thread-safe.

#ifndef BERTH_PLACE_COST_STORE_H_
#define BERTH_PLACE_COST_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "place/costs.h"

namespace berth {

class CostStore {
 public:
  // The process's store. Never destroyed.
  static CostStore& get();

  // A separate store. `path` "": in memory only. Measurements of one `version`
  // of Berth are not read by another.
  CostStore(std::string path, std::string version);
  ~CostStore();
  CostStore(const CostStore&) = delete;
  CostStore& operator=(const CostStore&) = delete;

  // Keys: op_key(); names of classes; "<class> -> <class>".
  std::optional<OpTime> find_op(const std::string& key) const;
  std::optional<DeviceClass> find_class(const std::string& name) const;
  std::optional<LinkCost> find_link(const std::string& key) const;
  void add_op(const std::string& key, const OpTime& time);
  void add_class(const DeviceClass& rates);
  void add_link(const std::string& key, const LinkCost& link);

  // Records a step that took `measured_us`; returns error().
  double record_prediction(double predicted_us, double measured_us);
  // The median of |predicted / measured - 1| over the last 32 predictions;
  // negative: there are none.
  double error() const;

  // Merges what is new here into the file. Returns false when the file cannot
  // be written or has another format (then it is left alone).
  bool save();
  const std::string& path() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Returns all that the time of a node depends on: op, attributes, dtypes,
// shapes, and `where` (class and kernel). "": the node has no such key (it
// holds functions or unknown dimensions).
std::string op_key(const Graph& graph, int32_t node, const std::string& where);

// Returns the version of Berth and how it was built: "0.1.0, not optimised".
std::string cost_version();

// Records a step in the process's store, and saves it. Returns the new median
// error (CostStore::error).
double record_prediction(double predicted_us, double measured_us);

}  // namespace berth

#endif  // BERTH_PLACE_COST_STORE_H_
