// The typed part of Strategy::run(); included by berth/distribute.h.

#ifndef BERTH_DISTRIBUTE_RUN_H_
#define BERTH_DISTRIBUTE_RUN_H_

#include "berth/distribute.h"

#endif  // BERTH_DISTRIBUTE_RUN_H_
