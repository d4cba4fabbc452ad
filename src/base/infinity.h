// A time, size or cost that nothing reaches.

#ifndef BERTH_BASE_INFINITY_H_
#define BERTH_BASE_INFINITY_H_

#include <limits>

namespace berth {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace berth

#endif  // BERTH_BASE_INFINITY_H_
