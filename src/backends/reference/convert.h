// Conversion of whole arrays between any two element types: the Cast op, and
// the path of narrow types through wider ones. Pure; re-entrant.

#ifndef BERTH_BACKENDS_REFERENCE_CONVERT_H_
#define BERTH_BACKENDS_REFERENCE_CONVERT_H_

#include "op/kernel.h"

namespace berth::reference {

// Stores `from`, converted, in `to`, an array of as many elements. A fraction
// loses what an integer has no room for: it saturates, NaN becomes 0. Integers
// wrap around. What is cut to 16 bits is rounded to float first. A complex
// number loses its imaginary part; anything but zero is true.
void convert_elements(const View& to, const View& from);

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_CONVERT_H_
