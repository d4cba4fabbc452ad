// Cards that are not here, for cuDNN to plan for. Tests only.

#ifndef BERTH_CONFORMANCE_CUDNN_PLANS_CARDS_H_
#define BERTH_CONFORMANCE_CUDNN_PLANS_CARDS_H_

#include <string>

#include "backends/cudnn/cudnn_api.h"

namespace berth::conformance {

// The interface with cuDNN open and a driver that stands in; null, with the
// reason, where there is none.
const BerthCudnnApi* plan_library(std::string* why);

// An A100 (80), H200 (90) or B200 (100), made once. Throws errors::Internal.
BerthCudnnCard* planned_card(const BerthCudnnApi& api, int architecture);

// Makes the plan of a graph, or finds it among those that were made before,
// and reads it back from its bytes. Why that fails; "": it does not.
std::string why_no_plan(const BerthCudnnApi& api, int architecture,
                        const BerthCudnnGraph& graph);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_CUDNN_PLANS_CARDS_H_
