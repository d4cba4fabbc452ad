#include "backends/cpu/kernels.h"

#include "backends/reference/reference.h"
#include "base/immortal.h"

namespace berth::cpu {

const KernelTable& kernels() {
  static const auto& table = immortal<KernelTable>([] {
    KernelTable t;
    for (AddKernels* add :
         {add_elementwise, add_softmax, add_matmul, add_conv, add_pool,
          add_reduce, add_folds, add_norm, add_layer_norm, add_lstm,
          add_training, add_layout, add_random, add_gather, add_linalg,
          add_factor, add_fourier, add_sort, add_expressions}) {
      add(t);
    }
    add_half(t);  // must follow the kernels that it goes through
    return t;
  }());
  return table;
}

void run_reference(const KernelCall& call) {
  reference::kernels().fast(call.op->id(), float32)(call);
}

Spread spread_of(const Shape& operand, const Shape& full) {
  // Runs of axes that the operand has (even places) and lacks (odd places).
  int64_t runs[4] = {1, 1, 1, 1};
  int run = 0;
  const int shift = full.rank() - operand.rank();
  for (int i = 0; i < full.rank(); ++i) {
    if (full[i] == 1) continue;
    const bool has = i >= shift && operand[i - shift] != 1;
    if (has == (run % 2 == 1) && ++run == 4) return {};
    runs[run] *= full[i];
  }
  using Kind = Spread::Kind;
  switch (run) {
    case 0:
      return {Kind::kSame, 1, 1, runs[0]};
    case 1:
      if (runs[0] == 1) return {Kind::kScalar, 1, 1, runs[1]};
      return {Kind::kCols, 1, runs[0], runs[1]};
    case 2:
      return {Kind::kRows, runs[0], runs[1], runs[2]};
    default:
      return {};
  }
}

int cut_parts(int64_t items, int64_t floats, int slices) {
  return static_cast<int>(std::clamp<int64_t>(
      std::min({int64_t{slices}, int64_t{ThreadPool::kMaxChunks}, items,
                floats / kPartFloats}),
      1, ThreadPool::kMaxChunks));
}

}  // namespace berth::cpu
