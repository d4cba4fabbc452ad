// io::decode_png and the other functions of images, on tensors.

#include <fmt/format.h>

#include "berth/io.h"
#include "data/row_source.h"
#include "io/image_codec.h"
#include "io/text_input.h"
#include "tensor/tensor_impl.h"

namespace berth::io {
namespace {

// Makes the tensor that a codec fills.
MakeRoom room_in(Tensor* to) {
  return [to](const ImageSize& size) {
    *to =
        data::make_batch(uint8, Shape{size.height, size.width, size.channels});
    return reinterpret_cast<uint8_t*>(to->impl()->data());
  };
}

void check_channels(int64_t channels, std::initializer_list<int64_t> allowed) {
  for (int64_t c : allowed) {
    if (c == channels) return;
  }
  throw errors::InvalidArgument(fmt::format(
      "channels is {}; expected 0 (the file's), 1{}, 3{}", channels,
      allowed.size() == 5 ? ", 2" : "", allowed.size() > 3 ? ", 4" : ""));
}

// 16 bits a sample.
Tensor wide_png(std::string_view bytes, const DecodePngOptions& o) {
  std::vector<uint16_t> samples;
  Shape shape;
  const MakeRoom room = [&](const ImageSize& size) {
    shape = Shape{size.height, size.width, size.channels};
    samples.resize(static_cast<size_t>(shape.num_elements()));
    return reinterpret_cast<uint8_t*>(samples.data());
  };
  read_png(bytes, static_cast<int>(o.channels), o.max_pixels, room, true);
  Tensor t = data::make_batch(o.dtype, shape);
  std::byte* to = t.impl()->data();
  const auto put = [&](auto* y) { std::ranges::copy(samples, y); };
  o.dtype == uint16 ? put(reinterpret_cast<uint16_t*>(to))
                    : put(reinterpret_cast<int32_t*>(to));
  return t;
}

JpegRead jpeg_options(const DecodeJpegOptions& o) {
  check_channels(o.channels, {0, 1, 3});
  if (o.ratio != 1 && o.ratio != 2 && o.ratio != 4 && o.ratio != 8) {
    throw errors::InvalidArgument(
        fmt::format("ratio is {}; expected 1, 2, 4 or 8", o.ratio));
  }
  if (!o.dct_method.empty() && o.dct_method != "INTEGER_FAST" &&
      o.dct_method != "INTEGER_ACCURATE") {
    throw errors::InvalidArgument(
        fmt::format("dct_method is \"{}\"; expected \"\", \"INTEGER_FAST\" or "
                    "\"INTEGER_ACCURATE\"",
                    o.dct_method));
  }
  return {.channels = static_cast<int>(o.channels),
          .ratio = static_cast<int>(o.ratio),
          .fancy_upscaling = o.fancy_upscaling,
          .recover = o.try_recover_truncated,
          .fast_dct = o.dct_method != "INTEGER_ACCURATE",
          .max_pixels = o.max_pixels};
}

// Bytes as floats from 0 to 1.
Tensor unit_floats(const Tensor& bytes) {
  Tensor t = data::make_batch(float32, bytes.shape());
  const auto* from = reinterpret_cast<const uint8_t*>(bytes.impl()->data());
  auto* to = reinterpret_cast<float*>(t.impl()->data());
  const int64_t n = bytes.num_elements();
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]) / 255.0f;
  return t;
}

// The size of pixels to encode; a copy on the host of what lies elsewhere.
ImageSize pixels_of(const Tensor& image, int most_channels,
                    std::vector<uint8_t>* pixels) {
  check_values(image, "image");
  const Shape& s = image.shape();
  if (image.dtype() != uint8 || s.rank() != 3 || s[0] < 1 || s[1] < 1 ||
      s[2] < 1 || s[2] > most_channels || (most_channels == 3 && s[2] == 2)) {
    throw errors::InvalidArgument(fmt::format(
        "the image is {}; expected uint8 [height, width, {}]",
        image.spec().str(), most_channels == 3 ? "1 or 3" : "1 to 4"));
  }
  pixels->resize(static_cast<size_t>(image.num_elements()));
  image.copy_to(pixels->data());
  return {s[0], s[1], static_cast<int>(s[2])};
}

}  // namespace

Tensor decode_png(const Tensor& contents, const DecodePngOptions& o,
                  Site site) {
  const std::string_view bytes = scalar_text(contents, "decode_png", site);
  return named_call("decode_png", site, [&] {
    check_channels(o.channels, {0, 1, 2, 3, 4});
    if (o.dtype == uint16 || o.dtype == int32) return wide_png(bytes, o);
    if (o.dtype != uint8) {
      throw errors::InvalidArgument(
          fmt::format("dtype is {}; expected uint8, or uint16 or int32 for 16 "
                      "bits a sample",
                      name_of(o.dtype)));
    }
    Tensor t;
    if (looks_like_jpeg(bytes)) {
      read_jpeg(
          bytes,
          jpeg_options({.channels = o.channels, .max_pixels = o.max_pixels}),
          room_in(&t));
    } else {
      read_png(bytes, static_cast<int>(o.channels), o.max_pixels, room_in(&t));
    }
    return t;
  });
}

Tensor decode_jpeg(const Tensor& contents, const DecodeJpegOptions& o,
                   Site site) {
  const std::string_view bytes = scalar_text(contents, "decode_jpeg", site);
  return named_call("decode_jpeg", site, [&] {
    Tensor t;
    if (looks_like_png(bytes) && o.ratio == 1) {
      check_channels(o.channels, {0, 1, 3, 4});
      read_png(bytes, static_cast<int>(o.channels), o.max_pixels, room_in(&t));
    } else {
      read_jpeg(bytes, jpeg_options(o), room_in(&t));
    }
    return t;
  });
}

Tensor decode_and_crop_jpeg(const Tensor& contents, int64_t y, int64_t x,
                            int64_t height, int64_t width,
                            const DecodeJpegOptions& o, Site site) {
  const char* name = "decode_and_crop_jpeg";
  const std::string_view bytes = scalar_text(contents, name, site);
  return named_call(name, site, [&] {
    JpegRead read = jpeg_options(o);
    read.y = y;
    read.x = x;
    // 0 stands for all in JpegRead, and is not a window.
    read.height = height == 0 ? -1 : height;
    read.width = width;
    Tensor t;
    read_jpeg(bytes, read, room_in(&t));
    return t;
  });
}

Tensor decode_image(const Tensor& contents, const DecodeOptions& o, Site site) {
  const std::string_view bytes = scalar_text(contents, "decode_image", site);
  return named_call("decode_image", site, [&] {
    if (o.dtype != uint8 && o.dtype != float32) {
      throw errors::InvalidArgument(fmt::format(
          "dtype is {}; expected uint8 or float32", name_of(o.dtype)));
    }
    Tensor t;
    if (looks_like_png(bytes)) {
      check_channels(o.channels, {0, 1, 3, 4});
      read_png(bytes, static_cast<int>(o.channels), o.max_pixels, room_in(&t));
    } else if (looks_like_jpeg(bytes)) {
      read_jpeg(
          bytes,
          jpeg_options({.channels = o.channels, .max_pixels = o.max_pixels}),
          room_in(&t));
    } else {
      throw errors::InvalidArgument(fmt::format(
          "{} bytes begin neither as a PNG nor as a JPEG does; expected one of "
          "them",
          bytes.size()));
    }
    return o.dtype == uint8 ? t : unit_floats(t);
  });
}

Shape extract_jpeg_shape(const Tensor& contents, Site site) {
  const char* name = "extract_jpeg_shape";
  const std::string_view bytes = scalar_text(contents, name, site);
  return named_call(name, site, [&] {
    const ImageSize s = jpeg_size(bytes);
    return Shape{s.height, s.width, s.channels};
  });
}

bool is_jpeg(const Tensor& contents, Site site) {
  return looks_like_jpeg(scalar_text(contents, "is_jpeg", site));
}

Tensor encode_png(const Tensor& image, int compression, Site site) {
  return named_call("encode_png", site, [&] {
    if (compression < -1 || compression > 9) {
      throw errors::InvalidArgument(
          fmt::format("compression is {}; expected -1 to 9", compression));
    }
    std::vector<uint8_t> pixels;
    const ImageSize size = pixels_of(image, 4, &pixels);
    return text_tensor(write_png(pixels.data(), size, compression));
  });
}

Tensor encode_jpeg(const Tensor& image, const EncodeJpegOptions& o, Site site) {
  return named_call("encode_jpeg", site, [&] {
    if (o.quality < 0 || o.quality > 100) {
      throw errors::InvalidArgument(
          fmt::format("quality is {}; expected 0 to 100", o.quality));
    }
    std::vector<uint8_t> pixels;
    const ImageSize size = pixels_of(image, 3, &pixels);
    return text_tensor(write_jpeg(pixels.data(), size,
                                  {.quality = o.quality,
                                   .progressive = o.progressive,
                                   .optimize = o.optimize_size,
                                   .downsample = o.chroma_downsampling}));
  });
}

}  // namespace berth::io
