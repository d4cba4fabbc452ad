#include "op/replica_scope.h"

namespace berth {

bool& Unaggregated::active() {
  static thread_local bool active = false;
  return active;
}

}  // namespace berth
