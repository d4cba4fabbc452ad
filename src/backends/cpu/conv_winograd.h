// 3x3 convolutions by Winograd's algorithm, all three passes.
//
// They need a quarter of the multiplications of the direct sum, at about 1.6
// times its rounding error (winograd_loops.h). An infinity or NaN in a pixel
// spreads to the whole 4x4 tile. The filter, or the image where tiles are few,
// is transformed first; then each part runs transform, products and inverse
// while its data is in cache. Forward and input gradient are equal bit for bit
// for every number of slices. Thread rule: as ConvPlan.

#ifndef BERTH_BACKENDS_CPU_CONV_WINOGRAD_H_
#define BERTH_BACKENDS_CPU_CONV_WINOGRAD_H_

#include "backends/cpu/dnnl_math.h"

namespace berth::cpu {

class WinogradConv : public ConvPlan {
 public:
  // True for 3x3 filters with stride 1 and enough channels for it to pay; never
  // with BERTH_WINOGRAD=0 in the environment.
  static bool takes(const ConvShape& shape, ConvPass pass);
  WinogradConv(const ConvShape& shape, ConvPass pass,
               const ConvChoice& options);

  void run(const ConvBuffers& buffers, ThreadPool* pool) const override;

 private:
  // Pixels that tiles are read from or written to.
  struct Pixels {
    int64_t h = 0, w = 0, channels = 0, pad_top = 0, pad_left = 0;
  };
  // One run: the operands by role, and the parts of the scratch.
  struct Run {
    const ConvBuffers* buffers;
    const float* source;
    float* base;
  };

  void plan_product();
  void plan_filter_grad();
  float* scratch(const Run& r, int slice) const;
  template <class Body>
  void fork(ThreadPool* pool, int64_t items, Body&& body) const;
  void tile_pixels(const Pixels& p, const float* data, const float* zeros,
                   int64_t tile, int size, const float** at) const;

  void image_tiles(const Run& r, int64_t first, int64_t count, float* v,
                   int64_t stride) const;
  void filter_block(const Run& r, int64_t panel, int64_t row, int64_t rows,
                    float* turned, float* u, int64_t stride) const;
  void result_tiles(const Run& r, int64_t panel, int64_t first, int64_t count,
                    const float* m, int64_t stride) const;
  void grad_tiles(const Run& r, int64_t panel, int64_t first, int64_t count,
                  float* z, int64_t stride) const;
  void filter_grad_block(const Run& r, int64_t panel, int64_t row, int64_t rows,
                         const float* m, int64_t stride) const;

  void product_by_tiles(const Run& r, ThreadPool* pool) const;
  void product_by_panels(const Run& r, ThreadPool* pool) const;
  void filter_grad_by_tiles(const Run& r, ThreadPool* pool) const;
  void filter_grad_by_panels(const Run& r, ThreadPool* pool) const;

  int64_t panel_width(int64_t panel) const;

  const ConvShape shape_;
  const ConvPass pass_;
  const ConvChoice options_;
  Pixels source_, result_;  // x and dy of a filter gradient
  int64_t tiles_h_ = 0, tiles_w_ = 0, tiles_ = 0;
  int64_t depth_ = 0;  // channels of the source
  int64_t ldv_ = 0;    // floats from one transformed tile to the next
  int64_t panels_ = 0;
  bool by_panels_ = false;
  int64_t block_ = 0;  // tiles at a time
  int64_t rows_ = 0;   // by panels: channels of the source per step
  int64_t shared_at_ = 0, own_at_ = 0, own_ = 0;  // offsets in the scratch
};

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_CONV_WINOGRAD_H_
