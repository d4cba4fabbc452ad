// Card: one physical GPU as a driver shows it: programs, queues, memory.
//
// The CUDA and the OpenCL plug-in each derive from these classes; everything
// else of a GPU is made of them, once. Any thread may use a Card; a Queue
// belongs to a stream, which lets one thread at a time at it.

#ifndef BERTH_BACKENDS_GPU_CARD_H_
#define BERTH_BACKENDS_GPU_CARD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/gpu/library_op.h"
#include "backends/gpu/source.h"
#include "device/allocator.h"
#include "device/memory_space.h"
#include "device/stream.h"

namespace berth {
class KernelTable;  // op/kernel.h
}

namespace berth::gpu {

class Queue;

// What kernels are written for.
struct Features {
  std::string name;            // "NVIDIA H200"
  size_t memory_bytes = 0;     // of the card
  bool has_f64 = true;         // kernels of float64 and complex128
  int group_size = 256;        // items that work together, a power of two
  size_t local_bytes = 32768;  // of a group
  // Items are loops on processor cores: an item is best given neighbouring
  // elements, and local memory saves nothing.
  bool is_cpu = false;
  // Cards of one number but 0 copy to each other (MemoryOptions::peers).
  int peers = 0;
  // Products of matrices go through tiles in local memory, as suits GPUs.
  bool tiles = true;
  // Products take what is behind them along (Activation, bias).
  bool fuses_products = true;
  // Kernels may follow addresses that they are given as numbers, and take
  // 32,764 bytes of parameters.
  bool addresses = false;
};

// What is done to an element of a product before it is stored.
enum class Activation : uint8_t {
  kNone,
  kRelu,
  kGeluTanh,
  kGeluTanhSlope,  // times gelu's slope at the element of `aux`
};

// c[z] = a[z] b[z] for each batch z: row-major [m, k] or, transposed, [k, m];
// [k, n] or [n, k]; [m, n]. Strides are from one batch to the next, in
// elements; 0: all read the same.
struct MatrixProduct {
  DType dtype = DType::kInvalid;
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t batches = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  // c = activation(a b + bias), bias [n].
  bool bias = false;
  Activation activation = Activation::kNone;
  // aux, of c's shape and strides, becomes a b + bias.
  bool keeps = false;
  // sums [n] becomes the sum of b's rows.
  bool sums_b = false;

  bool has_aux() const {
    return keeps || activation == Activation::kGeluTanhSlope;
  }
  bool is_plain() const {
    return !bias && !has_aux() && !sums_b && activation == Activation::kNone;
  }
};

// Groups along three axes, of `items` items along the first.
struct Grid {
  uint32_t groups[3] = {1, 1, 1};
  uint32_t items = 1;
};

// One argument of a kernel: `bytes` at `value`, or the address of memory of
// the card, which `value` points to.
struct KernelArg {
  const void* value = nullptr;
  uint32_t bytes = 0;  // 0: an address
  size_t extent = 0;   // bytes of the memory at the address; 0: not known
};

// One kernel of a program, for one user of it.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Appends a launch: the same commands each time, but for the addresses. The
  // queue may be recording. Throws errors::Internal when the driver refuses.
  virtual void launch(Queue& queue, const Grid& grid, const KernelArg* args,
                      int num_args) = 0;
  // The same for a library's kernel that may refuse arguments of a call.
  // False: nothing was appended; the caller does without it.
  virtual bool try_launch(Queue& queue, const Grid& grid, const KernelArg* args,
                          int num_args) {
    launch(queue, grid, args, num_args);
    return true;
  }
  virtual bool may_refuse() const { return false; }
};

class Module {
 public:
  virtual ~Module() = default;
  // Throws errors::Internal when there is none of that name.
  virtual std::unique_ptr<Kernel> kernel(const char* name) = 0;
};

// A point that a queue passes; the driver's event.
using Mark = void*;

// Commands of a queue that are appended again and again as one: the driver's
// graph. They keep the addresses and the values that they were recorded with.
class Recording {
 public:
  virtual ~Recording() = default;
  // Appends them. Throws what Queue's functions throw.
  virtual void launch(Queue& queue) = 0;
};

// An in-order queue of the driver.
class Queue {
 public:
  virtual ~Queue() = default;
  // Appends a copy: both ends are memory of cards of one driver, or one is the
  // host's. Host memory that is not pinned may be used at once on return.
  virtual void copy(const Copy& copy) = 0;
  virtual void fill(void* target, int value, size_t bytes) = 0;
  // How many commands were appended, ever; marks are none.
  uint64_t appended() const { return appended_; }
  // The point behind everything so far, which the caller releases. When it
  // throws, everything so far has ended.
  virtual Mark mark() = 0;
  virtual void release(Mark mark) noexcept = 0;
  // True when it is passed; throws errors::* when what lies before it failed.
  virtual bool passed(Mark mark) = 0;
  // Blocks until then; throws the same.
  virtual void await(Mark mark) = 0;
  // Lets what is appended from now on start behind a mark of another queue of
  // this driver.
  virtual void follow(Mark mark) = 0;
  // When it was passed, in microseconds of the host's clock.
  virtual double passed_us(Mark mark) = 0;
  // Hands what was appended to the card.
  virtual void flush() {}
  // For tools that look at the process, when listened(): what is appended until
  // leave() belongs to this work.
  bool listened() const { return listened_; }
  virtual void enter(const Work& /*work*/, const Stream& /*of*/) {}
  virtual void leave() noexcept {}
  // Times of what is appended are traced by the queue itself (work_trace.h).
  bool traces() const { return traces_; }
  // What a trace by events says of its times.
  const char* timing() const { return timing_; }
  // Somebody has waited for the queue: what is known now may be written.
  virtual void waited() noexcept {}

  // True when this queue can record, which may be asked at any time.
  virtual bool can_record() const { return false; }
  // Keeps what is appended from now on instead of doing it, until one of the
  // others is called; meanwhile there are no marks, no waits for marks, and no
  // copies from or to host memory that is not pinned. Nothing is allocated on
  // this thread. Throws errors::* when the driver refuses.
  virtual void begin_recording() {}
  // Returns what was kept; `old`, if not null, is of the same work at other
  // addresses and may become the result. Throws errors::* when something cannot
  // be recorded: then the queue does what it is given again, too.
  virtual std::unique_ptr<Recording> end_recording(
      std::unique_ptr<Recording> /*old*/) {
    return nullptr;
  }
  // Forgets what was kept.
  virtual void drop_recording() noexcept {}

 protected:
  uint64_t appended_ = 0;
  bool listened_ = false, traces_ = false;
  const char* timing_ = "of events around each op";
};

class Card {
 public:
  virtual ~Card() = default;
  const Features& features() const { return features_; }

  // The compiled program; compiles it if this process has not yet. Throws
  // errors::Internal with the compiler's words.
  std::shared_ptr<Module> module(const Source& source);

  // A library's kernel of that product, whose arguments are the addresses of
  // a, b, c, those of bias, aux and sums that the product has and, if it asks
  // for bytes of it, scratch; its grid is nothing.
  // Null: there is none, or it is not better than the kernels of this folder.
  virtual std::unique_ptr<Kernel> product(const MatrixProduct& /*product*/,
                                          size_t* /*scratch_bytes*/) {
    return nullptr;
  }

  virtual std::unique_ptr<Queue> make_queue() = 0;
  // Memory for the allocator of one device.
  virtual std::unique_ptr<MemorySource> memory_source() = 0;
  virtual std::unique_ptr<MemorySource> pinned_source() { return nullptr; }
  // Adds kernels that no other kind of card has.
  virtual void add_kernels(KernelTable& /*table*/) {}
  // True for a card whose memory queues of this one copy to.
  virtual bool reaches(const Card& other) const { return &other == this; }

  // A library's kernel of that op; none where it refuses, or where the kernels
  // of this folder are as good.
  virtual LibraryKernel library_kernel(const LibraryOp& op);

 protected:
  virtual std::unique_ptr<Module> compile(const std::string& text) = 0;
  // For destructors of cards whose modules call them.
  void forget_modules() { modules_.clear(); }
  Features features_;

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Module>> modules_;  // by text
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_CARD_H_
