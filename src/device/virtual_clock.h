// on_virtual_clock: whether times of a device are simulated.
//
// Simulated devices have a clock of their own, unless BERTH_SIM_CLOCK=real;
// their times say so wherever they are printed. Thread-safe.

#ifndef BERTH_DEVICE_VIRTUAL_CLOCK_H_
#define BERTH_DEVICE_VIRTUAL_CLOCK_H_

#include <string_view>

namespace berth {

// False of names that no device here has.
bool on_virtual_clock(std::string_view full_name);

}  // namespace berth

#endif  // BERTH_DEVICE_VIRTUAL_CLOCK_H_
