// From an expression to instructions: pairs, registers, slots.

#include <algorithm>
#include <cstring>

#include "berth/errors.h"
#include "expr/program.h"

namespace berth::expr {

class Compiler {
 public:
  Compiler(const Expr& e, ExprProgram& p) : e_(e), p_(p) {}

  void run() {
    count_uses();
    give_slots();
    std::vector<bool> done(e_.values().size(), false);
    for (int i = e_.num_inputs(); i < e_.size(); ++i) {
      if (e_[i].code == OpCode::kConstant || merged_[i] >= 0 || uses_[i] == 0) {
        continue;
      }
      emit(i);
    }
    find_reads_after_write();
  }

 private:
  static bool is_unary(OpCode c) { return info(c).operands == 1; }

  void count_uses() {
    uses_.assign(e_.values().size(), 0);
    merged_.assign(e_.values().size(), -1);
    pair_.assign(e_.values().size(), nullptr);
    for (const int o : e_.outputs()) uses_[o] += 2;  // never only inside a pair
    // Values that no output needs get no use and no instruction.
    for (int i = e_.size() - 1; i >= 0; --i) {
      if (uses_[i] == 0) continue;
      for (const int a : e_[i].args) {
        if (a >= 0) ++uses_[a];
      }
    }
    for (int i = 0; i < e_.size(); ++i) {
      if (uses_[i] > 0) find_pair(i);
    }
  }

  // Whether value i can be computed together with one of its operands.
  void find_pair(int i) {
    const Value& v = e_[i];
    for (const FusedPair& pair : p_.ops_.pairs) {
      if (pair.fn == nullptr || pair.second != v.code ||
          loop_type(e_, v) != float32) {
        continue;
      }
      const int inner = v.args[pair.right ? 1 : 0];
      const Value& f = e_[inner];
      if (f.code != pair.first || uses_[inner] != 1 || merged_[inner] >= 0 ||
          pair_[inner] != nullptr || f.type != float32) {
        continue;
      }
      pair_[i] = &pair;
      merged_[inner] = i;
      return;
    }
  }

  // Operands of the instruction of value i.
  void operands(int i, int* out) const {
    const Value& v = e_[i];
    std::copy_n(v.args, 3, out);
    if (const FusedPair* pair = pair_[i]) {
      const Value& f = e_[v.args[pair->right ? 1 : 0]];
      const int other = is_unary(v.code) ? -1 : v.args[pair->right ? 0 : 1];
      out[0] = f.args[0];
      out[1] = f.args[1];
      out[2] = other;
    }
  }

  void give_slots() {
    slot_.assign(e_.values().size(), -1);
    p_.num_inputs_ = e_.num_inputs();
    p_.num_outputs_ = e_.num_outputs();
    for (int i = 0; i < e_.num_inputs(); ++i) {
      slot_[i] = i;
      p_.input_size_[i] = static_cast<uint8_t>(size_of(e_[i].type));
    }
    for (int i = 0; i < e_.num_outputs(); ++i) {
      const int v = e_.outputs()[i];
      slot_[v] = e_.num_inputs() + i;
      p_.output_size_[i] = static_cast<uint8_t>(size_of(e_[v].type));
    }
    last_use_.assign(e_.values().size(), -1);
    for (int i = 0; i < e_.size(); ++i) {
      if (uses_[i] == 0 || merged_[i] >= 0) continue;
      int args[3];
      operands(i, args);
      for (const int a : args) {
        if (a >= 0) last_use_[a] = i;
      }
    }
    for (int i = 0; i < e_.size(); ++i) {
      if (e_[i].code == OpCode::kConstant && uses_[i] > 0) add_constant(i);
    }
  }

  int take_register() {
    if (!free_.empty()) {
      const int r = free_.back();
      free_.pop_back();
      return r;
    }
    return p_.num_inputs_ + p_.num_outputs_ + p_.registers_++;
  }

  template <class T>
  static void put(ExprProgram::Constant& c, double number) {
    const T x = static_cast<T>(number);
    std::memcpy(c.bytes, &x, sizeof x);
    c.size = sizeof x;
  }

  void add_constant(int i) {
    ExprProgram::Constant c{};
    slot_[i] = take_register();
    c.slot = static_cast<uint8_t>(slot_[i]);
    const double x = e_[i].number;
    switch (e_[i].type) {
      case DType::kFloat32:
        put<float>(c, x);
        break;
      case DType::kFloat64:
        put<double>(c, x);
        break;
      case DType::kInt32:
        put<int32_t>(c, x);
        break;
      case DType::kInt64:
        put<int64_t>(c, x);
        break;
      default:
        put<uint8_t>(c, x);
        break;
    }
    p_.constants_.push_back(c);
  }

  BlockFn function(int i) const {
    if (pair_[i]) return pair_[i]->fn;
    const Value& v = e_[i];
    const int type = type_index(loop_type(e_, v));
    return v.code == OpCode::kCast ? p_.ops_.cast[type][type_index(v.type)]
                                   : p_.ops_.fn[static_cast<int>(v.code)][type];
  }

  void emit(int i) {
    int args[3];
    operands(i, args);
    ExprProgram::Instruction in{
        .fn = function(i), .a = 0, .b = 0, .c = 0, .y = 0};
    if (in.fn == nullptr) {
      throw errors::Internal(std::string("no loop for expression ") +
                             info(e_[i].code).name);
    }
    uint8_t* slots[] = {&in.a, &in.b, &in.c};
    for (int k = 0; k < 3; ++k) {
      if (args[k] >= 0) *slots[k] = static_cast<uint8_t>(slot_[args[k]]);
    }
    // Registers of operands that end here may take the result.
    for (int k = 0; k < 3; ++k) {
      const int a = args[k];
      const bool again = std::find(args, args + k, a) != args + k;
      if (a >= e_.num_inputs() && !again && last_use_[a] == i &&
          e_[a].code != OpCode::kConstant && is_register(slot_[a])) {
        free_.push_back(slot_[a]);
      }
    }
    // A result of another size must not overtake an operand in its register.
    if (slot_[i] < 0) slot_[i] = take_result_register(i, args);
    in.y = static_cast<uint8_t>(slot_[i]);
    p_.code_.push_back(in);
  }

  int take_result_register(int i, const int* args) {
    const size_t size = size_of(e_[i].type);
    for (size_t f = free_.size(); f-- > 0;) {
      bool good = true;
      for (int k = 0; k < 3; ++k) {
        good &= args[k] < 0 || slot_[args[k]] != free_[f] ||
                size_of(e_[args[k]].type) == size;
      }
      if (!good) continue;
      const int r = free_[f];
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(f));
      return r;
    }
    return p_.num_inputs_ + p_.num_outputs_ + p_.registers_++;
  }

  bool is_register(int slot) const {
    return slot >= p_.num_inputs_ + p_.num_outputs_;
  }

  void find_reads_after_write() {
    const int first = p_.num_inputs_;  // the slot of output 0
    bool written = false;
    for (const ExprProgram::Instruction& in : p_.code_) {
      if (written && (in.a < first || in.b < first || in.c < first)) {
        p_.reads_after_write_ = true;
      }
      written |= in.y == first;
    }
  }

  const Expr& e_;
  ExprProgram& p_;
  std::vector<int> uses_, merged_, slot_, last_use_, free_;
  std::vector<const FusedPair*> pair_;
};

ExprProgram::ExprProgram(const Expr& e, const BlockOps& ops) : ops_(ops) {
  if (e.num_outputs() == 0) {
    throw errors::InvalidArgument("expression: no outputs; expected one");
  }
  Compiler(e, *this).run();
}

}  // namespace berth::expr
