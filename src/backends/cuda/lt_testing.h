// What the tests of products share: a cuBLASLt that pretends, opened before
// anybody looks for one, and products on a card of the driver that does.

#ifndef BERTH_BACKENDS_CUDA_LT_TESTING_H_
#define BERTH_BACKENDS_CUDA_LT_TESTING_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>
#include <vector>

#include "backends/cuda/fake/fake_lt.h"
#include "backends/cuda/scenario_testing.h"

namespace berth::cuda {

inline const FakeLt* load_fake_lt() {
  if (kFake == nullptr) return nullptr;
  // The folder comes first, so that no other is found.
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

// By the definition of a product, in the order of the words of card.h; behind
// it what it keeps, and the sums of b's rows.
Numbers expected_of(const gpu::MatrixProduct& p, const LtOperands& o);

// Gelu's tanh form and its slope: numbers from elsewhere are in the tests.
double gelu_of(double x);
double gelu_slope_of(double x);

// What the card's library makes of it; none when it refuses. `shift`: so many
// bytes past an aligned address lies a.
std::optional<Numbers> computed_by(CudaCard& card, gpu::GpuDevice& device,
                                   const gpu::MatrixProduct& p,
                                   const LtOperands& o, size_t shift = 0);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LT_TESTING_H_
