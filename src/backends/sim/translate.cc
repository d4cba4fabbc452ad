#include "backends/sim/translate.h"

#include <array>
#include <vector>

namespace berth::sim {

void run_translated(const AddressMap& map, const KernelCall& call,
                    const BoundKernel& kernel) {
  std::array<View, 64> few;
  std::vector<View> many;
  const size_t n = static_cast<size_t>(call.num_in + call.num_out);
  View* views = few.data();
  if (n > few.size()) {
    many.resize(n);
    views = many.data();
  }
  for (size_t i = 0; i < n; ++i) {
    const size_t in = static_cast<size_t>(call.num_in);
    views[i] = i < in ? call.in[i] : call.out[i - in];
    views[i].data = map.translate(views[i].data);
  }
  KernelContext context = *call.context;
  context.scratch = map.translate(context.scratch);
  context.step_counter =
      static_cast<const uint64_t*>(map.translate(context.step_counter));
  KernelCall translated = call;
  translated.in = views;
  translated.out = views + call.num_in;
  translated.context = &context;
  kernel.run(translated);
}

}  // namespace berth::sim
