// note_ignored_launcher: says that a launcher's variables are not followed.
//
// Acts where one process trains alone: a launcher that was told of a cluster
// then runs the same training in every task. Thread-safe.

#ifndef BERTH_DISTRIBUTE_IGNORED_LAUNCHER_H_
#define BERTH_DISTRIBUTE_IGNORED_LAUNCHER_H_

#include "berth/site.h"

namespace berth::distribute {

// Reports "launcher-ignored" once when there is something to say. `what`:
// "fit", "MirroredStrategy".
void note_ignored_launcher(const char* what, Site site);

// Reports "launcher-late" once when TF_CONFIG has changed since a resolver read
// it: the cluster is still the one that it named then.
void note_late_launcher(const char* what, Site site);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_IGNORED_LAUNCHER_H_
