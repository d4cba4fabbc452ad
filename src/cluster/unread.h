// unread_launcher: describes launcher variables that were not read.

#ifndef BERTH_CLUSTER_UNREAD_H_
#define BERTH_CLUSTER_UNREAD_H_

#include <string>

#include "cluster/variables.h"

namespace berth::cluster {

// Returns "TF_CONFIG says that this is worker:1 of 2 tasks", or why the
// variables cannot be read; "" if no variable describes several tasks, if this
// task is the evaluator, or once a resolver of berth/cluster.h has read them.
std::string unread_launcher();

// Returns "TF_CONFIG was set after it had been read: now TF_CONFIG says ...";
// "" if what a resolver read is still valid, or none has read it.
std::string late_launcher();

// unread_launcher() on given variables, even if they have been read.
std::string launcher_text(const Variables& variables);

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_UNREAD_H_
