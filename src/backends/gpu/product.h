// Products of matrices on a GPU, for MatMul and for what is made of products.
//
// Where elements of a and b lie is said by a file of kernels/ (product.cl);
// kernels for processors and for GPUs, pieces and parts are chosen here.

#ifndef BERTH_BACKENDS_GPU_PRODUCT_H_
#define BERTH_BACKENDS_GPU_PRODUCT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/gpu/recipe.h"

namespace berth::gpu {

// PRODUCT_FIELDS of kernels/product.cl: how a Problem begins.
struct ProductFields {
  int64_t m = 0, n = 0, k = 0, batches = 1;
  int64_t c_row = 0, c_batch = 0;
  int64_t batch_inner = 0;
  int64_t rows_fast = 0;
  int64_t b_col = 1;
};

// What is done to the elements of a product (MatrixProduct). Of real types.
struct ProductEnd {
  Arg bias = no_buffer();
  Arg aux = no_buffer();
  bool has_bias = false, keeps = false;
  Activation activation = Activation::kNone;

  bool is_nothing() const {
    return !has_bias && !keeps && activation == Activation::kNone;
  }
};

// c[z] = a[z] b[z] for each batch z.
struct ProductCall {
  ProductFields fields;
  Arg problem;       // by value: the Problem of `file`
  const char* file;  // of kernels/
  std::vector<std::pair<std::string, std::string>> defines;  // for `file`
  DType dtype = DType::kInvalid;
  Arg a, b, c;
  // Elements of b go by a stride along all of the inner dimension.
  bool strided_b = false;
  // Batches are channels, next to each other in a, b and c, one column each.
  bool channels = false;
  ProductEnd end = {};
};

// Appends it. c may be empty; without inner elements it becomes zeros, and is
// dense then.
void append_product(Recipe& r, const ProductCall& call);

// Appends the end alone, of a dense c that is there already.
void append_product_end(Recipe& r, const ProductCall& call);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_PRODUCT_H_
