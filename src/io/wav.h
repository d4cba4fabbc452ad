// WAV files: what their headers say, and samples as floats. Pure; thread-safe.

#ifndef BERTH_IO_WAV_H_
#define BERTH_IO_WAV_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::io {

struct WavFile {
  int channels = 0;
  int64_t sample_rate = 0;
  int bits = 0;              // 8, 16, 24, 32
  bool is_float = false;     // 32 bits
  std::string_view samples;  // whole frames
  int64_t frames = 0;
};

// Throws InvalidArgument for what is not a WAV file or not of those formats,
// DataLoss for one that ends too early.
WavFile read_wav(std::string_view bytes);

// Writes `count` numbers from number `first` on, in -1 to 1, to `to`.
void wav_samples(const WavFile& file, int64_t first, int64_t count, float* to);

// A 16-bit file of `frames` frames.
std::string write_wav(const float* samples, int64_t frames, int channels,
                      int64_t sample_rate);

}  // namespace berth::io

#endif  // BERTH_IO_WAV_H_
