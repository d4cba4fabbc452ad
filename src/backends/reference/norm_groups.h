// Batch norms whose batch consists of several groups with separate moments: a
// kernel for one group is called for each. Re-entrant.

#ifndef BERTH_BACKENDS_REFERENCE_NORM_GROUPS_H_
#define BERTH_BACKENDS_REFERENCE_NORM_GROUPS_H_

#include <algorithm>
#include <array>

#include "op/kernel.h"

namespace berth::reference {

// Returns the groups of a call, or of a kernel's preparation.
template <class Call>
int64_t norm_groups(const Call& c) {
  if (!c.template attr<bool>("is_training")) return 1;
  return std::max<int64_t>(1, c.template attr<int64_t>("statistics_groups"));
}

// Returns rows [length / n * i, ...) of a view, or row i of moments [n, c].
class GroupView {
 public:
  GroupView() = default;
  GroupView(const View& of, int64_t i, int64_t n, bool moments)
      : shape_(moments ? Shape{of.dim(1)} : *of.shape), view_(of) {
    if (!moments) shape_[0] /= n;
    const int64_t bytes =
        shape_.num_elements() * static_cast<int64_t>(size_of(of.dtype));
    view_.data = static_cast<std::byte*>(of.data) + i * bytes;
  }
  View view() const {
    View v = view_;
    v.shape = &shape_;
    return v;
  }

 private:
  Shape shape_;
  View view_;
};

// to += from; at the end, to *= share.
template <class T>
void add_group(const View& to, const View& from, bool end, double share) {
  for (int64_t i = 0; i < to.size(); ++i) {
    if (to.data != from.data) to.as<T>()[i] += from.as<T>()[i];
    if (end) to.as<T>()[i] *= static_cast<T>(share);
  }
}

// Calls one(call of a group) for FusedBatchNormV3 and FusedBatchNormGradV3.
// Outputs 1 and 2, [c], are the mean (forward) or the sum (gradient) over the
// groups. `sums` has space for two of them.
template <class One>
void by_groups(const KernelCall& c, void* sums, One&& one) {
  const int64_t n = norm_groups(c);
  if (n == 1) return one(c);
  const bool forward = c.num_out == 5;
  const int like_x = forward ? 1 : 2;  // inputs
  std::array<View, 5> in, out;
  std::array<GroupView, 5> ins, outs;
  KernelCall call = c;
  call.in = in.data();
  call.out = out.data();
  for (int64_t g = 0; g < n; ++g) {
    for (int i = 0; i < c.num_in; ++i) {
      const bool own = i < like_x || i > 2;
      if (own) ins[i] = GroupView(c.in[i], g, n, i > 2);
      in[i] = own ? ins[i].view() : c.in[i];
    }
    for (int o = 0; o < c.num_out; ++o) {
      const bool own = o == 0 || o > 2;
      if (own) outs[o] = GroupView(c.out[o], g, n, o > 2);
      out[o] = own ? outs[o].view() : c.out[o];
    }
    const int64_t row =
        c.out[1].size() * static_cast<int64_t>(size_of(c.out[1].dtype));
    for (int o = 1; g > 0 && o < 3; ++o) {
      out[o].data = static_cast<std::byte*>(sums) + (o - 1) * row;
    }
    one(call);
    const double share = forward ? 1 / static_cast<double>(n) : 1;
    for (int o = 1; o < 3; ++o) {
      if (c.out[o].dtype == float64) {
        add_group<double>(c.out[o], out[o], g + 1 == n, share);
      } else {
        add_group<float>(c.out[o], out[o], g + 1 == n, share);
      }
    }
  }
}

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_NORM_GROUPS_H_
