// Products of matrices on a GPU, for MatMul and for ops built on products.
//
// A file of kernels/ (product.cl) determines where the elements of a and b are;
// this module chooses kernels and parts.

#ifndef BERTH_BACKENDS_GPU_PRODUCT_H_
#define BERTH_BACKENDS_GPU_PRODUCT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/gpu/recipe.h"

namespace berth::gpu {

// PRODUCT_FIELDS of kernels/product.cl: the beginning of a Problem.
struct ProductFields {
  int64_t m = 0, n = 0, k = 0, batches = 1;
  int64_t c_row = 0, c_batch = 0;
  int64_t batch_inner = 0;
  int64_t rows_fast = 0;
  int64_t b_col = 1;
};

// The epilogue of a product (MatrixProduct). For real types.
struct ProductEnd {
  Arg bias = no_buffer();
  Arg aux = no_buffer();
  bool has_bias = false, keeps = false;
  ProductActivation activation = ProductActivation::kNone;

  bool is_nothing() const {
    return !has_bias && !keeps && activation == ProductActivation::kNone;
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
  ProductEnd end = {};
};

// Appends it. c may be empty; without inner elements c must be dense and is set
// to zeros.
void append_product(Recipe& r, const ProductCall& call);

// Appends the epilogue alone, for a dense c that already exists.
void append_product_end(Recipe& r, const ProductCall& call);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_PRODUCT_H_
