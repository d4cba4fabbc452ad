// Kernels: how a backend computes ops.
//
// A *direct* kernel is a function valid for every shape, found in a flat
// [op][dtype] table. A *prepared* kernel makes an immutable state for given
// specs and attributes, or refuses. A KernelTable lists the candidates of one
// backend in order of preference. Tables are filled before devices exist and
// are immutable afterwards; kernels are re-entrant.

#ifndef BERTH_OP_KERNEL_H_
#define BERTH_OP_KERNEL_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/shape.h"
#include "berth/site.h"
#include "op/op_registry.h"

namespace berth {

class KernelTable;
class Stream;
class ThreadPool;

// A row-major array as a kernel sees it: dense, or, for kernels that say
// `pitched`, rows of a wider one.
struct View {
  void* data = nullptr;
  const Shape* shape = nullptr;
  DType dtype = DType::kInvalid;
  // Pitched views only: the axes from `run_axis` on are dense; from one such
  // run to the next it is `pitch` elements. 0: the whole array is dense.
  int8_t run_axis = 0;
  int64_t pitch = 0;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t size() const { return shape->num_elements(); }
  int64_t dim(int i) const { return (*shape)[i]; }
};

// Where a kernel runs.
struct KernelContext {
  Stream* stream = nullptr;    // that the call is work of
  ThreadPool* pool = nullptr;  // null: this thread alone
  int slices = 1;              // parts of a fork; results depend on it alone
  void* scratch = nullptr;     // Prepared::scratch_bytes(), 64-byte aligned
  // The step counter of random ops, in the memory of the device, so that work
  // that is replayed reads what it is then; null: 0.
  const uint64_t* step_counter = nullptr;
  // When the kernel computes one part of a split op: where the part begins in
  // the unsplit output 0, counted in elements (random ops).
  int64_t slice_origin = 0;
  // Then also: the shape of the unsplit input 0 (means divide by its count).
  const Shape* unsplit = nullptr;

  uint64_t step() const { return step_counter ? *step_counter : 0; }
};

struct KernelCall {
  const OpDef* op = nullptr;
  const Attrs* attrs = nullptr;
  const View* in = nullptr;  // a resource input is the variable's storage
  const View* out = nullptr;
  int num_in = 0;
  int num_out = 0;
  const KernelContext* context = nullptr;

  template <class T>
  const T& attr(std::string_view name) const {
    return op->attr<T>(attrs, name);
  }
};

using DirectKernel = void (*)(const KernelCall& call);

// State of one prepared kernel: for one set of specs and attributes.
class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual size_t scratch_bytes() const { return 0; }
  virtual void run(const KernelCall& call) const = 0;
};

struct PrepareArgs {
  const OpDef* op = nullptr;
  const Attrs* attrs = nullptr;
  std::span<const SpecView> in;
  std::span<const OutSpec> out;
  int slices = 1;
  const Shape* unsplit = nullptr;  // as in KernelContext
  // The device's, for kernels that call others; set by bind_kernel().
  const KernelTable* table = nullptr;

  template <class T>
  const T& attr(std::string_view name) const {
    return op->attr<T>(attrs, name);
  }
};

// Null: refused for these specs; the next candidate is asked.
using PrepareFn =
    std::function<std::unique_ptr<Prepared>(const PrepareArgs& args)>;

struct KernelDef {
  std::string label;  // "reference", "dnnl"; for explain and traces
  DTypeSet dtypes = kAllTypes;
  DirectKernel direct = nullptr;  // or
  PrepareFn prepare = nullptr;
  // True when outputs may share the bytes of the input they are computed
  // from elementwise; read by the memory plan.
  bool in_place = false;
  // True when the kernel itself uses context.pool and context.slices;
  // otherwise the executor cuts the op by its split rule.
  bool parallel = false;
  // True when the kernel takes pitched views whose runs are last axes: rows
  // of a wider array.
  bool pitched = false;
  // True when it is valid for every shape and all attributes: direct ones, and
  // such of another table that `launch` runs. Set by the table.
  bool any_shape = false;
  // True when it may refuse shapes or attributes that no other candidate takes,
  // of an op that has a decomposition: code that keeps the op whole calls
  // takes() first.
  bool partial = false;
};

struct BoundKernel;

// Runs a kernel of another table.
using LaunchFn =
    std::function<void(const KernelCall& call, const BoundKernel& kernel)>;

class KernelTable {
 public:
  // Appends a candidate for an op. The dtype is that of the first input that
  // is not a resource, else of output 0, else of the first variable.
  void add(std::string_view op, KernelDef def);
  void direct(std::string_view op, DTypeSet dtypes, DirectKernel kernel,
              const char* label, bool in_place = false);
  void prepared(std::string_view op, DTypeSet dtypes, PrepareFn prepare,
                const char* label, bool parallel = true);
  // Appends the candidates of `other` after those here.
  void append(const KernelTable& other);
  // Appends them too, each run by `launch`: for a device whose memory has other
  // addresses than tensors name, or that hands calls on to a queue.
  void append(const KernelTable& other, const LaunchFn& launch);
  // Takes away all candidates of an op (a device that lacks the kernel).
  void remove(std::string_view op);

  // The first candidate when it is direct; else null. The fast path.
  DirectKernel fast(uint16_t op_id, DType dtype) const {
    const size_t i = size_t{op_id} * kNumDTypes + static_cast<size_t>(dtype);
    return i < fast_.size() ? fast_[i] : nullptr;
  }
  // The first candidate when it is valid for every shape; else null.
  const KernelDef* for_any_shape(const OpDef& op, DType dtype) const;
  // In order of preference.
  std::span<const KernelDef> candidates(const OpDef& op) const;
  // True when a candidate that is not partial takes the dtype.
  bool supports(const OpDef& op, DType dtype) const;

 private:
  void rebuild_fast(uint16_t op_id);
  std::vector<std::vector<KernelDef>> by_op_;
  std::vector<DirectKernel> fast_;
};

// Adds kernels of the user's own to every device of `device_type` ("CPU",
// "GPU"; simulated devices too), before those of the backend. Throws
// errors::FailedPrecondition once devices exist, errors::InvalidArgument for a
// type that is not in capitals.
void register_kernels(const std::string& device_type,
                      std::function<void(KernelTable&)> add,
                      Site site = Site::here());

// Returns the dtype that selects a kernel.
DType kernel_dtype(std::span<const SpecView> in, std::span<const OutSpec> out);

// True when kernels of `table`, or the op's decomposition, can compute it.
bool can_run(const KernelTable& table, const OpDef& op, DType dtype);

// The chosen kernel of one call: direct, or prepared state.
struct BoundKernel {
  DirectKernel direct = nullptr;
  std::unique_ptr<Prepared> state;
  const KernelDef* def = nullptr;  // null: nothing fits

  void run(const KernelCall& call) const {
    if (direct) {
      direct(call);
    } else {
      state->run(call);
    }
  }
};

// True when a kernel of `table` takes these specs. Prepares only what is
// partial.
bool takes(const KernelTable& table, const PrepareArgs& args);

// Asks the candidates in order. An empty result: none takes these specs.
BoundKernel bind_kernel(const KernelTable& table, const PrepareArgs& args);

}  // namespace berth

#endif  // BERTH_OP_KERNEL_H_
