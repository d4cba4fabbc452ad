#include "backends/gpu/card.h"

#include <fmt/format.h>

namespace berth::gpu {

std::shared_ptr<Module> Card::module(const Source& source) {
  const std::string text =
      fmt::format(
          "#define HAS_F64 {:d}\n#define GROUP_SIZE {}\n"
          "#define IS_CPU {:d}\n",
          features_.has_f64, features_.group_size, features_.is_cpu) +
      text_of(source);
  {
    std::lock_guard lock(mutex_);
    const auto it = modules_.find(text);
    if (it != modules_.end()) return it->second;
  }
  // Other threads may compile meanwhile; of two equal modules the first stays.
  std::shared_ptr<Module> made = compile(text);
  std::lock_guard lock(mutex_);
  return modules_.emplace(text, std::move(made)).first->second;
}

LibraryKernel Card::library_kernel(const LibraryOp& /*op*/) { return {}; }

}  // namespace berth::gpu
