// Gates of an LSTM; included once per instruction set.

#ifndef BERTH_BACKENDS_CPU_ISA_LSTM_H_
#define BERTH_BACKENDS_CPU_ISA_LSTM_H_

#include "backends/cpu/isa/elementwise.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

inline void lstm_step(const LstmStep& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const bool on = s.mask == nullptr || s.mask[r * s.mask_row] > 0;
    const float* product = s.product + r * s.product_row;
    const float* parts = s.parts + r * s.parts_row;
    const float *h = s.h + r * s.h_row, *c = s.c + r * s.c_row;
    float *next_h = s.next_h + r * s.h_row, *out = s.outputs + r * s.cells_row;
    float *gates = s.gates + r * s.gates_row, *cell = s.cells + r * s.cells_row;
    const int64_t gate = s.gate, from = s.product_gate;
    for_vectors(s.units, [=](int64_t j, auto part) {
      const auto sum = [=](int64_t k) __attribute__((always_inline)) {
        return part.load(parts + k * gate + j) +
               part.load(product + k * from + j);
      };
      const F i = poly::sigmoid<A>(sum(0)), f = poly::sigmoid<A>(sum(1));
      const F g = poly::tanh<A>(sum(2)), o = poly::sigmoid<A>(sum(3));
      part.store(gates + j, i);
      part.store(gates + gate + j, f);
      part.store(gates + 2 * gate + j, g);
      part.store(gates + 3 * gate + j, o);
      const F before = part.load(c + j);
      const F now = on ? A::madd(f, before, i * g) : before;
      const F y = on ? o * poly::tanh<A>(now) : part.load(h + j);
      part.store(cell + j, now);
      part.store(next_h + j, y);
      part.store(out + j, y);
    });
  }
}

inline void lstm_back_step(const LstmBackStep& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const bool on = s.mask == nullptr || s.mask[r * s.mask_row] > 0;
    const bool behind = s.product != nullptr;
    const float* product = behind ? s.product + r * s.product_row : s.dy;
    const float *dy = s.dy + r * s.dy_row, *gates = s.gates + r * s.gates_row;
    const float *cell = s.cells + r * s.cells_row, *c = s.c + r * s.c_row;
    float *dh = s.dh + r * s.dh_row, *dc = s.dc + r * s.dh_row;
    float *dz = s.dz + r * s.dz_row, *dparts = s.dparts + r * s.dparts_row;
    const int64_t gate = s.gate;
    for_vectors(s.units, [=](int64_t j, auto part) {
      F all = part.load(dy + j) + part.load(dh + j);
      if (behind) all += part.load(product + j);
      const auto put = [=](int64_t k, F value) __attribute__((always_inline)) {
        part.store(dz + k * gate + j, value);
        part.store(dparts + k * gate + j, value);
      };
      if (!on) {
        part.store(dh + j, all);
        for (int64_t k = 0; k < 4; ++k) put(k, F{});
        return;
      }
      const F i = part.load(gates + j), f = part.load(gates + gate + j);
      const F g = part.load(gates + 2 * gate + j);
      const F o = part.load(gates + 3 * gate + j);
      const F tc = poly::tanh<A>(part.load(cell + j));
      const F inner = A::madd(all * o, 1.0f - tc * tc, part.load(dc + j));
      put(0, inner * g * i * (1.0f - i));
      put(1, inner * part.load(c + j) * f * (1.0f - f));
      put(2, inner * i * (1.0f - g * g));
      put(3, all * tc * o * (1.0f - o));
      part.store(dc + j, inner * f);
      part.store(dh + j, F{});
    });
  }
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_LSTM_H_
