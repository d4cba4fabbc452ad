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

// Whether devices have one of each: their times cannot be compared.
struct Clocks {
  bool virtual_time = false, real = false;
  void add(std::string_view full_name) {
    (on_virtual_clock(full_name) ? virtual_time : real) = true;
  }
  bool both() const { return virtual_time && real; }
  // What follows a time on them: "" or ", simulated".
  const char* mark() const { return virtual_time ? ", simulated" : ""; }
};

}  // namespace berth

#endif  // BERTH_DEVICE_VIRTUAL_CLOCK_H_
