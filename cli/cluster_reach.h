// Whom this process can reach: names are resolved and addresses dialled, all
// at once, and nothing takes longer than the given time.

#ifndef BERTH_CLI_CLUSTER_REACH_H_
#define BERTH_CLI_CLUSTER_REACH_H_

#include <string>
#include <vector>

#include "berth/cluster.h"

namespace berth::cli {

enum class Reach {
  kSelf,         // this task
  kReached,      // somebody accepted the connection
  kRefused,      // the host answers, nobody listens there
  kNoName,       // the name does not resolve
  kNoAnswer,     // nothing came back in time
  kUnreachable,  // the network says so
  kUnknown,      // the address is not known yet, or is not dialled
  kStranger,     // who listens there is no task of this cluster
};
const char* reach_name(Reach reach);  // "reached", "no_name"

struct Reached {
  distribute::TaskId task;
  std::string address;
  Reach state = Reach::kUnknown;
  std::string why;               // in words
  std::vector<std::string> ips;  // of the name, without ports
  double milliseconds = 0;       // until the connection stood
};

// In order of spec.tasks(). Evaluators are resolved, not dialled. With whom a
// connection stands, secret, cluster and build are compared.
std::vector<Reached> reach_all(const distribute::ClusterResolver& resolver,
                               double timeout_seconds);

// Which of them share an address though their names differ, and names of other
// hosts that lead to this one; a sentence each.
std::vector<std::string> reach_notes(const std::vector<Reached>& all);

// "" when the port of this task can be listened on, else why not.
std::string own_port_error(const distribute::ClusterResolver& resolver);

}  // namespace berth::cli

#endif  // BERTH_CLI_CLUSTER_REACH_H_
