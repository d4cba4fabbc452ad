#include "collective/between.h"

#include "collective/shared_memory.h"

namespace berth {

void lower_between(Emit& emit, const Bucket& bucket) {
  lower_values(emit, bucket);
}

}  // namespace berth
