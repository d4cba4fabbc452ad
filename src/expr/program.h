// ExprProgram: an expression made ready to run, block by block.
//
// A block of every operand goes through all instructions while it is in the
// first-level cache. Results do not depend on how an array is split: they are
// those of one loop per operation. Immutable after compile(); run() is
// re-entrant and allocates nothing.

#ifndef BERTH_EXPR_PROGRAM_H_
#define BERTH_EXPR_PROGRAM_H_

#include <vector>

#include "expr/block_ops.h"
#include "expr/expr.h"
#include "op/kernel.h"

namespace berth::expr {

// Outputs of at least so many bytes go past the caches.
inline constexpr int64_t kStreamBytes = int64_t{8} << 20;

class ExprProgram {
 public:
  // `ops` must outlive the program.
  ExprProgram(const Expr& e, const BlockOps& ops);

  // Dense views; each input broadcasts to the common shape of the outputs.
  // Output 0 may be the bytes of an input of its shape, if no other output is.
  void run(const View* in, const View* out) const;

  int num_instructions() const { return static_cast<int>(code_.size()); }
  // Blocks of scratch a run uses.
  int num_registers() const { return registers_; }

 private:
  friend class Run;
  struct Instruction {
    BlockFn fn;
    uint8_t a, b, c, y;  // slots
  };
  struct Constant {
    uint8_t slot;
    uint8_t size;
    alignas(8) unsigned char bytes[8];
  };
  friend class Compiler;

  const BlockOps& ops_;
  // Slots: inputs, outputs, then registers.
  std::vector<Instruction> code_;
  std::vector<Constant> constants_;
  uint8_t input_size_[kMaxInputs] = {};
  uint8_t output_size_[kMaxOutputs] = {};
  int num_inputs_ = 0, num_outputs_ = 0;
  int registers_ = 0;
  // Output 0 is written before the last read of an input.
  bool reads_after_write_ = false;
};

}  // namespace berth::expr

#endif  // BERTH_EXPR_PROGRAM_H_
