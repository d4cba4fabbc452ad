// What most sources include: compiled once (cmake/BerthModules.cmake), which
// saves 5 to 10 % of compiling them. Sources include what they use all the
// same.

#ifndef BERTH_PRECOMPILED_H_
#define BERTH_PRECOMPILED_H_

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "berth/errors.h"
#include "berth/tensor.h"

#endif  // BERTH_PRECOMPILED_H_
