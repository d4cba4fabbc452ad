#include "backends/cpu/dnnl_math.h"

#include <fmt/format.h>
#include <omp.h>

#include <initializer_list>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "backends/cpu/conv_small.h"
#include "backends/cpu/conv_winograd.h"
#include "backends/cpu/loops.h"
#include "base/immortal.h"
#include "base/thread_pool.h"
#include "berth/errors.h"

namespace berth::cpu {
namespace {

using dnnl::algorithm;
using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;
using dnnl::memory;
using dnnl::prop_kind;
using Desc = memory::desc;
constexpr auto kFloat = memory::data_type::f32;
constexpr auto kDirect = algorithm::convolution_direct;

// Sets the number of OpenMP threads to one and restores it afterwards: it
// belongs to the calling thread, which may be the user's.
class OneOmpThread {
 public:
  OneOmpThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneOmpThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneOmpThread(const OneOmpThread&) = delete;
  OneOmpThread& operator=(const OneOmpThread&) = delete;

 private:
  const int before_;
};

// Limits oneDNN to the instruction set of our own loops, so that one setting
// decides all bits.
void limit_isa() {
  switch (loops().isa) {
    case Isa::kV1:
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
      break;
    case Isa::kV3:
      if (isa_is_forced()) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
      break;
    case Isa::kV4:
      break;
  }
}

// Must run before the first use of oneDNN in the process.
void prepare() {
  static const bool once = (limit_isa(), true);
  (void)once;
}

const dnnl::engine& engine() {
  prepare();
  static const auto& cpu = immortal<dnnl::engine>(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  struct Own {
    dnnl::stream stream{engine()};
  };
  return of_this_thread<Own>().stream;
}

// A primitive and the handles of its arguments. Creating a handle costs oneDNN
// three allocations, and it holds one address at a time. Sets of handles are
// therefore kept, and each execution borrows one.
class Primitive {
 public:
  // The DNNL_ARG_ number of each argument, and its memory layout.
  using Arguments = std::vector<std::pair<int, Desc>>;

  Primitive() = default;
  Primitive(dnnl::primitive primitive, Arguments arguments)
      : state_(std::make_unique<State>()) {
    state_->primitive = std::move(primitive);
    state_->arguments = std::move(arguments);
  }

  // Executes it on `data`, one address per argument. Any thread.
  void run(std::initializer_list<const void*> data) const {
    std::unique_ptr<Handles> handles = borrow();
    dnnl_status_t status = dnnl_success;
    size_t i = 0;
    for (const void* at : data) {
      const dnnl_status_t s = dnnl_memory_set_data_handle(
          handles->list[i++].memory, const_cast<void*>(at));
      if (s != dnnl_success) status = s;
    }
    // The C entry point avoids building a map per call.
    if (status == dnnl_success) {
      status = dnnl_primitive_execute(state_->primitive.get(), stream().get(),
                                      static_cast<int>(handles->list.size()),
                                      handles->list.data());
    }
    give_back(std::move(handles));
    if (status == dnnl_success) return;
    throw errors::Internal(fmt::format(
        "oneDNN: executing a convolution failed with status {}; please report "
        "the shape",
        static_cast<int>(status)));
  }

 private:
  struct Handles {
    std::vector<memory> owned;
    std::vector<dnnl_exec_arg_t> list;
  };
  struct State {
    dnnl::primitive primitive;
    Arguments arguments;
    std::mutex mutex;
    std::vector<std::unique_ptr<Handles>> unused;
    size_t made = 0;
  };

  std::unique_ptr<Handles> borrow() const {
    {
      std::lock_guard lock(state_->mutex);
      if (!state_->unused.empty()) {
        auto handles = std::move(state_->unused.back());
        state_->unused.pop_back();
        return handles;
      }
      state_->unused.reserve(++state_->made);
    }
    auto handles = std::make_unique<Handles>();
    for (const auto& [name, desc] : state_->arguments) {
      handles->owned.emplace_back(desc, engine(), nullptr);
      handles->list.push_back({name, handles->owned.back().get()});
    }
    return handles;
  }

  void give_back(std::unique_ptr<Handles> handles) const {
    std::lock_guard lock(state_->mutex);
    state_->unused.push_back(std::move(handles));
  }

  std::unique_ptr<State> state_;
};

size_t round_up(size_t bytes) { return (bytes + 127) / 128 * 128; }

struct Geometry {
  memory::dims strides, dilations, pad_low, pad_high;
};

Geometry geometry_of(const ConvShape& s) {
  return {{s.stride_h, s.stride_w},
          {s.dilation_h - 1, s.dilation_w - 1},
          {s.pad_top, s.pad_left},
          {s.pad_bottom, s.pad_right}};
}

// oneDNN 3 describes a primitive in one call; before, what it computes was a
// descriptor of its own. `what`: the layouts of its arguments.
template <class... Layouts>
auto describe_forward(const Geometry& g, const dnnl::primitive_attr& attributes,
                      const Layouts&... what) {
  using Conv = convolution_forward;
  const auto kind = prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return Conv::primitive_desc(engine(), kind, kDirect, what..., g.strides,
                              g.dilations, g.pad_low, g.pad_high, attributes);
#else
  return Conv::primitive_desc(Conv::desc(kind, kDirect, what..., g.strides,
                                         g.dilations, g.pad_low, g.pad_high),
                              attributes, engine());
#endif
}

template <class Conv>
auto describe_backward(const Geometry& g,
                       const dnnl::primitive_attr& attributes,
                       const convolution_forward::primitive_desc& hint,
                       const Desc& input, const Desc& filter,
                       const Desc& output) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Conv::primitive_desc(engine(), kDirect, input, filter, output,
                                       g.strides, g.dilations, g.pad_low,
                                       g.pad_high, hint, attributes);
#else
  return
      typename Conv::primitive_desc({kDirect, input, filter, output, g.strides,
                                     g.dilations, g.pad_low, g.pad_high},
                                    attributes, engine(), hint);
#endif
}

void append_relu(dnnl::post_ops& after) {
#if DNNL_VERSION_MAJOR >= 3
  after.append_eltwise(algorithm::eltwise_relu, 0.f, 0.f);
#else
  after.append_eltwise(1.f, algorithm::eltwise_relu, 0.f, 0.f);
#endif
}

// The filter's dims in oneDNN's logical order; `plain`: [h, w, in, out].
Desc filter_desc(const ConvShape& s, bool plain) {
  const int64_t in = s.in_c / s.groups, out = s.out_c / s.groups;
  memory::dims dims{s.groups, out, in, s.kernel_h, s.kernel_w};
  memory::dims strides{out, 1, s.out_c, s.kernel_w * in * s.out_c,
                       in * s.out_c};
  if (s.groups == 1) {
    dims.erase(dims.begin());
    strides.erase(strides.begin());
  }
  if (plain) return Desc(dims, kFloat, strides);
  return Desc(dims, kFloat, memory::format_tag::any);
}

// One primitive for one batch size of a slice.
struct Unit {
  Primitive primitive;
  Desc filter;
  size_t scratch_bytes = 0;
};

bool is_reference(const std::string& name) {
  return name.rfind("ref", 0) == 0 || name.find(":ref") != std::string::npos;
}

class DnnlConv : public SlicedConv {
 public:
  DnnlConv(const ConvShape& shape, ConvPass pass, const ConvChoice& options)
      : shape_(shape), pass_(pass), options_(options) {
    batch_ = shape.batch;
    slices_ = static_cast<int>(
        std::max<int64_t>(1, std::min<int64_t>(options.slices, batch_)));
    plain_filter_ = filter_desc(shape, true);
    small_ = make_unit(batch_ / slices_);
    if (batch_ % slices_ != 0) large_ = make_unit(batch_ / slices_ + 1);
    lay_out();
  }

  bool refused() const { return is_reference(implementation_); }

  void begin(const ConvBuffers& buffers) const override {
    if (pass_ == ConvPass::kBackwardWeights || !reorders_) return;
    OneOmpThread one;
    reorder_.run({buffers.filter, buffers.scratch});
  }

  void slice(int index, const ConvBuffers& b) const override {
    OneOmpThread one;
    const int64_t first = first_image(index);
    const bool large = first_image(index + 1) - first > batch_ / slices_;
    const Primitive& run = (large ? large_ : small_).primitive;
    auto* base = static_cast<char*>(b.scratch);
    const void* scratch = base + scratchpads_at_ + index * scratchpad_stride_;
    const float* input = offset(b.input, first * shape_.image_in());
    const float* grad = offset(b.grad, first * shape_.image_out());
    const void* filter = reorders_ ? base : static_cast<const void*>(b.filter);
    float* result = b.result;
    switch (pass_) {
      case ConvPass::kForward:
        result += first * shape_.image_out();
        if (options_.bias) {
          return run.run({input, filter, b.bias, result, scratch});
        }
        return run.run({input, filter, result, scratch});
      case ConvPass::kBackwardData:
        result += first * shape_.image_in();
        return run.run({grad, filter, result, scratch});
      case ConvPass::kBackwardWeights:
        // The slice's partial sum; a single slice has the whole sum.
        const void* part = base + index * filter_stride_;
        return run.run({input, grad, in_place() ? result : part, scratch});
    }
  }

  void finish(const ConvBuffers& b, ThreadPool* pool) const override {
    if (pass_ != ConvPass::kBackwardWeights || in_place()) return;
    auto* parts = static_cast<float*>(b.scratch);
    tree_sum(parts, slices_, static_cast<int64_t>(small_.filter.get_size() / 4),
             static_cast<int64_t>(filter_stride_ / 4), pool);
    OneOmpThread one;
    reorder_.run({parts, b.result});
  }

 private:
  static const float* offset(const float* data, int64_t by) {
    return data == nullptr ? nullptr : data + by;
  }

  // True for one slice whose filter gradient already has the plain layout.
  bool in_place() const { return slices_ == 1 && !reorders_; }

  Unit make_unit(int64_t images) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const Geometry g = geometry_of(shape_);
    const auto nhwc = memory::format_tag::nhwc;
    const Desc input({images, shape_.in_c, shape_.in_h, shape_.in_w}, kFloat,
                     nhwc);
    const Desc output({images, shape_.out_c, shape_.out_h(), shape_.out_w()},
                      kFloat, nhwc);
    // Later units adopt the filter layout of the first.
    const Desc filter =
        implementation_.empty() ? filter_desc(shape_, false) : small_.filter;
    if (pass_ == ConvPass::kForward) {
      if (options_.relu) {
        dnnl::post_ops after;
        append_relu(after);
        attributes.set_post_ops(after);
      }
      const Desc bias({shape_.out_c}, kFloat, memory::format_tag::x);
      const auto chosen =
          options_.bias
              ? describe_forward(g, attributes, input, filter, bias, output)
              : describe_forward(g, attributes, input, filter, output);
      const Desc weights = chosen.weights_desc();
      Primitive::Arguments arguments{{DNNL_ARG_SRC, input},
                                     {DNNL_ARG_WEIGHTS, weights}};
      if (options_.bias) arguments.emplace_back(DNNL_ARG_BIAS, bias);
      arguments.emplace_back(DNNL_ARG_DST, output);
      return finish_unit(convolution_forward(chosen), chosen,
                         std::move(arguments), weights);
    }
    const auto hint = describe_forward(g, attributes, input,
                                       filter_desc(shape_, false), output);
    if (pass_ == ConvPass::kBackwardData) {
      const auto chosen = describe_backward<convolution_backward_data>(
          g, attributes, hint, input, filter, output);
      const Desc weights = chosen.weights_desc();
      return finish_unit(convolution_backward_data(chosen), chosen,
                         {{DNNL_ARG_DIFF_DST, output},
                          {DNNL_ARG_WEIGHTS, weights},
                          {DNNL_ARG_DIFF_SRC, input}},
                         weights);
    }
    const auto chosen = describe_backward<convolution_backward_weights>(
        g, attributes, hint, input, filter, output);
    const Desc weights = chosen.diff_weights_desc();
    return finish_unit(convolution_backward_weights(chosen), chosen,
                       {{DNNL_ARG_SRC, input},
                        {DNNL_ARG_DIFF_DST, output},
                        {DNNL_ARG_DIFF_WEIGHTS, weights}},
                       weights);
  }

  template <class Chosen>
  Unit finish_unit(dnnl::primitive primitive, const Chosen& chosen,
                   Primitive::Arguments arguments, const Desc& filter) {
    const std::string name = chosen.impl_info_str();
    if (implementation_.empty() || is_reference(name)) implementation_ = name;
    const Desc scratch = chosen.scratchpad_desc();
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, scratch);
    return {Primitive(std::move(primitive), std::move(arguments)), filter,
            scratch.get_size()};
  }

  // Reorders filters from layout `from` to layout `to`.
  static Primitive reorder(const Desc& from, const Desc& to) {
    return Primitive(dnnl::reorder({engine(), from, engine(), to}),
                     {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  void lay_out() {
    reorders_ = small_.filter != plain_filter_;
    const bool weights = pass_ == ConvPass::kBackwardWeights;
    if (weights) {
      reorder_ = reorder(small_.filter, plain_filter_);
    } else if (reorders_) {
      reorder_ = reorder(plain_filter_, small_.filter);
    }
    filter_stride_ = round_up(small_.filter.get_size());
    size_t copies = reorders_ ? 1 : 0;
    if (weights) copies = in_place() ? 0 : slices_;
    scratchpads_at_ = copies * filter_stride_;
    scratchpad_stride_ =
        round_up(std::max(small_.scratch_bytes, large_.scratch_bytes));
    scratch_bytes_ = scratchpads_at_ + slices_ * scratchpad_stride_;
  }

  const ConvShape shape_;
  const ConvPass pass_;
  const ConvChoice options_;
  Unit small_, large_;
  Desc plain_filter_;
  Primitive reorder_;
  bool reorders_ = false;
  size_t filter_stride_ = 0, scratchpads_at_ = 0, scratchpad_stride_ = 0;
};

}  // namespace

void use_one_openmp_thread() { omp_set_num_threads(1); }

void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
           float alpha, const float* a, int64_t lda, const float* b,
           int64_t ldb, float beta, float* c, int64_t ldc) {
  prepare();
  OneOmpThread one;
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k,
                 alpha, a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl_success) {
    throw errors::Internal(fmt::format(
        "oneDNN: sgemm of m={} n={} k={} lda={} ldb={} ldc={} failed with "
        "status {}; expected row strides of at least the row lengths",
        m, n, k, lda, ldb, ldc, static_cast<int>(status)));
  }
}

std::string ConvShape::problem() const {
  if (groups < 1 || in_c % groups != 0 || out_c % groups != 0) {
    return fmt::format("channels {} -> {} do not divide into {} groups", in_c,
                       out_c, groups);
  }
  if (batch < 1 || in_h < 1 || in_w < 1 || in_c < 1 || out_c < 1 ||
      kernel_h < 1 || kernel_w < 1) {
    return "a dimension is zero or negative";
  }
  if (stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1 ||
      pad_top < 0 || pad_bottom < 0 || pad_left < 0 || pad_right < 0) {
    return "a stride or dilation is below 1 or a padding below 0";
  }
  if (in_h + pad_top + pad_bottom < dilation_h * (kernel_h - 1) + 1 ||
      in_w + pad_left + pad_right < dilation_w * (kernel_w - 1) + 1) {
    return "the kernel is larger than the padded input";
  }
  return "";
}

std::unique_ptr<ConvPlan> ConvPlan::make(const ConvShape& shape, ConvPass pass,
                                         const ConvChoice& options,
                                         std::string* refusal) {
  std::string why = shape.problem();
  if (why.empty() && SmallChannelConv::takes(shape, pass)) {
    return std::make_unique<SmallChannelConv>(shape, pass, options);
  }
  if (why.empty() && options.winograd && WinogradConv::takes(shape, pass)) {
    return std::make_unique<WinogradConv>(shape, pass, options);
  }
  if (why.empty()) {
    OneOmpThread one;
    try {
      auto plan = std::make_unique<DnnlConv>(shape, pass, options);
      if (!plan->refused()) return plan;
      why = "oneDNN has only its reference loops (" + plan->implementation() +
            ") for this shape";
    } catch (const dnnl::error& error) {
      why = fmt::format("oneDNN refused: {}", error.what());
    }
  }
  if (refusal != nullptr) *refusal = why;
  return nullptr;
}

void SlicedConv::run(const ConvBuffers& buffers, ThreadPool* pool) const {
  begin(buffers);
  if (pool == nullptr || slices_ == 1) {
    for (int i = 0; i < slices_; ++i) slice(i, buffers);
  } else {
    pool->parallel_for(slices_, [&](int i) { slice(i, buffers); });
  }
  finish(buffers, pool);
}

}  // namespace berth::cpu
