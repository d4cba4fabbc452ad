// Conversion of whole arrays between any two element types: the Cast op, and
// the path of narrow types through wider ones. Pure; re-entrant.

#ifndef BERTH_BACKENDS_REFERENCE_CONVERT_H_
#define BERTH_BACKENDS_REFERENCE_CONVERT_H_

#include "op/kernel.h"

namespace berth::reference {

// Stores `from`, converted, in `to`, an array of as many elements. Fractions
// are truncated to integers; values out of range saturate, NaN becomes 0.
// Integers wrap around. Conversion to 16 bits rounds to float first. A complex
// number loses its imaginary part; anything but zero is true.
void convert_elements(const View& to, const View& from);

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_CONVERT_H_
