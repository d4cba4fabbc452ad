#include "op/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth {

void KernelTable::add(std::string_view op, KernelDef def) {
  const uint16_t id = op_named(op).id();
  if (by_op_.size() <= id) by_op_.resize(id + 1);
  def.any_shape = def.direct != nullptr;
  by_op_[id].push_back(std::move(def));
  rebuild_fast(id);
}

void KernelTable::direct(std::string_view op, DTypeSet dtypes,
                         DirectKernel kernel, const char* label,
                         bool in_place) {
  add(op, {.label = label,
           .dtypes = dtypes,
           .direct = kernel,
           .in_place = in_place});
}

void KernelTable::prepared(std::string_view op, DTypeSet dtypes,
                           PrepareFn prepare, const char* label,
                           bool parallel) {
  add(op, {.label = label,
           .dtypes = dtypes,
           .prepare = prepare,
           .parallel = parallel});
}

void KernelTable::append(const KernelTable& other) {
  by_op_.resize(std::max(by_op_.size(), other.by_op_.size()));
  for (size_t id = 0; id < other.by_op_.size(); ++id) {
    auto& mine = by_op_[id];
    mine.insert(mine.end(), other.by_op_[id].begin(), other.by_op_[id].end());
    rebuild_fast(static_cast<uint16_t>(id));
  }
}

namespace {

// A kernel of another table, run by `launch`.
class Launched final : public Prepared {
 public:
  Launched(BoundKernel kernel, const LaunchFn& launch)
      : kernel_(std::move(kernel)), launch_(launch) {}
  size_t scratch_bytes() const override {
    return kernel_.state ? kernel_.state->scratch_bytes() : 0;
  }
  void run(const KernelCall& call) const override { launch_(call, kernel_); }

 private:
  const BoundKernel kernel_;
  const LaunchFn launch_;
};

}  // namespace

void KernelTable::append(const KernelTable& other, const LaunchFn& launch) {
  for (size_t id = 0; id < other.by_op_.size(); ++id) {
    if (other.by_op_[id].empty()) continue;
    if (by_op_.size() <= id) by_op_.resize(id + 1);
    for (const KernelDef& def : other.by_op_[id]) {
      KernelDef mine = def;
      mine.direct = nullptr;
      mine.prepare = [inner = def.prepare, direct = def.direct, launch](
                         const PrepareArgs& args) -> std::unique_ptr<Prepared> {
        BoundKernel kernel{.direct = direct};
        if (!direct && !(kernel.state = inner(args))) return nullptr;
        return std::make_unique<Launched>(std::move(kernel), launch);
      };
      by_op_[id].push_back(std::move(mine));
    }
    rebuild_fast(static_cast<uint16_t>(id));
  }
}

void KernelTable::remove(std::string_view op) {
  const uint16_t id = op_named(op).id();
  if (id < by_op_.size()) by_op_[id].clear();
  rebuild_fast(id);
}

void KernelTable::rebuild_fast(uint16_t op_id) {
  fast_.resize(std::max(fast_.size(), by_op_.size() * kNumDTypes), nullptr);
  for (int d = 0; d < kNumDTypes; ++d) {
    DirectKernel kernel = nullptr;
    if (op_id < by_op_.size()) {
      for (const KernelDef& def : by_op_[op_id]) {
        if (!(def.dtypes >> d & 1)) continue;
        kernel = def.direct;
        break;
      }
    }
    const size_t i = size_t{op_id} * kNumDTypes + static_cast<size_t>(d);
    if (i < fast_.size()) fast_[i] = kernel;
  }
}

std::span<const KernelDef> KernelTable::candidates(const OpDef& op) const {
  if (op.id() >= by_op_.size()) return {};
  return by_op_[op.id()];
}

const KernelDef* KernelTable::for_any_shape(const OpDef& op,
                                            DType dtype) const {
  for (const KernelDef& def : candidates(op)) {
    if (def.dtypes & dtype_bit(dtype)) return def.any_shape ? &def : nullptr;
  }
  return nullptr;
}

bool KernelTable::supports(const OpDef& op, DType dtype) const {
  for (const KernelDef& def : candidates(op)) {
    if ((def.dtypes & dtype_bit(dtype)) && !def.partial) return true;
  }
  return false;
}

void register_kernels(const std::string& device_type,
                      std::function<void(KernelTable&)> add, Site site) {
  const bool capitals =
      !device_type.empty() &&
      std::all_of(device_type.begin(), device_type.end(),
                  [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!capitals) {
    throw errors::InvalidArgument(
        fmt::format("register_kernels: there is no device type '{}'; expected "
                    "'CPU' or 'GPU'",
                    device_type));
  }
  DeviceManager::configure("register_kernels", site,
                           [=, add = std::move(add)](RuntimeConfig& c) {
                             c.user_kernels.emplace_back(device_type, add);
                           });
}

DType kernel_dtype(std::span<const SpecView> in, std::span<const OutSpec> out) {
  for (const SpecView& s : in) {
    if (s.dtype != resource) return s.dtype;
  }
  if (!out.empty()) return out[0].dtype;
  return in.empty() ? float32 : in[0].variable;
}

bool can_run(const KernelTable& table, const OpDef& op, DType dtype) {
  return op.kind() != OpKind::kCompute || op.decompose() != nullptr ||
         table.supports(op, dtype);
}

bool takes(const KernelTable& table, const PrepareArgs& args) {
  const DType dtype = kernel_dtype(args.in, args.out);
  if (table.supports(*args.op, dtype)) return true;
  const auto fits = [&](const KernelDef& def) {
    return (def.dtypes & dtype_bit(dtype)) != 0;
  };
  const auto all = table.candidates(*args.op);
  return std::any_of(all.begin(), all.end(), fits) &&
         bind_kernel(table, args).def != nullptr;
}

BoundKernel bind_kernel(const KernelTable& table, const PrepareArgs& asked) {
  PrepareArgs args = asked;
  args.table = &table;
  const DType dtype = kernel_dtype(args.in, args.out);
  BoundKernel bound;
  for (const KernelDef& def : table.candidates(*args.op)) {
    if (!(def.dtypes & dtype_bit(dtype))) continue;
    if (def.direct) {
      bound.direct = def.direct;
    } else {
      bound.state = def.prepare(args);
      if (!bound.state) continue;
    }
    bound.def = &def;
    return bound;
  }
  return bound;
}

}  // namespace berth
