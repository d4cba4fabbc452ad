// Speeds of simulated devices that differ: BERTH_SIM_SPEEDS. Thread-safe.

#ifndef BERTH_DEVICE_SIM_SPEEDS_H_
#define BERTH_DEVICE_SIM_SPEEDS_H_

namespace berth {

// Returns how many times as fast as RuntimeConfig says simulated device
// `number` computes: element `number` of BERTH_SIM_SPEEDS ("4,0.5"), 1 where
// there is none. Throws errors::InvalidArgument naming the variable.
double sim_speed(int number);

}  // namespace berth

#endif  // BERTH_DEVICE_SIM_SPEEDS_H_
