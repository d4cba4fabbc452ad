// unread_launcher: what the variables of a launcher say to a process that has
// not asked for them.

#ifndef BERTH_CLUSTER_UNREAD_H_
#define BERTH_CLUSTER_UNREAD_H_

#include <string>

#include "cluster/variables.h"

namespace berth::cluster {

// Returns "TF_CONFIG says that this is worker:1 of 2 tasks", or why what is set
// cannot be read; "" when nothing speaks of several tasks, when this task is
// the evaluator, and after a resolver of berth/cluster.h has read them.
std::string unread_launcher();

// Returns "TF_CONFIG was set after it had been read: now TF_CONFIG says ...";
// "" when what a resolver read still holds, or none has read.
std::string late_launcher();

// unread_launcher() of given variables, whoever has read them.
std::string launcher_text(const Variables& variables);

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_UNREAD_H_
