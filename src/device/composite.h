// The type of composite devices: names that stand for several devices, each of
// which has a copy of the value. Nothing runs on one.

#ifndef BERTH_DEVICE_COMPOSITE_H_
#define BERTH_DEVICE_COMPOSITE_H_

#include <string_view>

namespace berth {

inline constexpr std::string_view kCompositeType = "COMPOSITE";

}  // namespace berth

#endif  // BERTH_DEVICE_COMPOSITE_H_
