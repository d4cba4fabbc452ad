#include "conformance/ops/families.h"

namespace berth::conformance {

void add_linalg_cases(Cases&) {}

}  // namespace berth::conformance
