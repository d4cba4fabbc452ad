// Functions that make datasets, by the name under which every task of a cluster
// registers them. Thread-safe.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_REGISTERED_DATASETS_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_REGISTERED_DATASETS_H_

#include <string>

#include "berth/parameter_server.h"

namespace berth::distribute {

// Throws errors::NotFound, which lists the registered names.
DatasetFn registered_dataset(const std::string& name);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_REGISTERED_DATASETS_H_
