// verdicts_of: what a report's numbers mean, where most of a step is something
// that can be avoided.
//
// A pure function of the rows of a report. Times of virtual clocks are left
// out.

#ifndef BERTH_PLACE_VERDICTS_H_
#define BERTH_PLACE_VERDICTS_H_

#include <string>
#include <vector>

#include "berth/placement.h"

namespace berth {

// After how many of so many runs the host read a value of the device.
struct HostReads {
  int64_t runs = 0;
  int64_t read = 0;
  std::string device;  // that was read last
};

// One sentence each: Python on the host, loops of tiny ops, a value that is
// read after every run.
std::vector<std::string> verdicts_of(const placement::Report& report,
                                     const HostReads& reads);

}  // namespace berth

#endif  // BERTH_PLACE_VERDICTS_H_
