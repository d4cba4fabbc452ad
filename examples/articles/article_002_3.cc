// A GPU and CPU cores, example 3: a traced function on two devices.

#include "article.h"

using namespace berth;

namespace {

int sensible() {
  article::print_devices();
  auto my_computation = function(
      [](const Tensor& x) {
        const auto on = device("/GPU:0");
        return math::reduce_mean(math::square(x));
      },
      {.name = "my_computation"});
  const Tensor output = my_computation(random::normal({1000, 1000}));
  fmt::print("{}\n", output.str());
  article::print_placement(my_computation);
  return 0;
}

int as_printed() {
  auto my_computation = function(
      [](const Tensor& input_tensor) {
        Tensor intermediate, result;
        {
          const auto on = device("/GPU:0");
          intermediate = math::square(input_tensor);
        }
        {
          const auto on = device("/CPU:0");
          result = math::reduce_mean(intermediate);
        }
        return result;
      },
      {.name = "my_computation"});
  const Tensor input_data = random::normal({1000, 1000});
  const Tensor output = my_computation(input_data);
  fmt::print("{}\n", output.str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_002_3", argc, argv, sensible, as_printed);
}
