// Recipe: a list of launches, fills and copies that a kernel of the catalogue
// does on a GPU for given shapes, made once and replayed at every call.
//
// To write a kernel, put the dialect's text in kernels/, write a function that
// fills in a Recipe, and add it to a Kernels table (kernels.h). A running
// recipe looks nothing up and allocates nothing; any thread may run it.

#ifndef BERTH_BACKENDS_GPU_RECIPE_H_
#define BERTH_BACKENDS_GPU_RECIPE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/gpu/card.h"
#include "op/kernel.h"

namespace berth::gpu {

// An argument's source when the recipe runs.
struct Arg {
  enum class Kind : uint8_t {
    kIn,           // address of an input's bytes
    kOut,          // of an output's bytes
    kScratch,      // of the call's scratch
    kStepCounter,  // of the u64 step of random ops; 0: none
    kFault,        // the target of report(); see Recipe::fault
    kSliceOrigin,  // i64
    kValue,        // bytes known now
    kNone,         // no address
    kAddresses,    // a struct of input addresses
  };
  static constexpr size_t kMostBytes = 448;

  Kind kind = Kind::kNone;
  int index = 0;
  size_t offset = 0;  // bytes, added to addresses
  uint32_t bytes = 0;
  size_t extent = 0;  // of scratch, in bytes
  unsigned char value[kMostBytes] = {};
  std::shared_ptr<const std::vector<unsigned char>> large;  // larger values

  // The address `more` bytes further on.
  Arg operator+(size_t more) const {
    Arg a = *this;
    a.offset += more;
    a.extent -= std::min(more, extent);
    return a;
  }
};

inline Arg in(int i) { return {Arg::Kind::kIn, i}; }
inline Arg out(int i) { return {Arg::Kind::kOut, i}; }
inline Arg step_counter() { return {Arg::Kind::kStepCounter}; }
inline Arg slice_origin() { return {Arg::Kind::kSliceOrigin}; }
inline Arg no_buffer() { return {Arg::Kind::kNone}; }
// A number or a plain struct as large as the kernel's parameter: int64_t for
// i64, int32_t for i32, float, double, gpu::Strided.
template <class T>
Arg value(const T& x) {
  static_assert(std::is_trivially_copyable_v<T> &&
                sizeof(T) <= Arg::kMostBytes && !std::is_same_v<T, bool>);
  Arg a;
  a.kind = Arg::Kind::kValue;
  a.bytes = sizeof(T);
  std::memcpy(a.value, &x, sizeof(T));
  return a;
}

// A larger value, for cards with Features::addresses.
Arg large_value(const std::vector<int64_t>& words);

// A struct of `slots` numbers: the addresses of `count` inputs, from `first` on
// in steps of `step`, then zeros. For the same cards; all structs of a launch
// together have at most kMostAddresses numbers.
inline constexpr int kMostAddresses = 2560;
Arg addresses(int first, int step, int count, int slots);

// `Strided` of kernels/index.cl.
struct Strided {
  int64_t n[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};
  int32_t rank = 0;
  int32_t unused = 0;
};
// Returns a walk over `shape` with these strides in elements; axes of 1 are
// dropped, and neighbours that one stride spans are merged.
Strided strided(const Shape& shape, const int64_t* strides);
// Returns the walk over `out` that reads `shape`, broadcast to it.
Strided broadcast(const Shape& shape, const Shape& out);

struct RecipeSteps;

class Recipe {
 public:
  Recipe(Card& card, const PrepareArgs& args);
  ~Recipe();
  Recipe(Recipe&&) noexcept;

  const PrepareArgs& args() const { return args_; }
  const Features& features() const { return card_.features(); }
  // The call's inputs; variables count by their values' dtype and shape.
  DType in_type(int i) const;
  const Shape& in_shape(int i) const { return *args_.in[i].shape; }
  DType out_type(int i) const { return args_.out[i].dtype; }
  const Shape& out_shape(int i) const { return args_.out[i].shape; }
  int num_in() const { return static_cast<int>(args_.in.size()); }
  int num_out() const { return static_cast<int>(args_.out.size()); }

  // Appends a launch of a KERNEL(FLAT_SIZE, ...) with at least `items` items;
  // none when `items` is 0.
  void flat(const KernelSource& source, const char* kernel, int64_t items,
            const std::vector<Arg>& args);
  // Appends a launch of a KERNEL(GROUP_SIZE, ...), with this many groups.
  void groups(const KernelSource& source, const char* kernel, int64_t groups,
              std::initializer_list<Arg> args);
  // Appends a launch with all arguments.
  void launch(const KernelSource& source, const char* kernel, const Grid& grid,
              const std::vector<Arg>& args);
  // Operands of a product.
  struct Operands {
    Arg a, b, c;
    Arg bias = {}, aux = {}, sums = {};  // if the product has them
  };
  // False for a part of a split op where one of these operands, cut along the
  // batch, may begin at any address. Libraries are given none of its parts, so
  // that all have the bits of one kernel.
  bool is_aligned(std::initializer_list<Arg> operands) const;
  // Appends a product by a library of the card; returns false if it has none
  // for it. own() appends the substitute that runs if the library refuses a
  // call; it is called only when that may happen.
  bool product(const MatrixProduct& product, const Operands& operands,
               const std::function<void()>& own);
  // A library's kernel for an op, and its launch with the op's arguments.
  // after() appends what follows the kernel unless it refuses, own() as above.
  LibraryKernel library(const LibraryOp& op) {
    return card_.library_kernel(op);
  }
  void launch(LibraryKernel kernel, const std::vector<Arg>& args,
              const std::function<void()>& after = {},
              const std::function<void()>& own = {});
  // Appends a fill of memory, or a copy within the card.
  void fill(const Arg& target, int value, size_t bytes);
  void copy(const Arg& target, const Arg& source, size_t bytes);

  // Reserves a piece of the call's scratch, aligned to 256 bytes.
  Arg scratch(size_t bytes);

  // Returns an argument for report(). When the kernel reports `code` 1, 2, ...
  // the call fails as errors::InvalidArgument with the text of that number, in
  // which {0}, {1}, {2} are the three reported numbers, for example "index {0}
  // at place {1} of the indices is out of range; expected one in [0, {2})".
  // Once per recipe.
  Arg fault(std::vector<std::string> messages);

  // Returns the kernel that the engine runs.
  std::unique_ptr<Prepared> finish();

 private:
  Card& card_;
  const PrepareArgs& args_;
  std::unique_ptr<RecipeSteps> steps_;
};

// True for a kernel that a Recipe made: its calls append only to the queue of
// the call's stream, and differ only in addresses.
bool is_recipe(const BoundKernel& kernel);

// Looks up what its first call would, also for kernels that it has not needed
// yet (Kernel::look_up).
void look_up_kernels(const BoundKernel& kernel);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_RECIPE_H_
