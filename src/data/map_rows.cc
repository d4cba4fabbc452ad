// Dataset::map_rows.

#include <fmt/format.h>

#include "base/where.h"
#include "data/row_transform.h"
#include "data/user_call.h"
#include "ops/random_key.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

class RowFunctionKernel : public RowKernel {
 public:
  RowFunctionKernel(RowFunction fn, std::vector<TensorSpec> specs,
                    NamesRef names, uint64_t seed)
      : fn_(std::move(fn)),
        specs_(std::move(specs)),
        names_(std::move(names)),
        seed_(seed) {
    for (const TensorSpec& spec : specs_) {
      row_bytes_.push_back(static_cast<size_t>(spec.shape.num_elements()) *
                           size_of(spec.dtype));
    }
  }
  const std::vector<TensorSpec>& specs(const Node&) const override {
    return specs_;
  }
  NamesRef names(const Node&) const override { return names_; }

  void run(const Node& node, const RowSource& rows,
           std::span<const int64_t> indices, std::span<const int64_t> elements,
           Tensors* out) const override {
    out->clear();
    std::vector<std::byte*> to;
    for (const TensorSpec& spec : specs_) {
      out->push_back(make_batch(
          spec.dtype,
          batched(spec.shape, static_cast<int64_t>(indices.size()))));
      to.push_back(out->back().impl()->data());
    }
    Tensors element;
    std::vector<const std::byte*> from(rows.specs().size());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!rows.bytes(indices[i], from)) {
        rows.row(indices[i], &element);
        for (size_t c = 0; c < from.size(); ++c) {
          from[c] = element[c].impl()->data();
        }
      }
      if (i + 1 < indices.size()) rows.fetch(indices[i + 1]);
      call(node, rows.specs(), from, to, elements[i]);
      for (size_t c = 0; c < to.size(); ++c) to[c] += row_bytes_[c];
    }
  }

  void run(const Node& node, const Tensors& element, int64_t number,
           Tensors* out) const override {
    Tensors made;
    std::vector<std::byte*> to;
    for (const TensorSpec& spec : specs_) {
      made.push_back(make_tensor(host_device(), spec.dtype, spec.shape));
      to.push_back(made.back().impl()->data());
    }
    std::vector<TensorSpec> specs;
    std::vector<const std::byte*> from;
    Tensors host;
    for (const Tensor& t : element) {
      specs.push_back(t.spec());
      host.push_back(copy_to_device(t, host_device()));
      synchronize(host.back().impl()->block->ready);
      from.push_back(host.back().impl()->data());
    }
    call(node, specs, from, to, number);
    *out = std::move(made);
  }

 private:
  void call(const Node& node, std::span<const TensorSpec> specs,
            std::span<const std::byte* const> from,
            std::span<std::byte* const> to, int64_t number) const {
    const RowIn in(specs, from);
    RowOut out(specs_, to);
    RowRandom random(seed_, static_cast<uint64_t>(number));
    try {
      fn_(in, out, random);
    } catch (...) {
      raise_for(node, number);
    }
  }

  RowFunction fn_;
  std::vector<TensorSpec> specs_;
  NamesRef names_;
  std::vector<size_t> row_bytes_;
  uint64_t seed_;
};

}  // namespace

Dataset Dataset::map_rows(RowFunction fn, std::vector<TensorSpec> specs,
                          const MapRowsOptions& options, Site site) const {
  const std::string where = call_text("map_rows", site);
  if (!fn) refuse(where, "the function is empty; expected one to call");
  if (specs.empty()) {
    refuse(where, "no specs were given; expected one per component");
  }
  Names names;
  for (size_t i = 0; i < specs.size(); ++i) {
    TensorSpec& spec = specs[i];
    bool known = size_of(spec.dtype) > 0;
    for (int d = 0; d < spec.shape.rank(); ++d) known &= spec.shape[d] >= 0;
    if (!known) {
      refuse(where,
             fmt::format("component {} is to be {}; expected a dtype whose "
                         "values have a size, and a shape that is known",
                         i, spec.str()));
    }
    if (!spec.name.empty()) names.push_back(std::exchange(spec.name, {}));
  }
  const bool named = names.size() == specs.size();
  uint64_t seed = options.seed.value_or(0);
  if (!options.seed) {
    const RandomKey key = next_random_key(std::nullopt);
    seed = static_cast<uint64_t>(key.seed) * 0x9E3779B97F4A7C15u +
           static_cast<uint64_t>(key.op_id);
  }
  return row_map(
      "map_rows", *this,
      std::make_shared<RowFunctionKernel>(
          std::move(fn), std::move(specs),
          named ? std::make_shared<const Names>(std::move(names)) : nullptr,
          seed),
      site);
}

}  // namespace berth::data
