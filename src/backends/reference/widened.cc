#include "backends/reference/widened.h"

#include "backends/reference/convert.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

DType dtype_of_call(const KernelCall& c) {
  for (int i = 0; i < c.num_in; ++i) {
    if (c.op->input(i).access == Access::kValue) return c.in[i].dtype;
  }
  return c.num_out > 0 ? c.out[0].dtype : c.in[0].dtype;
}

// An operand in the dtype of the computation, with separate memory if that
// differs.
class Operand {
 public:
  Operand(const View& v, DType narrow) : narrow_(v), wide_(v) {
    if (v.dtype == narrow) wide_.dtype = wider(narrow);
    // The parts of a complex number.
    if (narrow == complex64 && v.dtype == float32) wide_.dtype = float64;
    if (wide_.dtype == v.dtype) return;
    memory_.resize(static_cast<size_t>(v.size()) * size_of(wide_.dtype));
    wide_.data = memory_.data();
  }
  const View& view() const { return wide_; }
  void load() const { copy(wide_, narrow_); }
  void store() const { copy(narrow_, wide_); }

 private:
  static void copy(const View& to, const View& from) {
    if (to.dtype != from.dtype) convert_elements(to, from);
  }
  View narrow_, wide_;
  Scratch<std::byte> memory_;
};

void widened(const KernelCall& c) {
  const DType narrow = dtype_of_call(c);
  run_widened(c, narrow, kernels().fast(c.op->id(), wider(narrow)));
}

// Returns the dtypes of the operand that selects the kernel.
DTypeSet picking_types(const OpDef& op) {
  for (const ArgDef& a : op.inputs()) {
    if (a.access == Access::kValue) return a.types;
  }
  return kEveryNumber;
}

}  // namespace

void run_widened(const KernelCall& c, DType narrow, DirectKernel kernel) {
  Scratch<Operand> operands;
  operands.reserve(static_cast<size_t>(c.num_in + c.num_out));
  Scratch<View> views;
  for (int i = 0; i < c.num_in + c.num_out; ++i) {
    const View& v = i < c.num_in ? c.in[i] : c.out[i - c.num_in];
    views.push_back(operands.emplace_back(v, narrow).view());
    if (i < c.num_in) operands.back().load();
  }
  KernelCall call = c;
  call.in = views.data();
  call.out = views.data() + c.num_in;
  kernel(call);
  for (int i = 0; i < c.num_in + c.num_out; ++i) {
    const bool result = i >= c.num_in || writes(c.op->input(i).access);
    if (result) operands[static_cast<size_t>(i)].store();
  }
}

void add_widened(KernelTable& t) {
  for (const OpDef* op : OpRegistry::get().all()) {
    const DTypeSet types = picking_types(*op);
    for (int d = 1; d < kNumDTypes; ++d) {
      const auto narrow = static_cast<DType>(d);
      if (wider(narrow) == DType::kInvalid || !(types & dtype_bit(narrow)) ||
          t.supports(*op, narrow))
        continue;
      if (t.fast(op->id(), wider(narrow)) == nullptr) continue;
      t.direct(op->name(), dtype_bit(narrow), &widened, "widened");
    }
  }
}

}  // namespace berth::reference
