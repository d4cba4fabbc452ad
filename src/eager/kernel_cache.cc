#include "eager/kernel_cache.h"

#include <algorithm>
#include <unordered_map>

#include "base/immortal.h"
#include "base/thread_pool.h"

namespace berth {

namespace {

constexpr size_t kCapacity = 512;

struct Key {
  const Device* device;
  const OpDef* op;
  const Attrs* attrs;
  std::vector<TensorSpec> in;

  bool operator==(const Key&) const = default;
};

struct KeyHash {
  size_t operator()(const Key& k) const {
    size_t h =
        std::hash<const void*>()(k.op) * 31 + std::hash<const void*>()(k.attrs);
    for (const TensorSpec& s : k.in) {
      for (int64_t d : s.shape) h = h * 1000003 + static_cast<size_t>(d);
      h = h * 31 + static_cast<size_t>(s.dtype);
    }
    return h;
  }
};

struct Entry {
  AttrsRef keeps_attrs;  // so that the pointer in the key stays theirs
  std::shared_ptr<const BoundKernel> kernel;
};

// Such attributes are one call's: what they hold would stay with the thread.
bool holds_objects(const Attrs* attrs) {
  const auto is_object = [](const Attrs::Pair& p) {
    return std::holds_alternative<std::shared_ptr<Callable>>(p.second) ||
           std::holds_alternative<Tensor>(p.second);
  };
  return attrs != nullptr && std::ranges::any_of(attrs->pairs(), is_object);
}

}  // namespace

std::shared_ptr<const BoundKernel> cached_kernel(const Device& device,
                                                 const PrepareArgs& args) {
  auto& cache = of_this_thread<std::unordered_map<Key, Entry, KeyHash>>();
  Key key{&device, args.op, nullptr, {}};
  const DType dtype = kernel_dtype(args.in, args.out);
  if (device.kernels().for_any_shape(*args.op, dtype)) {
    // Valid for every shape and attribute: random ops, whose calls differ in
    // op_id, share an entry too.
    key.in.push_back({Shape{}, dtype, {}});
  } else {
    key.attrs = args.attrs;
    for (const SpecView& s : args.in) key.in.push_back({*s.shape, s.dtype, {}});
  }
  if (const auto it = cache.find(key); it != cache.end()) {
    return it->second.kernel;
  }
  auto kernel =
      std::make_shared<const BoundKernel>(bind_kernel(device.kernels(), args));
  if (holds_objects(key.attrs)) return kernel;
  if (cache.size() >= kCapacity) cache.clear();
  const AttrsRef keeps = AttrsRef::share(key.attrs);
  cache.emplace(std::move(key), Entry{keeps, kernel});
  return kernel;
}

int default_slices(Device& device) {
  const ThreadPool* pool = device.pool();
  return pool ? pool->size() : 1;
}

}  // namespace berth
