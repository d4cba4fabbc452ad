#include "backends/gpu/card.h"

#include <fmt/format.h>

namespace berth::gpu {

namespace {

std::string text_for(const Features& f, const KernelSource& source) {
  return fmt::format("#define HAS_F64 {:d}\n#define GROUP_SIZE {}\n", f.has_f64,
                     f.group_size) +
         text_of(source);
}

}  // namespace

Card::Card()
    : waiting_([this](const std::string& beginning,
                      const std::vector<std::string>& parts) {
        return compile_together(beginning, parts);
      }) {}

std::unique_ptr<Kernel> Card::kernel(const KernelSource& source,
                                     const char* name) {
  if (!source.joins || !features_.joins_programs) {
    return module(source)->kernel(name);
  }
  KernelSource beginning = source;
  beginning.generated.clear();
  return waiting_.kernel(text_for(features_, beginning), source.generated,
                         name);
}

std::vector<std::shared_ptr<Module>> Card::compile_together(
    const std::string& beginning, const std::vector<std::string>& parts) {
  std::string text = beginning;
  for (const std::string& part : parts) text += part;
  const std::shared_ptr<Module> whole = compile(text);
  return std::vector<std::shared_ptr<Module>>(parts.size(), whole);
}

void Card::forget_modules() {
  modules_.clear();
  waiting_.forget();
}

std::shared_ptr<Module> Card::module(const KernelSource& source) {
  const std::string text = text_for(features_, source);
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
