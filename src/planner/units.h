// Quantities with units, as people write them: "16GiB", "64GB/s", "5us".
//
// Pure functions; any thread.

#ifndef BERTH_PLANNER_UNITS_H_
#define BERTH_PLANNER_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

enum class Quantity : uint8_t {
  kBytes,      // in bytes: B, kB, KiB, MB, MiB, GB, GiB, TB, TiB
  kTime,       // in microseconds: ns, us, ms, s
  kBandwidth,  // in bytes per microsecond: a unit of bytes with /s
  kFlops,      // in operations per microsecond: MFLOPS, GFLOPS, TFLOPS, PFLOPS
};

// Returns the value of the text in the unit above. Throws
// errors::InvalidArgument for a text without a unit, with an unknown one, or
// for a number that is negative or not finite, with the text and an example.
double parse_quantity(std::string_view text, Quantity kind);

// Returns the suffix of a field's name whose value is a plain number in the
// unit above: "_bytes", "_us", "_bytes_per_us", "_per_us".
const char* unit_suffix(Quantity kind);

// Returns "39.79 ms", "12.5 us"; without a unit for files that name none.
// `unit`: PlanProblem::time_unit.
std::string time_text(double time, const std::string& unit);

// Returns bytes for people; also above 2^63.
std::string size_text(double bytes);

}  // namespace berth

#endif  // BERTH_PLANNER_UNITS_H_
