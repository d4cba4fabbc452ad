// Counts what the program asks the system's allocator for. Thread-safe.

#ifndef BERTH_CONFORMANCE_ALLOCATIONS_H_
#define BERTH_CONFORMANCE_ALLOCATIONS_H_

namespace berth::conformance {

// How often so far; 0 in a program that a sanitizer allocates for.
long system_allocations();

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_ALLOCATIONS_H_
