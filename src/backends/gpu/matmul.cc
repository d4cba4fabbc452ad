// MatMul: by a library of the card's, else by kernels of its own.

#include "backends/gpu/kernels.h"
#include "backends/gpu/product.h"

namespace berth::gpu {

namespace matmul {

// Of kernels/product_matmul.cl.
struct Problem {
  ProductFields fields;
  int64_t a_row = 0, a_inner = 0, b_inner = 0;
  Strided batch_a, batch_b;
};

Shape batch_of(const Shape& s) {
  Shape batch = s;
  batch.erase(batch.rank() - 1);
  batch.erase(batch.rank() - 1);
  return batch;
}

// The walk over `batches` of matrices of `size` elements.
Strided batch_walk(const Shape& of, const Shape& batches, int64_t size) {
  Strided s = broadcast(of, batches);
  for (int i = 0; i < s.rank; ++i) s.stride[i] *= size;
  return s;
}

Problem problem_of(const Recipe& r) {
  const bool ta = r.args().attr<bool>("transpose_a");
  const bool tb = r.args().attr<bool>("transpose_b");
  const Shape &a = r.in_shape(0), &b = r.in_shape(1), &o = r.out_shape(0);
  Problem p;
  ProductFields& f = p.fields;
  f.m = o[o.rank() - 2];
  f.n = o[o.rank() - 1];
  f.k = a[ta ? a.rank() - 2 : a.rank() - 1];
  const Shape batches = batch_of(o);
  f.batches = batches.num_elements();
  p.batch_a = batch_walk(batch_of(a), batches, f.m * f.k);
  p.batch_b = batch_walk(batch_of(b), batches, f.k * f.n);
  if (!ta && batch_of(b).num_elements() == 1 && batch_of(a) == batches) {
    f.m *= f.batches;  // rows of one product
    f.batches = 1;
    p.batch_a = p.batch_b = {};
  }
  f.c_row = f.n;
  f.c_batch = f.m * f.n;
  f.rows_fast = ta;
  p.a_row = ta ? 1 : f.k;
  p.a_inner = ta ? f.m : 1;
  p.b_inner = tb ? 1 : f.n;
  f.b_col = tb ? f.k : 1;
  return p;
}

// Hands it to the card's library, if it has one; `own` is the alternative.
bool by_library(Recipe& r, const Problem& p, const std::function<void()>& own) {
  const ProductFields& f = p.fields;
  if (f.batches * f.m * f.n * f.k == 0) return false;
  if (p.batch_a.rank > 1 || p.batch_b.rank > 1) return false;
  MatrixProduct product;
  product.dtype = r.out_type(0);
  product.m = f.m;
  product.n = f.n;
  product.k = f.k;
  product.transpose_a = f.rows_fast != 0;
  product.transpose_b = r.args().attr<bool>("transpose_b");
  product.batches = f.batches;
  product.stride_a = p.batch_a.rank == 1 ? p.batch_a.stride[0] : 0;
  product.stride_b = p.batch_b.rank == 1 ? p.batch_b.stride[0] : 0;
  product.stride_c = f.m * f.n;
  return r.product(product, {in(0), in(1), out(0), no_buffer()}, own);
}

void append_own(Recipe& r, const Problem& p) {
  ProductCall call{p.fields, value(p), "product_matmul.cl"};
  call.dtype = r.out_type(0);
  call.a = in(0);
  call.b = in(1);
  call.c = out(0);
  call.strided_b = true;
  append_product(r, call);
}

bool matmul(Recipe& r) {
  const Problem p = problem_of(r);
  const auto own = [&] { append_own(r, p); };
  if (!by_library(r, p, own)) own();
  return true;
}

}  // namespace matmul

void add_matmul(Kernels& k) { k.add("MatMul", kEveryNumber, &matmul::matmul); }

}  // namespace berth::gpu
