// note_ignored_launcher: reports that the variables of a launcher are not
// followed.
//
// Called where one process trains alone: a launcher that describes a cluster
// then runs the same training in every task. Thread-safe.

#ifndef BERTH_DISTRIBUTE_STRATEGY_IGNORED_LAUNCHER_H_
#define BERTH_DISTRIBUTE_STRATEGY_IGNORED_LAUNCHER_H_

#include "berth/site.h"

namespace berth::distribute {

// Reports "launcher-ignored" once if it applies. `what`: "fit",
// "MirroredStrategy".
void note_ignored_launcher(const char* what, Site site);

// Reports "launcher-late" once if TF_CONFIG has changed since a resolver read
// it: the cluster is still the one that it named then.
void note_late_launcher(const char* what, Site site);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_IGNORED_LAUNCHER_H_
