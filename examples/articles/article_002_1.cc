// A GPU and CPU cores, example 1: a product, and what is done with it.

#include "article.h"

using namespace berth;

namespace {

int sensible() {
  article::print_devices();
  auto compute = function(
      [] {
        const auto on = device("/GPU:0");
        const Tensor a = random::normal({512, 512});
        const Tensor b = random::normal({512, 512});
        return math::reduce_sum(matmul(a, b));
      },
      {.name = "compute"});
  const Tensor result = compute();
  fmt::print("{}\n", result.str());
  article::print_placement(compute);
  return 0;
}

int as_printed() {
  Tensor product, result;
  {
    const auto on = device("/GPU:0");
    const Tensor matrix_a = random::normal({1024, 1024});
    const Tensor matrix_b = random::normal({1024, 1024});
    product = matmul(matrix_a, matrix_b);
  }
  {
    const auto on = device("/CPU:0");
    result = math::reduce_sum(product);
  }
  fmt::print("{}\n", result.str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_002_1", argc, argv, sensible, as_printed);
}
