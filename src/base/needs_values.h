// NeedsValues: the mark of errors that a trace meets because values are not
// there yet.

#ifndef BERTH_BASE_NEEDS_VALUES_H_
#define BERTH_BASE_NEEDS_VALUES_H_

namespace berth {

// Base of such an error, beside its class of errors.h: the caller that traced
// may run the same code op by op, where it works.
struct NeedsValues {};

template <class Error>
struct Untraceable : Error, NeedsValues {
  using Error::Error;
};

}  // namespace berth

#endif  // BERTH_BASE_NEEDS_VALUES_H_
