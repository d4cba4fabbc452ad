// Cluster: the devices and links to plan for, read from a file.
//
// docs/formats.md describes the file. Devices need not exist. A value; pure
// functions.

#ifndef BERTH_PLANNER_CLUSTER_H_
#define BERTH_PLANNER_CLUSTER_H_

#include <string>
#include <vector>

#include "planner/problem.h"

namespace berth {

class Field;

struct Cluster {
  // The time of an op on the devices of a class; it overrides all else.
  struct Time {
    std::string op, device_class;
    double us = 0;
  };
  Machine machine;            // full names, in the order of the file
  std::vector<double> speed;  // per class: op times are divided by it
  std::vector<Time> times;
};

// Returns the rule that a device's field "copies" names.
CopyRule read_copy_rule(const Field& field);

// Reads a cluster file. Throws errors::InvalidArgument with file and path.
Cluster read_cluster(const std::string& text, const std::string& file);

// Applies speeds and times to the costs of a graph on the cluster's machine.
// `names`: its nodes' names. Throws errors::InvalidArgument for a time of an op
// that does not exist.
void apply_times(const Cluster& cluster, const std::vector<std::string>& names,
                 CostTable& costs);

}  // namespace berth

#endif  // BERTH_PLANNER_CLUSTER_H_
