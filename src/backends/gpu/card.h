// Card: one physical GPU as its driver presents it: programs, queues, memory.
//
// The CUDA and the OpenCL plug-in each derive from these classes; everything
// else about GPUs is built on them, once. Any thread may use a Card; a Queue
// belongs to a stream, which admits one thread at a time.

#ifndef BERTH_BACKENDS_GPU_CARD_H_
#define BERTH_BACKENDS_GPU_CARD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/gpu/library_op.h"
#include "backends/gpu/source.h"
#include "backends/gpu/waiting_programs.h"
#include "device/allocator.h"
#include "device/memory_space.h"
#include "device/stream.h"

namespace berth {
class KernelTable;  // op/kernel.h
}

namespace berth::gpu {

class Queue;

// The features that kernels are written for.
struct Features {
  std::string name;            // "NVIDIA H200"
  size_t memory_bytes = 0;     // of the card
  bool has_f64 = true;         // float64 and complex128 kernels
  int group_size = 256;        // items per group, a power of two
  size_t local_bytes = 32768;  // per group
  // Cards of the same nonzero number copy to each other (MemoryOptions::peers).
  int peers = 0;
  // Products fuse their epilogue (ProductActivation, bias).
  bool fuses_products = true;
  // Kernels may follow addresses passed as numbers, and take 32,764 bytes of
  // parameters.
  bool addresses = false;
  // library_kernel() may take attention.
  bool attention = false;
  // Programs that may be part of a larger one (KernelSource::joins) are.
  bool joins_programs = true;
};

// Function applied to an element of a product before it is stored.
enum class ProductActivation : uint8_t {
  kNone,
  kRelu,
  kGeluTanh,
  kGeluTanhSlope,  // times gelu's slope at `aux`
};

// c[z] = a[z] b[z] for each batch z: row-major [m, k] or, transposed, [k, m];
// [k, n] or [n, k]; [m, n]. Strides lead from one batch to the next, in
// elements; with 0 all batches read the same matrix.
struct MatrixProduct {
  DType dtype = DType::kInvalid;
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t batches = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  // c = activation(a b + bias), bias [n].
  bool bias = false;
  ProductActivation activation = ProductActivation::kNone;
  // aux, of c's shape and strides, receives a b + bias.
  bool keeps = false;
  // sums [n] receives the sum of b's rows.
  bool sums_b = false;

  bool has_aux() const {
    return keeps || activation == ProductActivation::kGeluTanhSlope;
  }
  bool is_plain() const {
    return !bias && !has_aux() && !sums_b &&
           activation == ProductActivation::kNone;
  }
};

// Groups along three axes, of `items` items along the first.
struct Grid {
  uint32_t groups[3] = {1, 1, 1};
  uint32_t items = 1;
};

// One argument of a kernel: `bytes` at `value`, or a memory address on the
// card, to which `value` points.
struct KernelArg {
  const void* value = nullptr;
  uint32_t bytes = 0;  // 0: an address
  size_t extent = 0;   // bytes of memory at the address; 0: unknown
};

// One kernel of a program, for one user of it.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Appends a launch: the same commands each time except for the addresses. The
  // queue may be recording. Throws errors::Internal when the driver refuses.
  virtual void launch(Queue& queue, const Grid& grid, const KernelArg* args,
                      int num_args) = 0;
  // Launches a library's kernel, which may refuse a call's arguments. On false
  // nothing was appended; the caller does without it.
  virtual bool try_launch(Queue& queue, const Grid& grid, const KernelArg* args,
                          int num_args) {
    launch(queue, grid, args, num_args);
    return true;
  }
  virtual bool may_refuse() const { return false; }
  // Finds what its first launch needs, before a recording that must not look.
  virtual void look_up() {}
};

class Module {
 public:
  virtual ~Module() = default;
  // Throws errors::Internal when no kernel has that name.
  virtual std::unique_ptr<Kernel> kernel(const char* name) = 0;
};

// A point in a queue; the driver's event.
using Mark = void*;

// Commands of a queue that are appended repeatedly as one: the driver's graph.
// They keep the addresses and values with which they were recorded.
class Recording {
 public:
  virtual ~Recording() = default;
  // Appends them. Throws like Queue's functions.
  virtual void launch(Queue& queue) = 0;
};

// An in-order queue of the driver.
class Queue {
 public:
  virtual ~Queue() = default;
  // Appends a copy: both ends are memory of cards of one driver, or one is the
  // host's. Unpinned host memory may be reused on return.
  virtual void copy(const Copy& copy) = 0;
  virtual void fill(void* target, int value, size_t bytes) = 0;
  // Number of commands ever appended, not counting marks.
  uint64_t appended() const { return appended_; }
  // Returns a mark after everything so far, which the caller releases. If it
  // throws, everything so far has ended.
  virtual Mark mark() = 0;
  virtual void release(Mark mark) noexcept = 0;
  // True when the mark is passed; throws errors::* when work before it failed.
  virtual bool passed(Mark mark) = 0;
  // Blocks until the mark is passed; throws the same.
  virtual void await(Mark mark) = 0;
  // Makes everything appended later start after a mark of another queue of this
  // driver.
  virtual void follow(Mark mark) = 0;
  // When the mark was passed, in microseconds of the host's clock.
  virtual double passed_us(Mark mark) = 0;
  // Submits what was appended to the card.
  virtual void flush() {}
  // For tools that observe the process, when listened(): everything appended
  // until leave() belongs to this work.
  bool listened() const { return listened_; }
  virtual void enter(const Work& /*work*/, const Stream& /*of*/) {}
  virtual void leave() noexcept {}
  // True when the queue itself traces the times of commands (work_trace.h).
  bool traces() const { return traces_; }
  // Describes the times in a trace by events.
  const char* timing() const { return timing_; }
  // A thread has waited for the queue, so what is known now may be written.
  virtual void waited() noexcept {}

  // True when this queue can record; any thread may ask at any time.
  virtual bool can_record() const { return false; }
  // Keeps commands instead of running them until one of the following functions
  // is called. Until then the caller must not make marks, wait for marks, or
  // copy from or to unpinned host memory. Nothing is allocated on this thread.
  // Throws errors::* when the driver refuses.
  virtual void begin_recording() {}
  // Returns what was kept. `old`, if not null, is of the same work at other
  // addresses and may become the result. Throws errors::* when something cannot
  // be recorded; the queue then runs commands again, too.
  virtual std::unique_ptr<Recording> end_recording(
      std::unique_ptr<Recording> /*old*/) {
    return nullptr;
  }
  // Discards what was kept.
  virtual void drop_recording() noexcept {}

 protected:
  uint64_t appended_ = 0;
  bool listened_ = false, traces_ = false;
  const char* timing_ = "of events around each op";
};

class Card {
 public:
  Card();
  virtual ~Card() = default;
  const Features& features() const { return features_; }

  // Returns the compiled program, compiling it once per process. Throws
  // errors::Internal with the compiler's message.
  std::shared_ptr<Module> module(const KernelSource& source);
  // Returns a kernel of that program, which lives as long as the card. Programs
  // that join others wait for compile_waiting(), or for their first launch.
  std::unique_ptr<Kernel> kernel(const KernelSource& source, const char* name);
  // Compiles the programs that wait together. Throws as module().
  void compile_waiting() { waiting_.compile_all(); }

  // Returns a library's kernel for that product. Its arguments are the
  // addresses of a, b, c, those of bias, aux and sums that the product has and,
  // if it asks for any, scratch; its grid is empty. Null: there is none, or it
  // is not better than the kernels of this folder.
  virtual std::unique_ptr<Kernel> product(const MatrixProduct& /*product*/,
                                          size_t* /*scratch_bytes*/) {
    return nullptr;
  }

  // Between the two, calls on this thread need not make the card's context
  // current. begin_calls() returns what end_calls() takes.
  virtual void* begin_calls() noexcept { return nullptr; }
  virtual void end_calls(void* /*before*/) noexcept {}

  // Returns the bytes that this process may use at most, and those of them that
  // it can have now.
  virtual size_t usable_bytes() const {
    return features_.memory_bytes / 16 * 15;
  }
  virtual size_t free_bytes() { return usable_bytes(); }

  virtual std::unique_ptr<Queue> make_queue() = 0;
  // Returns memory for the allocator of one device.
  virtual std::unique_ptr<MemorySource> memory_source() = 0;
  virtual std::unique_ptr<MemorySource> pinned_source() { return nullptr; }
  // Adds kernels that only this kind of card has.
  virtual void add_kernels(KernelTable& /*table*/) {}
  // True for a card to whose memory this card's queues can copy.
  virtual bool reaches(const Card& other) const { return &other == this; }

  // Returns a library's kernel for that op; none where it refuses, or where the
  // kernels of this folder are as good.
  virtual LibraryKernel library_kernel(const LibraryOp& op);

 protected:
  virtual std::unique_ptr<Module> compile(const std::string& text) = 0;
  // Returns the module of each of `parts`, all after `beginning`: one program.
  virtual std::vector<std::shared_ptr<Module>> compile_together(
      const std::string& beginning, const std::vector<std::string>& parts);
  // For destructors of cards that their modules call.
  void forget_modules();
  Features features_;

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Module>> modules_;  // by text
  WaitingPrograms waiting_;
};

// Several calls of a card in a row (Card::begin_calls).
class CardCalls {
 public:
  explicit CardCalls(Card& card) : card_(card), before_(card.begin_calls()) {}
  ~CardCalls() { card_.end_calls(before_); }
  CardCalls(const CardCalls&) = delete;
  CardCalls& operator=(const CardCalls&) = delete;

 private:
  Card& card_;
  void* const before_;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_CARD_H_
