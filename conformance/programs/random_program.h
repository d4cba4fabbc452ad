// Random programs: about 30 ops, variables, slices, tapes and device scopes.
//
// Every choice follows from the seed and from shapes, never from values, so the
// same program can be run eagerly, traced, or with other devices. Values stay
// small (tanh where they might grow), so that programs are well conditioned.
// One thread.

#ifndef BERTH_CONFORMANCE_PROGRAMS_RANDOM_PROGRAM_H_
#define BERTH_CONFORMANCE_PROGRAMS_RANDOM_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "berth/gradient_tape.h"
#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth::conformance {

class Dice {
 public:
  explicit Dice(uint64_t seed);
  int64_t below(int64_t n);  // 0 <= result < n
  bool chance(int percent) { return below(100) < percent; }
  double real();  // in [-1, 1], a multiple of 1e-4

 private:
  uint64_t state_;
};

struct Program {
  uint64_t seed = 1;
  int length = 20;
  DType dtype = float32;
  bool tapes = true;     // opens tapes and differentiates
  bool writes = true;    // assigns to variables
  bool control = false;  // cond and while_loop; unconnected gradients are zero
  // Not 0: each op runs in a device scope (/CPU:0, /GPU:0, /GPU:1 or none) that
  // follows from this seed; what is computed stays the same.
  uint64_t device_seed = 0;
};

// What a program reads, and the variables that it writes.
struct World {
  Tensors inputs;
  std::vector<Variable> variables;
};
World make_world(const Program& program);

// Runs `program` on `inputs`, of the shapes of world.inputs; returns results.
Tensors run_program(const Program& program, const World& world,
                    const Tensors& inputs);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_PROGRAMS_RANDOM_PROGRAM_H_
