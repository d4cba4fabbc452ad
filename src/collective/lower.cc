#include "collective/lower.h"

namespace berth {

void lower_collectives(Graph&) {}

}  // namespace berth
