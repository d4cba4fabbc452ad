// Device placement, example 2: going on without the device that was asked for.

#include "article.h"

using namespace berth;

namespace {

int sensible() {
  article::print_devices();
  config::set_soft_device_placement(true);
  auto square = function(
      [] {
        const auto on = device("/GPU:0");
        const Tensor a = random::normal({256, 256});
        return matmul(a, transpose(a));
      },
      {.name = "square"});
  const Tensor b = square();
  fmt::print("matrix multiplication done on {}\n", b.device());
  const Tensor c = with_device("/CPU:0", [&] { return b + b; });
  fmt::print("addition done on {}\n", c.device());
  article::print_placement(square);
  return 0;
}

int as_printed() {
  config::set_soft_device_placement(true);
  Tensor a, b;
  try {
    const auto on = device("/GPU:0");
    a = random::normal({1024, 1024});
    b = matmul(a, transpose(a));
    fmt::print("Matrix multiplication done on GPU.\n");
  } catch (const errors::NotFound&) {
    const auto on = device("/CPU:0");
    a = random::normal({1024, 1024});
    b = matmul(a, transpose(a));
    fmt::print("Matrix multiplication done on CPU as GPU is not available.\n");
  }
  const auto on = device("/CPU:0");
  const Tensor c = a + a;
  fmt::print("Addition operation done on CPU\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_000_2", argc, argv, sensible, as_printed);
}
