// signal: Fourier transforms, windows and frames (tf.signal.*).
//
// Transforms run on host devices in double precision, for every length; lengths
// of the axes that they work on must be known. All throw
// errors::InvalidArgument for shapes, dtypes or options that do not fit.
// Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_SIGNAL_H_
#define BERTH_OPS_SIGNAL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "berth/tensor.h"

namespace berth::signal {

// The discrete Fourier transform of complex numbers over the last axis, or the
// last two or three, and its inverse, which divides by the number of elements.
Tensor fft(const Tensor& input, Site site = Site::here());
Tensor ifft(const Tensor& input, Site site = Site::here());
Tensor fft2d(const Tensor& input, Site site = Site::here());
Tensor ifft2d(const Tensor& input, Site site = Site::here());
Tensor fft3d(const Tensor& input, Site site = Site::here());
Tensor ifft3d(const Tensor& input, Site site = Site::here());

struct FourierOptions {
  // One for each axis: cut, or filled with zeros, before the transform. Those
  // of the input if empty.
  std::vector<int64_t> fft_length = {};
  std::vector<int64_t> axes = {};  // all if empty
};
Tensor fftnd(const Tensor& input, const FourierOptions& options = {},
             Site site = Site::here());
Tensor ifftnd(const Tensor& input, const FourierOptions& options = {},
              Site site = Site::here());

// The first n / 2 + 1 elements for real numbers [..., n], which determine the
// others; the input is cut, or filled with zeros, to fft_length first.
Tensor rfft(const Tensor& input_tensor,
            const std::vector<int64_t>& fft_length = {},
            Site site = Site::here());
Tensor rfft2d(const Tensor& input_tensor,
              const std::vector<int64_t>& fft_length = {},
              Site site = Site::here());
// Back to fft_length real numbers; by default an even number, 2 (n - 1).
Tensor irfft(const Tensor& input_tensor,
             const std::vector<int64_t>& fft_length = {},
             Site site = Site::here());
Tensor irfft2d(const Tensor& input_tensor,
               const std::vector<int64_t>& fft_length = {},
               Site site = Site::here());

// Half of each axis to its other end: frequency 0 in the middle, and back.
Tensor fftshift(const Tensor& x, const std::vector<int64_t>& axes = {},
                Site site = Site::here());
Tensor ifftshift(const Tensor& x, const std::vector<int64_t>& axes = {},
                 Site site = Site::here());

// Windows [window_length]. A periodic one of even length is the symmetric one
// of the next length without its last element.
Tensor hann_window(int64_t window_length, bool periodic = true,
                   DType dtype = float32, Site site = Site::here());
Tensor hamming_window(int64_t window_length, bool periodic = true,
                      DType dtype = float32, Site site = Site::here());
Tensor kaiser_window(int64_t window_length, double beta = 12,
                     DType dtype = float32, Site site = Site::here());
Tensor kaiser_bessel_derived_window(int64_t window_length, double beta = 12,
                                    DType dtype = float32,
                                    Site site = Site::here());
Tensor vorbis_window(int64_t window_length, DType dtype = float32,
                     Site site = Site::here());

struct FrameOptions {
  bool pad_end = false;  // frames that begin inside the signal, filled up
  double pad_value = 0;
  int64_t axis = -1;
};
// Frames that begin frame_step apart: [..., n, ...] -> [..., frames,
// frame_length, ...].
Tensor frame(const Tensor& signal, int64_t frame_length, int64_t frame_step,
             const FrameOptions& options = {}, Site site = Site::here());
// The sum of frames [..., frames, length] that begin frame_step apart:
// [..., (frames - 1) * frame_step + length].
Tensor overlap_and_add(const Tensor& signal, int64_t frame_step,
                       Site site = Site::here());

struct StftOptions {
  // The least power of 2 that holds frame_length if absent.
  std::optional<int64_t> fft_length = std::nullopt;
  Tensor window = {};  // [frame_length]; hann_window() if empty
  bool pad_end = false;
};
// Transforms of windowed frames of real signals [..., n]: [..., frames,
// fft_length / 2 + 1].
Tensor stft(const Tensor& signals, int64_t frame_length, int64_t frame_step,
            const StftOptions& options = {}, Site site = Site::here());
// The windowed frames added up; the signal itself with the window of
// inverse_stft_window().
Tensor inverse_stft(const Tensor& stfts, int64_t frame_length,
                    int64_t frame_step, const StftOptions& options = {},
                    Site site = Site::here());
// The window that undoes `window` [frame_length] of stft().
Tensor inverse_stft_window(const Tensor& window, int64_t frame_step,
                           Site site = Site::here());

}  // namespace berth::signal

#endif  // BERTH_OPS_SIGNAL_H_
