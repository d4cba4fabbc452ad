#include "backends/gpu/waiting_programs.h"

#include <atomic>
#include <map>
#include <utility>

#include "backends/gpu/card.h"

namespace berth::gpu {

// A kernel that is looked up at its first launch.
class WaitingPrograms::LateKernel final : public Kernel {
 public:
  LateKernel(WaitingPrograms& programs, ProgramRef program, std::string name)
      : programs_(programs),
        program_(std::move(program)),
        name_(std::move(name)) {}

  void launch(Queue& queue, const Grid& grid, const KernelArg* args,
              int num_args) override {
    look_up();
    ready_.load()->launch(queue, grid, args, num_args);
  }

  void look_up() override {
    if (ready_.load(std::memory_order_acquire) != nullptr) return;
    std::lock_guard lock(mutex_);
    if (kernel_) return;
    kernel_ = programs_.module_of(program_)->kernel(name_.c_str());
    ready_.store(kernel_.get(), std::memory_order_release);
  }

 private:
  WaitingPrograms& programs_;
  const ProgramRef program_;
  const std::string name_;
  std::mutex mutex_;
  std::unique_ptr<Kernel> kernel_;
  std::atomic<Kernel*> ready_{nullptr};
};

std::unique_ptr<Kernel> WaitingPrograms::kernel(const std::string& beginning,
                                                const std::string& part,
                                                const char* name) {
  ProgramRef program;
  std::shared_ptr<Module> module;
  {
    std::lock_guard lock(mutex_);
    ProgramRef& known = programs_[beginning + part];
    if (!known) {
      known = std::make_shared<Program>(Program{beginning, part, nullptr});
      waiting_.push_back(known);
    }
    program = known;
    module = known->module;
  }
  if (module) return module->kernel(name);
  return std::make_unique<LateKernel>(*this, std::move(program), name);
}

void WaitingPrograms::compile_all() {
  std::lock_guard one(compiling_);
  // Sorted, so that a plan's text is the same in every process.
  std::map<std::string, std::map<std::string, ProgramRef>> groups;
  {
    std::lock_guard lock(mutex_);
    for (ProgramRef& p : std::exchange(waiting_, {})) {
      groups[p->beginning].emplace(p->part, std::move(p));
    }
  }
  for (auto& [beginning, group] : groups) {
    std::vector<ProgramRef> programs;
    for (auto& [part, program] : group) programs.push_back(std::move(program));
    compile(programs);
  }
}

void WaitingPrograms::forget() {
  // Kernels may still hold their programs.
  for (auto& [text, program] : programs_) program->module.reset();
  programs_.clear();
}

void WaitingPrograms::compile(const std::vector<ProgramRef>& programs) {
  std::vector<std::string> parts;
  for (const ProgramRef& p : programs) parts.push_back(p->part);
  const auto modules = compile_(programs.front()->beginning, parts);
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < programs.size(); ++i) programs[i]->module = modules[i];
}

std::shared_ptr<Module> WaitingPrograms::module_of(const ProgramRef& program) {
  const auto found = [&] {
    std::lock_guard lock(mutex_);
    return program->module;
  };
  if (auto module = found()) return module;
  compile_all();
  if (auto module = found()) return module;
  std::lock_guard one(compiling_);
  if (auto module = found()) return module;
  compile({program});
  return found();
}

}  // namespace berth::gpu
