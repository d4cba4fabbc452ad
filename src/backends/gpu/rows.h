// Launches of kernels in which several items share a row (kernels/rows.cl).

#ifndef BERTH_BACKENDS_GPU_ROWS_H_
#define BERTH_BACKENDS_GPU_ROWS_H_

#include <vector>

#include "backends/gpu/recipe.h"

namespace berth::gpu {

// Returns a program of rows.cl and these files, for elements of `type`.
KernelSource row_source(DType type, std::vector<std::string> files);

// Returns how many items share a row of n elements, at least `share` each.
int32_t row_lanes(const Features& features, int64_t n, int64_t share = 4);

// Appends a launch of a KERNEL(ROW_ITEMS, ...) for that many rows.
void launch_rows(Recipe& r, const KernelSource& source, const char* kernel,
                 int64_t rows, int32_t lanes, const std::vector<Arg>& args);

// Returns an argument `real` of programs for `type`.
Arg real_value(DType type, double x);

// x seen as rows along its last axis.
struct RowShape {
  int64_t rows = 0, length = 0;
};
RowShape rows_of(const Shape& x);

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Reduces input `x` into output `y`: "sum", "prod", "max" or "min" over these
// axes, divided by `divisor`.
bool reduce_axes(Recipe& r, const char* kind, const bool* reduced,
                 double divisor = 1, int x = 0, int y = 0);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_ROWS_H_
