// Distributing operations, example 1: two devices, one op each.

#include <algorithm>

#include "article.h"

using namespace berth;

namespace {

std::string gpu_or(const std::string& other) {
  const auto devices = config::list_physical_devices();
  const bool gpu =
      std::any_of(devices.begin(), devices.end(),
                  [](const auto& d) { return d.device_type == "GPU"; });
  return gpu ? "/GPU:0" : other;
}

int sensible() {
  article::print_devices();
  const std::string cpu_device = "/CPU:0", gpu_device = gpu_or(cpu_device);
  auto both = function(
      [&] {
        const Tensor product = with_device(gpu_device, [] {
          const Tensor x = random::normal({100, 100});
          return matmul(x, x);
        });
        const Tensor sum = with_device(cpu_device, [] {
          return math::reduce_sum(random::normal({100, 100}));
        });
        return Tensors{product, sum};
      },
      {.name = "both"});
  const Tensors results = both();
  fmt::print("product: {}\nsum: {}\n", results[0].device(), results[1].str());
  article::print_placement(both);
  return 0;
}

int as_printed() {
  const std::string cpu_device = "/CPU:0", gpu_device = gpu_or(cpu_device);
  Tensor cpu_tensor, gpu_tensor, result_gpu, result_cpu;
  {
    const auto on = device(cpu_device);
    cpu_tensor = random::normal({100, 100});
  }
  {
    const auto on = device(gpu_device);
    gpu_tensor = random::normal({100, 100});
  }
  {
    const auto on = device(gpu_device);
    result_gpu = matmul(gpu_tensor, gpu_tensor);
  }
  {
    const auto on = device(cpu_device);
    result_cpu = math::reduce_sum(cpu_tensor);
  }
  fmt::print("Result on GPU : {}\n", result_gpu.shape().str());
  fmt::print("Result on CPU: {}\n", result_cpu.str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_001_1", argc, argv, sensible, as_printed);
}
