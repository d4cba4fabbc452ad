// Cumulative ops and linear recurrences.

#include <string>

#include "backends/gpu/kernels.h"
#include "backends/gpu/rows.h"

namespace berth::gpu {

namespace {
namespace scan_family {

KernelSource source_of(Recipe& r) {
  return row_source(r.in_type(0), {"math.cl", "real_math.cl", "scan.cl"});
}

int32_t flag(Recipe& r, const char* name) {
  return r.args().attr<bool>(name) ? 1 : 0;
}

// Lines along the axis: [outer, n, inner].
struct Lines {
  int64_t outer = 1, n = 0, inner = 1;
  int64_t count() const { return outer * inner; }
};

Lines lines_of(Recipe& r) {
  const Shape& x = r.in_shape(0);
  const int axis = normalize_axis(r.args().attr<int64_t>("axis"), x.rank(),
                                  r.args().op->name().c_str());
  Lines l;
  for (int d = 0; d < x.rank(); ++d) {
    if (d < axis) l.outer *= x[d];
    if (d > axis) l.inner *= x[d];
  }
  l.n = x[axis];
  return l;
}

// Groups process longer lines, and very long ones are split.
constexpr int64_t kLongestSerial = 256;
constexpr int64_t kPiece = 16384;

void by_tiles(Recipe& r, const KernelSource& source, const std::string& kind,
              const Lines& l) {
  const DType type = r.in_type(0);
  const int64_t pieces = ceil_div(l.n, kPiece), groups = l.count() * pieces;
  const Arg n = value(l.n), inner = value(l.inner);
  const Arg reverse = value(flag(r, "reverse"));
  Arg carries = no_buffer();
  if (pieces > 1) {
    const bool half = type == bfloat16 || type == float16;
    carries =
        r.scratch(static_cast<size_t>(groups) * (half ? 4 : size_of(type)));
    r.groups(source, (kind + "_totals").c_str(), groups,
             {in(0), carries, n, inner, value(kPiece), value(pieces), reverse});
    r.flat(source, (kind + "_carries").c_str(), l.count(),
           {carries, value(l.count()), value(pieces)});
  }
  r.groups(source, (kind + "_tiles").c_str(), groups,
           {in(0), out(0), carries, n, inner, value(kPiece), value(pieces),
            reverse, value(flag(r, "exclusive"))});
}

bool scan(Recipe& r, const std::string& kind) {
  const Lines l = lines_of(r);
  if (l.n * l.count() == 0) return true;
  const KernelSource source = source_of(r);
  if (l.n > kLongestSerial) {
    by_tiles(r, source, kind, l);
    return true;
  }
  r.flat(source, (kind + "_serial").c_str(), l.count(),
         {in(0), out(0), value(l.count()), value(l.n), value(l.inner),
          value(flag(r, "reverse")), value(flag(r, "exclusive"))});
  return true;
}

bool cumsum(Recipe& r) { return scan(r, "sum"); }
bool cumprod(Recipe& r) { return scan(r, "prod"); }
bool logsumexp(Recipe& r) { return scan(r, "logsumexp"); }

bool recurrence(Recipe& r) {
  const Lines l = lines_of(r);
  if (l.n == 0) return true;
  const bool segments = r.num_in() == 3;
  const Arg ids = segments ? in(2) : no_buffer();
  const int32_t id_bytes =
      segments ? static_cast<int32_t>(size_of(r.in_type(2))) : 0;
  r.flat(source_of(r), "recurrence", l.count(),
         {in(0), in(1), ids, ids, out(0), value(l.count()), value(l.n),
          value(l.inner), value(flag(r, "reverse")), value(flag(r, "previous")),
          value(flag(r, "exclusive")), value(id_bytes)});
  return true;
}

}  // namespace scan_family
}  // namespace

void add_scan(Kernels& k) {
  using namespace scan_family;  // NOLINT: the functions of this file
  k.add("Cumsum", kRealNumbers, &cumsum);
  k.add("Cumprod", kRealNumbers, &cumprod);
  k.add("CumulativeLogsumexp", kRealFloats, &logsumexp);
  k.add("LinearRecurrence", kRealFloats, &recurrence);
  k.add("SegmentRecurrence", kRealFloats, &recurrence);
}

}  // namespace berth::gpu
