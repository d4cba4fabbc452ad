// Which tasks this process can reach: names are resolved and addresses dialled,
// all at once, and nothing takes longer than the given time.

#ifndef BERTH_CLI_CLUSTER_REACH_H_
#define BERTH_CLI_CLUSTER_REACH_H_

#include <string>
#include <vector>

#include "berth/cluster.h"

namespace berth::cli {

enum class Reach {
  kSelf,         // this task
  kReached,      // the connection was accepted
  kRefused,      // the host answers, but nothing listens there
  kNoName,       // the name does not resolve
  kNoAnswer,     // no answer in time
  kUnreachable,  // the network reports it
  kUnknown,      // the address is not known yet, or not dialled
  kStranger,     // the listener there is not a task of this cluster
  kDuplicate,    // another task has the same address under another name
};
const char* reach_name(Reach reach);  // "reached", "no_name"

struct Reached {
  distribute::TaskId task;
  std::string address;
  Reach state = Reach::kUnknown;
  std::string why;               // in words
  std::vector<std::string> ips;  // of the name, without ports
  double milliseconds = 0;       // until connected
};

// In order of spec.tasks(). Evaluators are resolved but not dialled. Connected
// tasks are compared by secret, cluster and build.
std::vector<Reached> reach_all(const distribute::ClusterResolver& resolver,
                               double timeout_seconds);

// Marks tasks whose names lead to the address of another one; `source` is what
// described the cluster.
void find_duplicates(const std::string& source, std::vector<Reached>& all);

// Returns names of other hosts that lead to this one; a sentence each.
std::vector<std::string> reach_notes(const std::vector<Reached>& all);

// Returns "" when this task can listen on its port, else the reason.
std::string own_port_error(const distribute::ClusterResolver& resolver);

}  // namespace berth::cli

#endif  // BERTH_CLI_CLUSTER_REACH_H_
