// Kernels: the catalogue of a card, filled in by the families of this folder.
//
//   void add_softmax(Kernels& k) { k.add("Softmax", kFloats, &softmax); }
//
// softmax(Recipe&) appends launches, or returns false for shapes or attributes
// that it does not take. Then the next candidate is tried, and last the op's
// decomposition. Called by one thread, while devices are created.

#ifndef BERTH_BACKENDS_GPU_KERNELS_H_
#define BERTH_BACKENDS_GPU_KERNELS_H_

#include <string_view>

#include "backends/gpu/recipe.h"

namespace berth::gpu {

using Make = bool (*)(Recipe& recipe);

class Kernels {
 public:
  Kernels(Card& card, KernelTable& table) : card_(card), table_(table) {}

  const Features& features() const { return card_.features(); }
  // The dtype is that of the first input that is not a resource, else of output
  // 0, else of the first variable. float64 and complex128 are left out on cards
  // that lack them. `in_place`: an output may share the bytes of the input from
  // which it is computed element by element.
  void add(std::string_view op, DTypeSet dtypes, Make make,
           bool in_place = false, const char* label = "gpu");
  // Adds one that is partial (KernelDef): what it refuses, the op's
  // decomposition computes.
  void add_partial(std::string_view op, DTypeSet dtypes, Make make);

 private:
  void add(std::string_view op, KernelDef def, Make make);

  Card& card_;
  KernelTable& table_;
};

// The families, each a file of this folder; add_all calls them.
void add_all(Kernels& k);
void add_elementwise(Kernels& k);  // expressions, fused groups, casts
void add_integer_ops(Kernels& k);  // whole numbers, bits, complex, AddN, tests
void add_functions(Kernels& k);    // special functions
void add_random(Kernels& k);       // random ops, dropout
void add_training(Kernels& k);     // variables, optimizers
void add_reduce(Kernels& k);       // reductions, arg-reductions
void add_softmax(Kernels& k);      // softmax, cross-entropy, top-k tests
void add_norm(Kernels& k);         // batch, layer and channel norms
void add_attention(Kernels& k);    // attention by a library
void add_scan(Kernels& k);         // cumulative ops, recurrences
void add_sort(Kernels& k);         // sort, top-k, search
void add_movement(Kernels& k);     // layout, slice, pad, join, rearrange
void add_gather(Kernels& k);       // gather, scatter, segments, one-hot
void add_matmul(Kernels& k);       // products
void add_conv(Kernels& k);         // convolutions
void add_pool(Kernels& k);         // pooling

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_KERNELS_H_
