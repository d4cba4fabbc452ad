#include "backends/gpu/kernels.h"

#include <utility>

namespace berth::gpu {

void Kernels::add(std::string_view op, DTypeSet dtypes, Make make,
                  bool in_place, const char* label) {
  if (!card_.features().has_f64) {
    dtypes &= ~(dtype_bit(float64) | dtype_bit(complex128));
  }
  if (dtypes == 0) return;
  KernelDef def;
  def.label = label;
  def.dtypes = dtypes;
  def.in_place = in_place;
  add(op, std::move(def), make);
}

void Kernels::add_partial(std::string_view op, DTypeSet dtypes, Make make) {
  KernelDef def;
  def.label = "library";
  def.dtypes = dtypes;
  def.partial = true;
  add(op, std::move(def), make);
}

void Kernels::add(std::string_view op, KernelDef def, Make make) {
  def.prepare = [card = &card_,
                 make](const PrepareArgs& args) -> std::unique_ptr<Prepared> {
    Recipe recipe(*card, args);
    return make(recipe) ? recipe.finish() : nullptr;
  };
  table_.add(op, std::move(def));
}

void add_all(Kernels& k) {
  add_elementwise(k);
  add_integer_ops(k);
  add_functions(k);
  add_random(k);
  add_training(k);
  add_reduce(k);
  add_softmax(k);
  add_norm(k);
  add_attention(k);
  add_scan(k);
  add_sort(k);
  add_movement(k);
  add_gather(k);
  add_matmul(k);
  add_conv(k);
  add_pool(k);
}

}  // namespace berth::gpu
