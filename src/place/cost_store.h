// CostStore: what was measured on this machine, in memory and in a file.
//
// Ops by everything their time depends on, rates by device class, links by
// their classes, and how wrong predictions were. The process's store is read at
// its first use from $BERTH_CACHE_DIR/costs.json, else
// $XDG_CACHE_HOME/berth/costs.json, else ~/.cache/berth/costs.json; with none
// of these it stays in memory. A file that cannot be read, or is not of this
// format, counts as empty, and one that cannot be written changes nothing.
// Several processes may share a file: save() merges. Thread-safe.

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
  // The process's. Never destroyed.
  static CostStore& get();

  // A store of its own. `path` "": in memory alone. What one `version` of
  // Berth measured, no other reads.
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

  // Takes note of a step that took `measured_us`; returns error().
  double record_prediction(double predicted_us, double measured_us);
  // The median of |predicted / measured - 1| of the last 32 predictions;
  // negative: there are none.
  double error() const;

  // Puts what is new here into the file, beside what others put there.
  // Returns false when the file cannot be written, or is of another format
  // (then it is left alone).
  bool save();
  const std::string& path() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Returns what the time of a node depends on: op, attributes, dtypes, shapes,
// and `where` (class and kernel). "": the node cannot be named so (it holds
// functions or unknown dimensions).
std::string op_key(const Graph& graph, int32_t node, const std::string& where);

// Returns the version of Berth and how it was built: "0.1.0, not optimised".
std::string cost_version();

// Takes note of a step on the process's store, and saves it. Returns the
// median error (CostStore::error) with it.
double record_prediction(double predicted_us, double measured_us);

}  // namespace berth

#endif  // BERTH_PLACE_COST_STORE_H_
