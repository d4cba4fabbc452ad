#include "backends/cpu/conv_winograd.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/winograd_loops.h"
#include "base/environment.h"
#include "base/thread_pool.h"

namespace berth::cpu {

namespace v1 {
const WinogradLoops& winograd_table();
}
#if defined(__x86_64__)
namespace v3 {
const WinogradLoops& winograd_table();
}
namespace v4 {
const WinogradLoops& winograd_table();
}
#endif

const WinogradLoops& winograd_loops() {
#if defined(__x86_64__)
  if (loops().isa == Isa::kV4) return v4::winograd_table();
  if (loops().isa == Isa::kV3) return v3::winograd_table();
#endif
  return v1::winograd_table();
}

namespace {

constexpr int kElements = WinogradLoops::kIn * WinogradLoops::kIn;
// Columns of a product: the tile width of our loops on every instruction set.
constexpr int64_t kPanel = 32;
// Rows of a filter that are transposed at a time.
constexpr int64_t kTurned = 64;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }

// Stride between the matrices of consecutive elements. It avoids multiples of 4
// KB, which would all map to one set of the cache.
int64_t element_stride(int64_t floats) { return round_up(floats, 32) + 16; }

bool wanted() {
  static const bool on = environment_switch("BERTH_WINOGRAD", true);
  return on;
}

void multiply(bool transpose_a, int64_t m, int64_t n, int64_t k, const float* a,
              int64_t lda, const float* b, float beta, float* c) {
  loops().small_gemm(transpose_a, false, m, n, k, 1, a, lda, b, kPanel, beta, c,
                     kPanel);
}

}  // namespace

bool WinogradConv::takes(const ConvShape& s, ConvPass pass) {
  if (!wanted() || s.kernel_h != 3 || s.kernel_w != 3 || s.stride_h != 1 ||
      s.stride_w != 1 || s.dilation_h != 1 || s.dilation_w != 1 ||
      s.groups != 1 || s.in_c < 16 || s.out_c < 16) {
    return false;
  }
  if (s.pad_top > 2 || s.pad_bottom > 2 || s.pad_left > 2 || s.pad_right > 2) {
    return false;
  }
  const bool data = pass == ConvPass::kBackwardData;
  const int64_t h = data ? s.in_h : s.out_h(), w = data ? s.in_w : s.out_w();
  const int64_t tiles = ceil_div(h, 4) * ceil_div(w, 4);
  // Tiles that extend over the border waste work; so does transforming a filter
  // for a handful of tiles.
  return tiles * 16 <= 2 * h * w && tiles * s.batch >= 8;
}

WinogradConv::WinogradConv(const ConvShape& s, ConvPass pass,
                           const ConvChoice& options)
    : shape_(s), pass_(pass), options_(options) {
  batch_ = s.batch;
  slices_ = std::clamp(options.slices, 1, ThreadPool::kMaxChunks);
  implementation_ = "berth:winograd";
  const Pixels x{s.in_h, s.in_w, s.in_c, s.pad_top, s.pad_left};
  const Pixels y{s.out_h(), s.out_w(), s.out_c, 2 - s.pad_top, 2 - s.pad_left};
  source_ = pass == ConvPass::kBackwardData ? y : x;
  result_ = pass == ConvPass::kBackwardData ? x : y;
  tiles_h_ = ceil_div(result_.h, WinogradLoops::kOut);
  tiles_w_ = ceil_div(result_.w, WinogradLoops::kOut);
  tiles_ = batch_ * tiles_h_ * tiles_w_;
  depth_ = source_.channels;
  ldv_ = round_up(depth_, 16);
  if (ldv_ % 128 == 0) ldv_ += 16;
  panels_ = ceil_div(result_.channels, kPanel);
  shared_at_ = round_up(std::max(s.in_c, s.out_c), 16);  // after the zeros
  if (pass == ConvPass::kBackwardWeights) {
    plan_filter_grad();
  } else {
    plan_product();
  }
  scratch_bytes_ = (own_at_ + own_ * slices_) * sizeof(float);
}

void WinogradConv::plan_product() {
  by_panels_ = tiles_ <= 2 * result_.channels;
  const bool turns = pass_ == ConvPass::kBackwardData;
  const int64_t turned = turns ? 9 * kTurned * kPanel : 0;
  if (by_panels_) {
    const int64_t blocks = ceil_div(tiles_, 128);
    block_ = ceil_div(tiles_, blocks);
    rows_ = std::min<int64_t>(depth_, 128);
    own_at_ = shared_at_ + kElements * element_stride(tiles_ * ldv_);
    own_ = kElements * (element_stride(rows_ * kPanel) +
                        element_stride(block_ * kPanel)) +
           turned;
  } else {
    block_ = std::min<int64_t>(tiles_, 24);
    own_at_ =
        shared_at_ + panels_ * kElements * element_stride(depth_ * kPanel);
    own_ = kElements * (element_stride(block_ * ldv_) +
                        element_stride(block_ * kPanel)) +
           turned;
  }
}

void WinogradConv::plan_filter_grad() {
  by_panels_ = tiles_ <= 2 * result_.channels;
  if (by_panels_) {
    rows_ = std::min<int64_t>(depth_, 96);
    own_at_ =
        shared_at_ + kElements * (element_stride(tiles_ * ldv_) +
                                  panels_ * element_stride(tiles_ * kPanel));
    own_ = kElements * element_stride(rows_ * kPanel);
  } else {
    block_ = std::min<int64_t>(tiles_, 24);
    // The sums of each slice come first, so that they can be added up.
    own_at_ = shared_at_;
    own_ = kElements *
           (panels_ * element_stride(depth_ * kPanel) +
            element_stride(block_ * ldv_) + element_stride(block_ * kPanel));
  }
}

float* WinogradConv::scratch(const Run& r, int slice) const {
  return r.base + own_at_ + slice * own_;
}

int64_t WinogradConv::panel_width(int64_t panel) const {
  return std::min(kPanel, result_.channels - panel * kPanel);
}

// Calls body(slice, first item, last item) for each slice of the items.
template <class Body>
void WinogradConv::fork(ThreadPool* pool, int64_t items, Body&& body) const {
  const int parts = static_cast<int>(std::min<int64_t>(slices_, items));
  auto part = [&](int i) {
    body(i, items * i / parts, items * (i + 1) / parts);
  };
  if (pool == nullptr || parts == 1) {
    for (int i = 0; i < parts; ++i) part(i);
  } else {
    pool->parallel_for(parts, part);
  }
}

// Finds the size * size pixels of a tile; those outside point to `zeros`.
void WinogradConv::tile_pixels(const Pixels& p, const float* data,
                               const float* zeros, int64_t tile, int size,
                               const float** at) const {
  const int64_t tx = tile % tiles_w_, ty = tile / tiles_w_ % tiles_h_;
  const int64_t image = tile / (tiles_w_ * tiles_h_);
  const int64_t x0 = tx * WinogradLoops::kOut - p.pad_left;
  const int64_t y0 = ty * WinogradLoops::kOut - p.pad_top;
  for (int64_t y = y0; y < y0 + size; ++y) {
    const float* line = data + (image * p.h + y) * p.w * p.channels;
    const bool there = y >= 0 && y < p.h;
    for (int64_t x = x0; x < x0 + size; ++x) {
      *at++ = there && x >= 0 && x < p.w ? line + x * p.channels : zeros;
    }
  }
}

void WinogradConv::image_tiles(const Run& r, int64_t first, int64_t count,
                               float* v, int64_t stride) const {
  const float* at[kElements];
  for (int64_t t = 0; t < count; ++t) {
    tile_pixels(source_, r.source, r.base, first + t, WinogradLoops::kIn, at);
    winograd_loops().image(at, depth_, v + t * ldv_, stride);
  }
}

// Transforms rows [row, row + rows) of a panel of the filter.
void WinogradConv::filter_block(const Run& r, int64_t panel, int64_t row,
                                int64_t rows, float* turned, float* u,
                                int64_t stride) const {
  const float* w = r.buffers->filter;
  const int64_t tap = shape_.in_c * shape_.out_c, ld = shape_.out_c;
  const int64_t width = panel_width(panel);
  if (pass_ == ConvPass::kForward) {
    winograd_loops().filter(w + row * ld + panel * kPanel, tap, ld, false, rows,
                            width, u, kPanel, stride);
    return;
  }
  for (int64_t i = 0; i < rows; i += kTurned) {
    const int64_t n = std::min(kTurned, rows - i);
    for (int t = 0; t < 9; ++t) {
      loops().transpose(w + t * tap + panel * kPanel * ld + row + i, width, n,
                        ld, turned + t * kTurned * kPanel, kPanel);
    }
    winograd_loops().filter(turned, kTurned * kPanel, kPanel, true, n, width,
                            u + i * kPanel, kPanel, stride);
  }
}

void WinogradConv::result_tiles(const Run& r, int64_t panel, int64_t first,
                                int64_t count, const float* m,
                                int64_t stride) const {
  constexpr int kSize = WinogradLoops::kOut;
  const float* at[kSize * kSize];
  float* to[kSize * kSize];
  const Pixels p{result_.h, result_.w, result_.channels, 0, 0};
  float* y = r.buffers->result;
  const float* bias =
      options_.bias ? r.buffers->bias + panel * kPanel : nullptr;
  for (int64_t t = 0; t < count; ++t) {
    tile_pixels(p, y, nullptr, first + t, kSize, at);
    for (int i = 0; i < kSize * kSize; ++i) {
      to[i] = at[i] == nullptr ? nullptr : y + (at[i] - y) + panel * kPanel;
    }
    winograd_loops().result(m + t * kPanel, stride, panel_width(panel), bias,
                            options_.relu, to);
  }
}

void WinogradConv::grad_tiles(const Run& r, int64_t panel, int64_t first,
                              int64_t count, float* z, int64_t stride) const {
  constexpr int kSize = WinogradLoops::kOut;
  const float* at[kSize * kSize];
  const Pixels p{result_.h, result_.w, result_.channels, 0, 0};
  const float* dy = r.buffers->grad + panel * kPanel;
  for (int64_t t = 0; t < count; ++t) {
    tile_pixels(p, dy, r.base, first + t, kSize, at);
    winograd_loops().result_grad(at, panel_width(panel), z + t * kPanel,
                                 stride);
  }
}

void WinogradConv::filter_grad_block(const Run& r, int64_t panel, int64_t row,
                                     int64_t rows, const float* m,
                                     int64_t stride) const {
  const int64_t ld = shape_.out_c;
  winograd_loops().filter_grad(m, kPanel, stride, rows, panel_width(panel),
                               r.buffers->result + row * ld + panel * kPanel,
                               shape_.in_c * ld, ld);
}

// Transforms the filter once, then takes tiles from image to result.
void WinogradConv::product_by_tiles(const Run& r, ThreadPool* pool) const {
  const int64_t u_stride = element_stride(depth_ * kPanel);
  const int64_t v_stride = element_stride(block_ * ldv_);
  const int64_t m_stride = element_stride(block_ * kPanel);
  float* shared = r.base + shared_at_;
  auto turned = [&](int slice) {
    return scratch(r, slice) + kElements * (v_stride + m_stride);
  };
  const int64_t rows = ceil_div(depth_, kTurned);
  fork(pool, panels_ * rows, [&](int slice, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t panel = i / rows, row = i % rows * kTurned;
      filter_block(
          r, panel, row, std::min(kTurned, depth_ - row), turned(slice),
          shared + panel * kElements * u_stride + row * kPanel, u_stride);
    }
  });
  fork(pool, tiles_, [&](int slice, int64_t first, int64_t last) {
    float* v = scratch(r, slice);
    float* m = v + kElements * v_stride;
    for (int64_t t = first; t < last; t += block_) {
      const int64_t count = std::min(block_, last - t);
      image_tiles(r, t, count, v, v_stride);
      for (int64_t panel = 0; panel < panels_; ++panel) {
        const float* u = shared + panel * kElements * u_stride;
        for (int k = 0; k < kElements; ++k) {
          multiply(false, count, panel_width(panel), depth_, v + k * v_stride,
                   ldv_, u + k * u_stride, 0, m + k * m_stride);
        }
        result_tiles(r, panel, t, count, m, m_stride);
      }
    }
  });
}

// Transforms all tiles first, and each panel of the filter just before use.
void WinogradConv::product_by_panels(const Run& r, ThreadPool* pool) const {
  const int64_t v_stride = element_stride(tiles_ * ldv_);
  const int64_t u_stride = element_stride(rows_ * kPanel);
  const int64_t m_stride = element_stride(block_ * kPanel);
  float* v = r.base + shared_at_;
  fork(pool, tiles_, [&](int, int64_t first, int64_t last) {
    image_tiles(r, first, last - first, v + first * ldv_, v_stride);
  });
  const int64_t blocks = ceil_div(tiles_, block_);
  fork(pool, panels_ * blocks, [&](int slice, int64_t first, int64_t last) {
    float* u = scratch(r, slice);
    float* m = u + kElements * u_stride;
    float* turned = m + kElements * m_stride;
    for (int64_t i = first; i < last; ++i) {
      const int64_t panel = i / blocks, t = i % blocks * block_;
      const int64_t count = std::min(block_, tiles_ - t);
      for (int64_t row = 0; row < depth_; row += rows_) {
        const int64_t rows = std::min(rows_, depth_ - row);
        filter_block(r, panel, row, rows, turned, u, u_stride);
        for (int k = 0; k < kElements; ++k) {
          multiply(false, count, panel_width(panel), rows,
                   v + k * v_stride + t * ldv_ + row, ldv_, u + k * u_stride,
                   row == 0 ? 0 : 1, m + k * m_stride);
        }
      }
      result_tiles(r, panel, t, count, m, m_stride);
    }
  });
}

// Each slice sums over its tiles; the sums are added along the fixed tree.
void WinogradConv::filter_grad_by_tiles(const Run& r, ThreadPool* pool) const {
  const int64_t sum_stride = element_stride(depth_ * kPanel);
  const int64_t v_stride = element_stride(block_ * ldv_);
  const int64_t z_stride = element_stride(block_ * kPanel);
  fork(pool, tiles_, [&](int slice, int64_t first, int64_t last) {
    float* sums = scratch(r, slice);
    float* v = sums + panels_ * kElements * sum_stride;
    float* z = v + kElements * v_stride;
    for (int64_t t = first; t < last; t += block_) {
      const int64_t count = std::min(block_, last - t);
      image_tiles(r, t, count, v, v_stride);
      for (int64_t panel = 0; panel < panels_; ++panel) {
        grad_tiles(r, panel, t, count, z, z_stride);
        for (int k = 0; k < kElements; ++k) {
          multiply(true, depth_, panel_width(panel), count, v + k * v_stride,
                   ldv_, z + k * z_stride, t == first ? 0 : 1,
                   sums + (panel * kElements + k) * sum_stride);
        }
      }
    }
  });
  const int parts = static_cast<int>(std::min<int64_t>(slices_, tiles_));
  float* sums = scratch(r, 0);
  tree_sum(sums, parts, panels_ * kElements * sum_stride, own_, pool);
  const int64_t rows = ceil_div(depth_, kTurned);
  fork(pool, panels_ * rows, [&](int, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t panel = i / rows, row = i % rows * kTurned;
      filter_grad_block(r, panel, row, std::min(kTurned, depth_ - row),
                        sums + panel * kElements * sum_stride + row * kPanel,
                        sum_stride);
    }
  });
}

// Transforms image and gradient first; then one slice sums each part of the
// filter's gradient over all tiles.
void WinogradConv::filter_grad_by_panels(const Run& r, ThreadPool* pool) const {
  const int64_t v_stride = element_stride(tiles_ * ldv_);
  const int64_t z_stride = element_stride(tiles_ * kPanel);
  const int64_t m_stride = element_stride(rows_ * kPanel);
  float* v = r.base + shared_at_;
  float* z = v + kElements * v_stride;
  fork(pool, tiles_, [&](int, int64_t first, int64_t last) {
    image_tiles(r, first, last - first, v + first * ldv_, v_stride);
    for (int64_t panel = 0; panel < panels_; ++panel) {
      grad_tiles(r, panel, first, last - first,
                 z + panel * kElements * z_stride + first * kPanel, z_stride);
    }
  });
  const int64_t blocks = ceil_div(depth_, rows_);
  fork(pool, panels_ * blocks, [&](int slice, int64_t first, int64_t last) {
    float* m = scratch(r, slice);
    for (int64_t i = first; i < last; ++i) {
      const int64_t panel = i / blocks, row = i % blocks * rows_;
      const int64_t rows = std::min(rows_, depth_ - row);
      for (int k = 0; k < kElements; ++k) {
        multiply(true, rows, panel_width(panel), tiles_, v + k * v_stride + row,
                 ldv_, z + (panel * kElements + k) * z_stride, 0,
                 m + k * m_stride);
      }
      filter_grad_block(r, panel, row, rows, m, m_stride);
    }
  });
}

void WinogradConv::run(const ConvBuffers& buffers, ThreadPool* pool) const {
  Run r;
  r.buffers = &buffers;
  r.source = pass_ == ConvPass::kBackwardData ? buffers.grad : buffers.input;
  r.base = static_cast<float*>(buffers.scratch);
  std::memset(r.base, 0, static_cast<size_t>(shared_at_) * sizeof(float));
  if (pass_ == ConvPass::kBackwardWeights) {
    by_panels_ ? filter_grad_by_panels(r, pool) : filter_grad_by_tiles(r, pool);
  } else {
    by_panels_ ? product_by_panels(r, pool) : product_by_tiles(r, pool);
  }
}

}  // namespace berth::cpu
