#include "backends/gpu/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/gpu/queue_stream.h"
#include "berth/errors.h"
#include "device/device.h"

namespace berth::gpu {

namespace {

constexpr int kMostArgs = 48;
constexpr size_t kScratchAlignment = 256;

// The inputs whose addresses an argument has.
struct Inputs {
  int32_t step = 0, count = 0;
};

// A stored argument; values are in the recipe's bytes.
struct Slot {
  Arg::Kind kind;
  int index;
  size_t offset;  // of a value, in the bytes
  uint32_t bytes;
  size_t extent;  // as in KernelArg
};

struct Step {
  enum class Kind : uint8_t { kLaunch, kFill, kCopy } kind = Kind::kLaunch;
  std::unique_ptr<Kernel> kernel;
  Grid grid;
  size_t first = 0;  // slots
  int count = 0;
  int fill = 0;
  size_t bytes = 0;
  int after = 0;   // number of next steps that belong to it
  int spares = 0;  // of steps after those, to run instead if it refuses
};

}  // namespace

struct RecipeSteps {
  std::vector<Step> list;
  std::vector<Slot> slots;
  std::vector<unsigned char> bytes;
  size_t scratch_bytes = 0;
  FaultTexts faults;

  void add(const Arg& a, size_t extent) {
    Slot s{a.kind, a.index, a.offset, a.bytes, extent};
    if (a.kind == Arg::Kind::kValue || a.kind == Arg::Kind::kAddresses) {
      bytes.resize((bytes.size() + 15) / 16 * 16);
      s.offset = bytes.size();
      const unsigned char* from = a.large ? a.large->data() : a.value;
      bytes.insert(
          bytes.end(), from,
          from + (a.kind == Arg::Kind::kValue ? a.bytes : sizeof(Inputs)));
    }
    slots.push_back(s);
  }
};

namespace {

// Runs a recipe.
class RecipeKernel final : public Prepared {
 public:
  explicit RecipeKernel(std::unique_ptr<RecipeSteps> steps)
      : steps_(std::move(steps)) {}

  size_t scratch_bytes() const override { return steps_->scratch_bytes; }

  void look_up() const {
    for (const Step& step : steps_->list) {
      if (step.kernel) step.kernel->look_up();
    }
  }

  void run(const KernelCall& call) const override {
    auto& stream = static_cast<QueueStream&>(*call.context->stream);
    void* fault = nullptr;
    if (steps_->faults) fault = stream.watch_fault(steps_->faults);
    const std::vector<Step>& list = steps_->list;
    for (size_t i = 0; i < list.size();) {
      const Step& step = list[i++];
      const bool done = run(step, call, stream, fault);
      const size_t spares = i + static_cast<size_t>(step.after);
      if (!done) {
        i = spares;
      } else if (step.spares > 0) {
        while (i < spares) run(list[i++], call, stream, fault);
        i += static_cast<size_t>(step.spares);
      }
    }
  }

 private:
  // Returns false when the library refuses.
  bool run(const Step& step, const KernelCall& call, QueueStream& stream,
           void* fault) const {
    const Slot* slots = steps_->slots.data() + step.first;
    if (step.kind == Step::Kind::kFill) {
      stream.queue().fill(address(slots[0], call, fault), step.fill,
                          step.bytes);
      return true;
    }
    if (step.kind == Step::Kind::kCopy) {
      const MemorySpace& here = stream.device().memory();
      stream.queue().copy({address(slots[0], call, fault), &here,
                           address(slots[1], call, fault), &here, step.bytes});
      return true;
    }
    std::array<KernelArg, kMostArgs> args;
    std::array<void*, kMostArgs> addresses;
    std::array<uint64_t, kMostAddresses> table;  // uninitialised
    size_t used = 0;
    for (int i = 0; i < step.count; ++i) {
      const Slot& s = slots[i];
      const auto k = static_cast<size_t>(i);
      if (s.kind == Arg::Kind::kValue) {
        args[k] = {steps_->bytes.data() + s.offset, s.bytes};
      } else if (s.kind == Arg::Kind::kSliceOrigin) {
        args[k] = {&call.context->slice_origin, sizeof(int64_t)};
      } else if (s.kind == Arg::Kind::kAddresses) {
        args[k] = {&table[used], s.bytes};
        used += put_addresses(s, call, &table[used]);
      } else {
        addresses[k] = address(s, call, fault);
        args[k] = {&addresses[k], 0, s.extent};
      }
    }
    gpu::Queue& queue = stream.queue();
    if (step.spares > 0) {
      return step.kernel->try_launch(queue, step.grid, args.data(), step.count);
    }
    step.kernel->launch(queue, step.grid, args.data(), step.count);
    return true;
  }

  // Returns how many numbers it wrote.
  size_t put_addresses(const Slot& s, const KernelCall& call,
                       uint64_t* to) const {
    Inputs inputs;
    std::memcpy(&inputs, steps_->bytes.data() + s.offset, sizeof inputs);
    const size_t slots = s.bytes / sizeof(uint64_t);
    for (size_t k = 0; k < slots; ++k) {
      const bool is = k < static_cast<size_t>(inputs.count);
      const void* data =
          is ? call.in[s.index + static_cast<int>(k) * inputs.step].data
             : nullptr;
      to[k] = reinterpret_cast<uintptr_t>(data);
    }
    return slots;
  }

  void* address(const Slot& s, const KernelCall& call, void* fault) const {
    const void* base = nullptr;
    switch (s.kind) {
      case Arg::Kind::kIn:
        base = call.in[s.index].data;
        break;
      case Arg::Kind::kOut:
        base = call.out[s.index].data;
        break;
      case Arg::Kind::kScratch:
        base = call.context->scratch;
        break;
      case Arg::Kind::kStepCounter:
        base = call.context->step_counter;
        break;
      case Arg::Kind::kFault:
        base = fault;
        break;
      default:
        break;
    }
    if (base == nullptr) return nullptr;
    return const_cast<std::byte*>(static_cast<const std::byte*>(base)) +
           s.offset;
  }

  const std::unique_ptr<RecipeSteps> steps_;
};

// Returns the bytes of memory at an argument's address; 0: unknown.
size_t extent_of(const Recipe& r, const Arg& a) {
  constexpr size_t kFaultBytes = 4 * sizeof(int64_t);
  int64_t elements = 0;
  DType dtype = DType::kInvalid;
  switch (a.kind) {
    case Arg::Kind::kIn:
      elements = r.in_shape(a.index).num_elements();
      dtype = r.in_type(a.index);
      break;
    case Arg::Kind::kOut:
      elements = r.out_shape(a.index).num_elements();
      dtype = r.out_type(a.index);
      break;
    case Arg::Kind::kScratch:
      return a.extent;
    case Arg::Kind::kStepCounter:
      return sizeof(uint64_t);
    case Arg::Kind::kFault:
      return kFaultBytes;
    default:
      return 0;
  }
  if (elements < 0) return 0;
  const size_t bytes = static_cast<size_t>(elements) * size_of(dtype);
  return bytes - std::min(a.offset, bytes);
}

uint32_t groups_for(int64_t items, int64_t of, const OpDef& op) {
  const int64_t groups = (items + of - 1) / of;
  if (groups > INT32_MAX) {
    throw errors::InvalidArgument(
        fmt::format("{}: {} elements in one launch; a GPU takes {} at most",
                    op.name(), items, int64_t{INT32_MAX} * of));
  }
  return static_cast<uint32_t>(groups);
}

}  // namespace

Recipe::Recipe(Card& card, const PrepareArgs& args)
    : card_(card), args_(args), steps_(std::make_unique<RecipeSteps>()) {}
Recipe::~Recipe() = default;
Recipe::Recipe(Recipe&&) noexcept = default;

DType Recipe::in_type(int i) const {
  const SpecView& s = args_.in[static_cast<size_t>(i)];
  return s.dtype == resource ? s.variable : s.dtype;
}

void Recipe::flat(const KernelSource& source, const char* kernel, int64_t items,
                  const std::vector<Arg>& args) {
  constexpr uint32_t kFlat = 256;  // FLAT_SIZE of dialect.cl
  launch(source, kernel, {{groups_for(items, kFlat, *args_.op), 1, 1}, kFlat},
         args);
}

void Recipe::groups(const KernelSource& source, const char* kernel,
                    int64_t groups, std::initializer_list<Arg> args) {
  launch(source, kernel,
         {{groups_for(groups, 1, *args_.op), 1, 1},
          static_cast<uint32_t>(features().group_size)},
         args);
}

void Recipe::launch(const KernelSource& source, const char* kernel,
                    const Grid& grid, const std::vector<Arg>& args) {
  if (grid.groups[0] == 0 || grid.groups[1] == 0 || grid.groups[2] == 0) return;
  if (args.size() > kMostArgs) {
    throw errors::Internal(fmt::format("kernel {} has {} arguments; at most {}",
                                       kernel, args.size(), kMostArgs));
  }
  Step step;
  step.kernel = card_.kernel(source, kernel);
  step.grid = grid;
  step.first = steps_->slots.size();
  step.count = static_cast<int>(args.size());
  for (const Arg& a : args) steps_->add(a, extent_of(*this, a));
  steps_->list.push_back(std::move(step));
}

bool Recipe::is_aligned(std::initializer_list<Arg> operands) const {
  if (args_.unsplit == nullptr) return true;
  return std::all_of(
      operands.begin(), operands.end(), [this](const Arg& operand) {
        const bool comes_in = operand.kind == Arg::Kind::kIn;
        const Shape& s =
            comes_in ? in_shape(operand.index) : out_shape(operand.index);
        const DType dtype =
            comes_in ? in_type(operand.index) : out_type(operand.index);
        auto bytes = static_cast<int64_t>(size_of(dtype));
        int first = 0;  // axis that is not 1: the batch is cut there
        while (first < s.rank() && s[first] == 1) ++first;
        for (int d = first + 1; d < s.rank(); ++d) bytes *= s[d];
        return bytes % kLibraryAlignment == 0;
      });
}

bool Recipe::product(const MatrixProduct& product, const Operands& operands,
                     const std::function<void()>& own) {
  if (!is_aligned({operands.a, operands.b, operands.c})) return false;
  LibraryKernel kernel;
  kernel.kernel = card_.product(product, &kernel.scratch_bytes);
  if (!kernel.kernel) return false;
  std::vector<Arg> args = {operands.a, operands.b, operands.c};
  if (product.bias) args.push_back(operands.bias);
  if (product.has_aux()) args.push_back(operands.aux);
  if (product.sums_b) args.push_back(operands.sums);
  launch(std::move(kernel), args, {}, own);
  return true;
}

void Recipe::launch(LibraryKernel kernel, const std::vector<Arg>& args,
                    const std::function<void()>& after,
                    const std::function<void()>& own) {
  Step step;
  step.kernel = std::move(kernel.kernel);
  step.first = steps_->slots.size();
  for (const Arg& arg : args) steps_->add(arg, extent_of(*this, arg));
  // The library's kernel and its substitute share this scratch.
  const size_t scratch_begin = steps_->scratch_bytes;
  if (kernel.scratch_bytes > 0) {
    steps_->add(scratch(kernel.scratch_bytes), kernel.scratch_bytes);
  }
  step.count = static_cast<int>(steps_->slots.size() - step.first);
  const bool may_refuse = own && step.kernel->may_refuse();
  const size_t at = steps_->list.size();
  steps_->list.push_back(std::move(step));
  if (after) after();
  const size_t spares = steps_->list.size();
  if (!may_refuse) return;
  const size_t scratch_end =
      std::exchange(steps_->scratch_bytes, scratch_begin);
  own();
  steps_->scratch_bytes = std::max(steps_->scratch_bytes, scratch_end);
  steps_->list[at].after = static_cast<int>(spares - at - 1);
  steps_->list[at].spares = static_cast<int>(steps_->list.size() - spares);
}

void Recipe::fill(const Arg& target, int value, size_t bytes) {
  if (bytes == 0) return;
  Step step;
  step.kind = Step::Kind::kFill;
  step.first = steps_->slots.size();
  step.fill = value;
  step.bytes = bytes;
  steps_->add(target, extent_of(*this, target));
  steps_->list.push_back(std::move(step));
}

void Recipe::copy(const Arg& target, const Arg& source, size_t bytes) {
  if (bytes == 0) return;
  Step step;
  step.kind = Step::Kind::kCopy;
  step.first = steps_->slots.size();
  step.bytes = bytes;
  steps_->add(target, extent_of(*this, target));
  steps_->add(source, extent_of(*this, source));
  steps_->list.push_back(std::move(step));
}

Arg Recipe::scratch(size_t bytes) {
  Arg a{Arg::Kind::kScratch};
  a.offset = steps_->scratch_bytes;
  a.extent = bytes;
  steps_->scratch_bytes +=
      (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  return a;
}

Arg Recipe::fault(std::vector<std::string> messages) {
  steps_->faults =
      std::make_shared<const std::vector<std::string>>(std::move(messages));
  return {Arg::Kind::kFault};
}

Arg large_value(const std::vector<int64_t>& words) {
  Arg a;
  a.kind = Arg::Kind::kValue;
  a.bytes = static_cast<uint32_t>(words.size() * sizeof(int64_t));
  std::vector<unsigned char> bytes(a.bytes);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  a.large = std::make_shared<const std::vector<unsigned char>>(bytes);
  return a;
}

Arg addresses(int first, int step, int count, int slots) {
  Arg a;
  a.kind = Arg::Kind::kAddresses;
  a.index = first;
  a.bytes =
      static_cast<uint32_t>(static_cast<size_t>(slots) * sizeof(uint64_t));
  const Inputs inputs{step, count};
  std::memcpy(a.value, &inputs, sizeof inputs);
  return a;
}

std::unique_ptr<Prepared> Recipe::finish() {
  return std::make_unique<RecipeKernel>(std::move(steps_));
}

void look_up_kernels(const BoundKernel& kernel) {
  const auto* recipe = dynamic_cast<const RecipeKernel*>(kernel.state.get());
  if (recipe != nullptr) recipe->look_up();
}

bool is_recipe(const BoundKernel& kernel) {
  return dynamic_cast<const RecipeKernel*>(kernel.state.get()) != nullptr;
}

Strided strided(const Shape& shape, const int64_t* strides) {
  Strided s;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    const int last = s.rank - 1;
    if (s.rank > 0 && s.stride[last] == strides[d] * shape[d]) {
      s.n[last] *= shape[d];
      s.stride[last] = strides[d];
      continue;
    }
    s.n[s.rank] = shape[d];
    s.stride[s.rank++] = strides[d];
  }
  return s;
}

Strided broadcast(const Shape& shape, const Shape& out) {
  int64_t strides[kMaxRank] = {};
  int64_t stride = 1;
  for (int d = out.rank() - 1; d >= 0; --d) {
    const int i = d - (out.rank() - shape.rank());
    if (i < 0) continue;
    strides[d] = shape[i] == 1 ? 0 : stride;
    stride *= shape[i];
  }
  return strided(out, strides);
}

}  // namespace berth::gpu
