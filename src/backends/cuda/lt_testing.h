// Shared by the tests of products: a fake cuBLASLt, opened before the plug-in
// looks for a real one, and products on a card of the fake driver.

#ifndef BERTH_BACKENDS_CUDA_LT_TESTING_H_
#define BERTH_BACKENDS_CUDA_LT_TESTING_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>
#include <vector>

#include "backends/cuda/scenario_testing.h"
#include "conformance/gpu_stand_ins/fake_cuda/fake_lt.h"

namespace berth::cuda {

inline const FakeLt* load_fake_lt() {
  if (kFake == nullptr) return nullptr;
  // The folder comes first, so that no other library is found.
  const std::string file = fake_file(BERTH_FAKE_LT_FILE);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr
             ? nullptr
             : static_cast<const FakeLt*>(dlsym(library, "berth_fake_lt"));
}
inline const FakeLt* const kFakeLt = load_fake_lt();

using Numbers = std::vector<std::complex<double>>;

// Operands of a product, as small whole numbers.
struct LtOperands {
  Numbers a, b, bias, aux;
};
LtOperands operands_of(const gpu::MatrixProduct& p);

// The product by its definition, in the order of card.h's description, followed
// by what it keeps and the sums of b's rows.
Numbers expected_of(const gpu::MatrixProduct& p, const LtOperands& o);

// Gelu's tanh form and its slope; the tests have independent numbers.
double gelu_of(double x);
double gelu_slope_of(double x);

// Computes it with the card's library; nothing when that refuses. a begins
// `shift` bytes past an aligned address.
std::optional<Numbers> computed_by(CudaCard& card, gpu::GpuDevice& device,
                                   const gpu::MatrixProduct& p,
                                   const LtOperands& o, size_t shift = 0);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LT_TESTING_H_
