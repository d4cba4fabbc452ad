// LSTM and its gradient.

#include <algorithm>
#include <cmath>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// Returns the gates of a unit in a row of 4 * units.
template <class T>
struct Gates {
  T *i, *f, *g, *o;
  Gates(T* row, int64_t units, int64_t unit)
      : i(row + unit), f(i + units), g(f + units), o(g + units) {}
};

void lstm(const KernelCall& call) {
  with_floating(call.in[0].dtype, [&]<class T>(T) {
    const Shape& shape = *call.in[0].shape;
    const int64_t n = shape[0], steps = shape[1], u = shape[2] / 4;
    const T *parts = call.in[0].as<T>(), *kernel = call.in[1].as<T>();
    const T* mask = call.num_in == 5 ? call.in[4].as<T>() : nullptr;
    T *outputs = call.out[0].as<T>(), *last = call.out[1].as<T>();
    T *gates = call.out[2].as<T>(), *cells = call.out[3].as<T>();
    Scratch<double> z(static_cast<size_t>(4 * u));
    for (int64_t b = 0; b < n; ++b) {
      const T *h = call.in[2].as<T>() + b * u, *c = call.in[3].as<T>() + b * u;
      for (int64_t t = 0; t < steps; ++t) {
        const int64_t at = b * steps + t;
        const bool on = mask == nullptr || mask[at] > 0;
        for (int64_t k = 0; k < 4 * u; ++k) z[k] = parts[at * 4 * u + k];
        for (int64_t j = 0; j < u; ++j) {
          for (int64_t k = 0; k < 4 * u; ++k) {
            z[k] += static_cast<double>(h[j]) * kernel[j * 4 * u + k];
          }
        }
        for (int64_t j = 0; j < u; ++j) {
          const Gates<T> gate(gates + at * 4 * u, u, j);
          const double i = logistic(z[j]), f = logistic(z[u + j]);
          const double g = std::tanh(z[2 * u + j]), o = logistic(z[3 * u + j]);
          const double cell = f * c[j] + i * g;
          *gate.i = static_cast<T>(i);
          *gate.f = static_cast<T>(f);
          *gate.g = static_cast<T>(g);
          *gate.o = static_cast<T>(o);
          cells[at * u + j] = on ? static_cast<T>(cell) : c[j];
          outputs[at * u + j] = on ? static_cast<T>(o * std::tanh(cell)) : h[j];
        }
        h = outputs + at * u;
        c = cells + at * u;
      }
      std::copy_n(c, u, last + b * u);
    }
  });
}

void lstm_grad(const KernelCall& call) {
  with_floating(call.in[0].dtype, [&]<class T>(T) {
    const Shape& shape = *call.in[0].shape;
    const int64_t n = shape[0], steps = shape[1], u = shape[2];
    const T *dy = call.in[0].as<T>(), *kernel = call.in[2].as<T>();
    const T *gates = call.in[4].as<T>(), *cells = call.in[5].as<T>();
    const T* mask = call.num_in == 7 ? call.in[6].as<T>() : nullptr;
    T* dparts = call.out[0].as<T>();
    Scratch<double> dh(static_cast<size_t>(u)), dc(dh);
    for (int64_t b = 0; b < n; ++b) {
      for (int64_t j = 0; j < u; ++j) {
        dh[j] = 0;
        dc[j] = call.in[1].as<T>()[b * u + j];
      }
      for (int64_t t = steps; t-- > 0;) {
        const int64_t at = b * steps + t;
        T* dz = dparts + at * 4 * u;
        for (int64_t j = 0; j < u; ++j) dh[j] += dy[at * u + j];
        if (mask && !(mask[at] > 0)) {
          std::fill_n(dz, 4 * u, T{0});
          continue;
        }
        const T* before =
            t == 0 ? call.in[3].as<T>() + b * u : cells + (at - 1) * u;
        for (int64_t j = 0; j < u; ++j) {
          const Gates<const T> gate(gates + at * 4 * u, u, j);
          const Gates<T> d(dz, u, j);
          const double i = *gate.i, f = *gate.f, g = *gate.g, o = *gate.o;
          const double tc = std::tanh(static_cast<double>(cells[at * u + j]));
          const double inner = dc[j] + dh[j] * o * (1 - tc * tc);
          *d.i = static_cast<T>(inner * g * i * (1 - i));
          *d.f = static_cast<T>(inner * before[j] * f * (1 - f));
          *d.g = static_cast<T>(inner * i * (1 - g * g));
          *d.o = static_cast<T>(dh[j] * tc * o * (1 - o));
          dc[j] = inner * f;
        }
        for (int64_t j = 0; j < u; ++j) {
          dh[j] = 0;
          for (int64_t k = 0; k < 4 * u; ++k) {
            dh[j] += static_cast<double>(dz[k]) * kernel[j * 4 * u + k];
          }
        }
      }
      for (int64_t j = 0; j < u; ++j) {
        call.out[1].as<T>()[b * u + j] = static_cast<T>(dh[j]);
        call.out[2].as<T>()[b * u + j] = static_cast<T>(dc[j]);
      }
    }
  });
}

}  // namespace

void add_lstm(KernelTable& t) {
  t.direct("LSTM", kFloatingTypes, &lstm, "reference");
  t.direct("LSTMGrad", kFloatingTypes, &lstm_grad, "reference");
}

}  // namespace berth::reference
