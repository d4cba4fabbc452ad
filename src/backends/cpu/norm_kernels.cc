// Batch normalisation: moments of parts of rows, combined; then normalises.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/dnnl_math.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/norm_groups.h"

namespace berth::cpu {

namespace {

// An array [rows, channels], or each of its groups, split by rows, with two
// rows of channels of scratch per part and five shared ones.
class NormKernel : public Prepared {
 public:
  NormKernel(const PrepareArgs& args, const Shape& x)
      : channels_(x[x.rank() - 1]),
        rows_(x.num_elements() / channels_ / reference::norm_groups(args)),
        parts_(cut_parts(rows_, rows_ * channels_, args.slices)),
        training_(args.attr<bool>("is_training")),
        epsilon_(args.attr<double>("epsilon")) {}

  size_t scratch_bytes() const override {
    return float_bytes((2 * parts_ + 5) * channels_);
  }

  void run(const KernelCall& c) const override {
    reference::by_groups(c, shared(c, 3),
                         [this](const KernelCall& group) { normalise(group); });
  }

 protected:
  virtual void normalise(const KernelCall& c) const = 0;  // one group
  int64_t begin(int part) const { return part_begin(rows_, parts_, part); }
  // Row i of the shared scratch, of `channels_` floats.
  float* shared(const KernelCall& c, int i) const {
    return static_cast<float*>(c.context->scratch) + i * channels_;
  }
  float* own(const KernelCall& c, int part, int i) const {
    return shared(c, 5 + 2 * part + i);
  }
  double inverse_deviation(float variance) const {
    return 1 / std::sqrt(double{variance} + epsilon_);
  }

  const int64_t channels_, rows_;
  const int parts_;
  const bool training_;
  const double epsilon_;
};

class BatchNorm : public NormKernel {
 public:
  using NormKernel::NormKernel;

  void normalise(const KernelCall& c) const override {
    if (training_) {
      moments(c);
    } else {
      copy_moments(c);
    }
    const float *mean = c.out[3].as<float>(), *variance = c.out[4].as<float>();
    float *factor = shared(c, 0), *shift = shared(c, 1);
    for (int64_t i = 0; i < channels_; ++i) {
      const double k = c.in[1].as<float>()[i] * inverse_deviation(variance[i]);
      factor[i] = static_cast<float>(k);
      shift[i] = static_cast<float>(c.in[2].as<float>()[i] -
                                    double{mean[i]} * factor[i]);
    }
    run_parts(c, parts_, rows_ * channels_, [&](int part) {
      const int64_t at = begin(part) * channels_;
      loops().scale_shift(c.in[0].as<float>() + at, factor, shift,
                          c.out[0].as<float>() + at,
                          begin(part + 1) - begin(part), channels_);
    });
  }

 private:
  void moments(const KernelCall& c) const {
    run_parts(c, parts_, rows_ * channels_, [&](int part) {
      loops().moments(c.in[0].as<float>() + begin(part) * channels_,
                      begin(part + 1) - begin(part), channels_, own(c, part, 0),
                      own(c, part, 1));
    });
    for (int step = 1; step < parts_; step *= 2) {
      for (int i = 0; i + step < parts_; i += 2 * step) {
        const int middle = i + step, end = std::min(i + 2 * step, parts_);
        merge_moments(begin(middle) - begin(i), own(c, i, 0), own(c, i, 1),
                      begin(end) - begin(middle), own(c, middle, 0),
                      own(c, middle, 1), channels_);
      }
    }
    const float *mean = own(c, 0, 0), *squares = own(c, 0, 1);
    const auto n = static_cast<double>(rows_);
    for (int64_t i = 0; i < channels_; ++i) {
      c.out[1].as<float>()[i] = c.out[3].as<float>()[i] = mean[i];
      c.out[2].as<float>()[i] =
          static_cast<float>(squares[i] / std::max(n - 1, 1.0));
      c.out[4].as<float>()[i] = static_cast<float>(squares[i] / n);
    }
  }

  void copy_moments(const KernelCall& c) const {
    for (int i = 1; i < 5; ++i) {
      std::memcpy(c.out[i].data, c.in[i % 2 == 1 ? 3 : 4].data,
                  float_bytes(channels_));
    }
  }
};

class BatchNormGrad : public NormKernel {
 public:
  using NormKernel::NormKernel;

  void normalise(const KernelCall& c) const override {
    const float *dy = c.in[0].as<float>(), *x = c.in[1].as<float>();
    const float* mean = c.in[3].as<float>();
    run_parts(c, parts_, rows_ * channels_, [&](int part) {
      const int64_t at = begin(part) * channels_;
      loops().norm_grad_sums(x + at, dy + at, mean,
                             begin(part + 1) - begin(part), channels_,
                             own(c, part, 0), own(c, part, 1));
    });
    tree_sum(own(c, 0, 0), parts_, 2 * channels_, 2 * channels_,
             c.context->pool);
    factors(c);
    run_parts(c, parts_, rows_ * channels_, [&](int part) {
      const int64_t at = begin(part) * channels_;
      loops().norm_grad(x + at, dy + at, mean, shared(c, 0), shared(c, 1),
                        shared(c, 2), c.out[0].as<float>() + at,
                        begin(part + 1) - begin(part), channels_);
    });
  }

 private:
  void factors(const KernelCall& c) const {
    const float *scale = c.in[2].as<float>(), *variance = c.in[4].as<float>();
    const float *sum_dy = own(c, 0, 0), *sum_dy_x = own(c, 0, 1);
    float *k_dy = shared(c, 0), *k_x = shared(c, 1), *k_one = shared(c, 2);
    const double share = training_ ? 1 / static_cast<double>(rows_) : 0;
    for (int64_t i = 0; i < channels_; ++i) {
      const double inverse = inverse_deviation(variance[i]);
      const double k = scale[i] * inverse;
      k_dy[i] = static_cast<float>(k);
      k_x[i] = static_cast<float>(k * inverse * inverse * sum_dy_x[i] * share);
      k_one[i] = static_cast<float>(k * sum_dy[i] * share);
      c.out[1].as<float>()[i] = static_cast<float>(sum_dy_x[i] * inverse);
      c.out[2].as<float>()[i] = sum_dy[i];
    }
  }
};

template <class Kernel, int kX>
std::unique_ptr<Prepared> norm(const PrepareArgs& args) {
  const Shape& x = *args.in[kX].shape;
  if (x.num_elements() == 0) return nullptr;
  return std::make_unique<Kernel>(args, x);
}

}  // namespace

void add_norm(KernelTable& t) {
  t.prepared("FusedBatchNormV3", kFloat32, &norm<BatchNorm, 0>, "loops");
  t.prepared("FusedBatchNormGradV3", kFloat32, &norm<BatchNormGrad, 1>,
             "loops");
}

}  // namespace berth::cpu
