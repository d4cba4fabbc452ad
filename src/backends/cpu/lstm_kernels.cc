// LSTM and its gradient.
//
// Units are split into blocks, and the blocks over the threads, which meet once
// per step. A block's columns of the kernel are packed once per run into panels
// that small products read without packing; its gates follow its products at
// once. Every split computes an element in the same way.

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"

namespace berth::cpu {

namespace {

constexpr int64_t kPanelColumns = 32;  // columns of a panel
constexpr int64_t kBlock = 16;         // units: two panels of two gates each
// Floats between the rows that a product reads, so that rows with a length of a
// power of two do not map to the same sets of the first-level cache.
constexpr int64_t kGap = 16;
constexpr int64_t kStepWork = 200'000;  // multiplications that pay for a fork

int64_t blocks_of(int64_t units, int64_t block) {
  return (units + block - 1) / block;
}

// n examples, t steps, u units, and how they are split.
struct LstmCut {
  LstmCut(int64_t batch, int64_t steps, int64_t units, int64_t block,
          int slices)
      : n(batch), t(steps), u(units), blocks(blocks_of(units, block)) {
    const int64_t work = n * u * 4 * u;
    parts = static_cast<int>(
        std::clamp<int64_t>(std::min<int64_t>({blocks, work / kStepWork, slices,
                                               ThreadPool::kMaxChunks}),
                            1, ThreadPool::kMaxChunks));
  }
  // The blocks of a part.
  int64_t begin(int part) const { return blocks * part / parts; }
  // Time of a step, at 20 multiplications per nanosecond.
  double step_us() const { return static_cast<double>(n * u * 4 * u) / 20e3; }
  int64_t n, t, u, blocks;
  int parts;
};

template <class Body>
void for_parts(const KernelCall& call, const LstmCut& cut, Body&& body) {
  ThreadPool* pool = call.context->pool;
  if (pool == nullptr || cut.parts == 1) {
    for (int i = 0; i < cut.parts; ++i) body(i);
    return;
  }
  pool->parallel_for(cut.parts, body, cut.step_us());
}

class LstmKernel : public Prepared {
 public:
  LstmKernel(int64_t n, int64_t t, int64_t u, int slices)
      : cut_(n, t, u, kBlock, slices) {}

  // Panels, two alternating states, and a tile of gates per part.
  size_t scratch_bytes() const override {
    return float_bytes(panels() + 2 * cut_.n * state_row() +
                       cut_.parts * cut_.n * 2 * kPanelColumns);
  }

  void run(const KernelCall& call) const override {
    const int64_t n = cut_.n, u = cut_.u, row = state_row();
    auto* scratch = static_cast<float*>(call.context->scratch);
    float* states[2] = {scratch + panels(), scratch + panels() + n * row};
    float* tiles = states[1] + n * row;
    const float* h0 = call.in[2].as<float>();
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(states[0] + i * row, h0 + i * u, float_bytes(u));
    }
    for (int64_t t = 0; t < cut_.t; ++t) {
      for_parts(call, cut_, [&](int part) {
        float* tile = tiles + part * n * 2 * kPanelColumns;
        for (int64_t b = cut_.begin(part); b < cut_.begin(part + 1); ++b) {
          float* panel = scratch + b * 2 * kPanelColumns * u;
          if (t == 0) pack(call.in[1].as<float>(), b * kBlock, panel);
          const float* h = states[t & 1];
          for (int64_t half = 0; half < 2; ++half) {
            loops().panel_gemm(n, u, h, row, panel + half * kPanelColumns * u,
                               tile + half * kPanelColumns, 2 * kPanelColumns);
          }
          step(call, t, b * kBlock, tile, h, states[1 - (t & 1)]);
        }
      });
    }
    const float* cells = call.out[3].as<float>();
    for (int64_t i = 0; i < n; ++i) {
      const float* last = cut_.t == 0 ? call.in[3].as<float>() + i * u
                                      : cells + ((i + 1) * cut_.t - 1) * u;
      std::memcpy(call.out[1].as<float>() + i * u, last, float_bytes(u));
    }
  }

 private:
  int64_t panels() const { return cut_.blocks * 2 * kPanelColumns * cut_.u; }
  int64_t state_row() const { return cut_.u + kGap; }

  // Packs two panels [u, 32], gates i, f and gates g, o, from unit `first` on.
  void pack(const float* kernel, int64_t first, float* panel) const {
    const int64_t u = cut_.u, width = std::min(kBlock, u - first);
    for (int64_t gate = 0; gate < 4; ++gate) {
      float* to = panel + gate / 2 * kPanelColumns * u + gate % 2 * kBlock;
      const float* from = kernel + gate * u + first;
      for (int64_t k = 0; k < u; ++k, to += kPanelColumns, from += 4 * u) {
        std::memcpy(to, from, float_bytes(width));
        std::memset(to + width, 0, float_bytes(kBlock - width));
      }
    }
  }

  void step(const KernelCall& call, int64_t t, int64_t first, const float* tile,
            const float* h, float* next) const {
    const int64_t u = cut_.u, row = cut_.t * u;
    LstmStep s;
    s.rows = cut_.n;
    s.units = std::min(kBlock, u - first);
    s.gate = u;
    if (call.num_in == 5) {
      s.mask = call.in[4].as<float>() + t;
      s.mask_row = cut_.t;
    }
    s.product = tile;
    s.product_row = 2 * kPanelColumns;
    s.product_gate = kBlock;
    s.parts = call.in[0].as<float>() + t * 4 * u + first;
    s.parts_row = s.gates_row = 4 * row;
    s.h = h + first;
    s.next_h = next + first;
    s.h_row = state_row();
    float* cells = call.out[3].as<float>() + t * u + first;
    s.c = t == 0 ? call.in[3].as<float>() + first : cells - u;
    s.c_row = t == 0 ? u : row;
    s.outputs = call.out[0].as<float>() + t * u + first;
    s.gates = call.out[2].as<float>() + t * 4 * u + first;
    s.cells = cells;
    s.cells_row = row;
    loops().lstm_step(s);
  }

  const LstmCut cut_;
};

// Goes from the last step to the first. A step passes on the product of all its
// gates' gradients; the earlier step computes it when it begins.
class LstmGradKernel : public Prepared {
 public:
  LstmGradKernel(int64_t n, int64_t t, int64_t u, int slices)
      : cut_(n, t, u, kPanelColumns, slices) {}

  // Panels, the gates' gradients of two steps, dh, dc, and a tile per part.
  size_t scratch_bytes() const override {
    return float_bytes(panels() + 2 * cut_.n * (dz_row() + cut_.u) +
                       cut_.parts * cut_.n * kPanelColumns);
  }

  void run(const KernelCall& call) const override {
    const int64_t n = cut_.n, u = cut_.u;
    auto* scratch = static_cast<float*>(call.context->scratch);
    float* dz[2] = {scratch + panels(), scratch + panels() + n * dz_row()};
    float *dh = dz[1] + n * dz_row(), *dc = dh + n * u;
    float* tiles = dc + n * u;
    std::memset(dh, 0, float_bytes(n * u));
    std::memcpy(dc, call.in[1].as<float>(), float_bytes(n * u));
    for (int64_t t = cut_.t - 1; t >= -1; --t) {
      const bool behind = t + 1 < cut_.t;
      for_parts(call, cut_, [&](int part) {
        float* tile = tiles + part * n * kPanelColumns;
        for (int64_t b = cut_.begin(part); b < cut_.begin(part + 1); ++b) {
          const int64_t first = b * kPanelColumns;
          float* panel = scratch + first * 4 * u;
          if (!behind) pack(call.in[2].as<float>(), first, panel);
          if (behind) {
            loops().panel_gemm(n, 4 * u, dz[(t + 1) & 1], dz_row(), panel, tile,
                               kPanelColumns);
          }
          if (t >= 0) {
            step(call, t, first, behind ? tile : nullptr, dh, dc, dz[t & 1]);
          } else {
            finish(call, first, behind ? tile : nullptr, dh, dc);
          }
        }
      });
    }
  }

 private:
  int64_t panels() const { return cut_.blocks * kPanelColumns * 4 * cut_.u; }
  int64_t dz_row() const { return 4 * cut_.u + kGap; }

  // Packs a panel [4 u, 32]: the rows of the units from `first`, as columns.
  void pack(const float* kernel, int64_t first, float* panel) const {
    const int64_t u = cut_.u, width = std::min(kPanelColumns, u - first);
    if (width < kPanelColumns)
      std::memset(panel, 0, float_bytes(4 * u * kPanelColumns));
    loops().transpose(kernel + first * 4 * u, width, 4 * u, 4 * u, panel,
                      kPanelColumns);
  }

  void step(const KernelCall& call, int64_t t, int64_t first,
            const float* product, float* dh, float* dc, float* dz) const {
    const int64_t u = cut_.u, row = cut_.t * u;
    LstmBackStep s;
    s.rows = cut_.n;
    s.units = std::min(kPanelColumns, u - first);
    s.gate = u;
    if (call.num_in == 7) {
      s.mask = call.in[6].as<float>() + t;
      s.mask_row = cut_.t;
    }
    s.dy = call.in[0].as<float>() + t * u + first;
    s.dy_row = s.cells_row = row;
    s.gates = call.in[4].as<float>() + t * 4 * u + first;
    s.gates_row = s.dparts_row = 4 * row;
    s.cells = call.in[5].as<float>() + t * u + first;
    s.c = t == 0 ? call.in[3].as<float>() + first : s.cells - u;
    s.c_row = t == 0 ? u : row;
    s.product = product;
    s.product_row = kPanelColumns;
    s.dh = dh + first;
    s.dc = dc + first;
    s.dh_row = u;
    s.dz = dz + first;
    s.dz_row = dz_row();
    s.dparts = call.out[0].as<float>() + t * 4 * u + first;
    loops().lstm_back_step(s);
  }

  // Computes the gradients of the initial states.
  void finish(const KernelCall& call, int64_t first, const float* product,
              const float* dh, const float* dc) const {
    const int64_t u = cut_.u, width = std::min(kPanelColumns, u - first);
    for (int64_t i = 0; i < cut_.n; ++i) {
      float* to = call.out[1].as<float>() + i * u + first;
      const float* kept = dh + i * u + first;
      for (int64_t j = 0; j < width; ++j) {
        to[j] = product ? kept[j] + product[i * kPanelColumns + j] : kept[j];
      }
      std::memcpy(call.out[2].as<float>() + i * u + first, dc + i * u + first,
                  float_bytes(width));
    }
  }

  const LstmCut cut_;
};

template <class Kernel>
std::unique_ptr<Prepared> lstm_kernel(const PrepareArgs& args) {
  const Shape& cells =
      args.op->name() == "LSTM" ? args.out[0].shape : *args.in[0].shape;
  if (cells[0] == 0 || cells[2] == 0) return nullptr;
  return std::make_unique<Kernel>(cells[0], cells[1], cells[2], args.slices);
}

}  // namespace

void add_lstm(KernelTable& t) {
  t.prepared("LSTM", kFloat32, &lstm_kernel<LstmKernel>, "lstm");
  t.prepared("LSTMGrad", kFloat32, &lstm_kernel<LstmGradKernel>, "lstm");
}

}  // namespace berth::cpu
