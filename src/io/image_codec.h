// PNG and JPEG by libpng and libjpeg-turbo, behind an interface without them.
//
// Bytes may be hostile: sizes are checked against `max_pixels` before memory
// for them is asked for, and the libraries' jumps end here as errors::DataLoss,
// InvalidArgument or ResourceExhausted. Thread-safe.

#ifndef BERTH_IO_IMAGE_CODEC_H_
#define BERTH_IO_IMAGE_CODEC_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace berth::io {

struct ImageSize {
  int64_t height = 0, width = 0;
  int channels = 0;
};

// Called once the size is known; returns room for height * width * channels
// bytes. May throw.
using MakeRoom = std::function<uint8_t*(const ImageSize&)>;

bool looks_like_png(std::string_view bytes);
bool looks_like_jpeg(std::string_view bytes);

// channels: 0 (the file's) to 4.
// `wide`: samples are two bytes each, and the room is twice as large.
void read_png(std::string_view bytes, int channels, int64_t max_pixels,
              const MakeRoom& room, bool wide = false);

struct JpegRead {
  int channels = 0;  // 0, 1, 3
  int ratio = 1;     // 1, 2, 4, 8
  bool fancy_upscaling = true;
  bool recover = false;
  bool fast_dct = false;
  int64_t max_pixels = 0;
  // A window of the (scaled) picture; height 0: all.
  int64_t y = 0, x = 0, height = 0, width = 0;
};
void read_jpeg(std::string_view bytes, const JpegRead& options,
               const MakeRoom& room);
ImageSize jpeg_size(std::string_view bytes);

// `pixels` [height, width, channels].
std::string write_png(const uint8_t* pixels, const ImageSize& size,
                      int compression);
struct JpegWrite {
  int quality = 95;
  bool progressive = false, optimize = false, downsample = true;
};
std::string write_jpeg(const uint8_t* pixels, const ImageSize& size,
                       const JpegWrite& options);

}  // namespace berth::io

#endif  // BERTH_IO_IMAGE_CODEC_H_
