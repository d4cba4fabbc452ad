#include "backends/gpu/rows.h"

#include "berth/errors.h"

namespace berth::gpu {

namespace {

bool is_wide_type(DType type) { return type == float64 || type == complex128; }

}  // namespace

KernelSource row_source(DType type, std::vector<std::string> files) {
  KernelSource s;
  s.files = {"index.cl", "rows.cl"};
  s.files.insert(s.files.end(), files.begin(), files.end());
  s.types = {{"T", type}};
  s.defines = {{"WIDE", is_wide_type(type) ? "1" : "0"}};
  return s;
}

int32_t row_lanes(const Features& features, int64_t n, int64_t share) {
  int32_t lanes = 1;
  while (lanes < features.group_size && lanes * share < n) lanes *= 2;
  return lanes;
}

void launch_rows(Recipe& r, const KernelSource& source, const char* kernel,
                 int64_t rows, int32_t lanes, const std::vector<Arg>& args) {
  const int32_t items = r.features().group_size;
  const int64_t groups = ceil_div(rows, items / lanes);
  if (groups > INT32_MAX) {
    throw errors::InvalidArgument(r.args().op->name() +
                                  ": too many rows for one launch of a GPU");
  }
  r.launch(
      source, kernel,
      {{static_cast<uint32_t>(groups), 1, 1}, static_cast<uint32_t>(items)},
      args);
}

Arg real_value(DType type, double x) {
  return is_wide_type(type) ? value(x) : value(static_cast<float>(x));
}

RowShape rows_of(const Shape& x) {
  const int64_t length = x[x.rank() - 1];
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows *= x[i];
  return {rows, length};
}

}  // namespace berth::gpu
