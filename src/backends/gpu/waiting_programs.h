// WaitingPrograms: the programs of a card that are compiled together. Each is
// some generated text after a beginning that many share.
//
// They wait until a plan is complete, or until one of their kernels is
// launched; then those of equal beginnings are compiled as one. Thread-safe.

#ifndef BERTH_BACKENDS_GPU_WAITING_PROGRAMS_H_
#define BERTH_BACKENDS_GPU_WAITING_PROGRAMS_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace berth::gpu {

class Kernel;
class Module;

class WaitingPrograms {
 public:
  // Returns the module of each of `parts`, all after `beginning`; they may
  // share one. Throws errors::Internal with the compiler's message.
  using Compile = std::function<std::vector<std::shared_ptr<Module>>(
      const std::string& beginning, const std::vector<std::string>& parts)>;

  explicit WaitingPrograms(Compile compile) : compile_(std::move(compile)) {}

  // Returns a kernel of the program `beginning` + `part`, which waits unless it
  // is compiled already.
  std::unique_ptr<Kernel> kernel(const std::string& beginning,
                                 const std::string& part, const char* name);
  // Compiles what waits. Throws the compiler's error; programs that were not
  // compiled because of it are compiled one by one when they are launched.
  void compile_all();
  // Drops all modules. Kernels must not be used any more.
  void forget();

 private:
  struct Program {
    std::string beginning, part;
    std::shared_ptr<Module> module;  // guarded by mutex_
  };
  using ProgramRef = std::shared_ptr<Program>;
  class LateKernel;

  std::shared_ptr<Module> module_of(const ProgramRef& program);
  void compile(const std::vector<ProgramRef>& programs);

  const Compile compile_;
  std::mutex compiling_;  // held by the thread that compiles
  std::mutex mutex_;
  std::unordered_map<std::string, ProgramRef> programs_;  // by whole text
  std::vector<ProgramRef> waiting_;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_WAITING_PROGRAMS_H_
