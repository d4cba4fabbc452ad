// libpng reports errors by longjmp: the functions below that it may jump out
// of hold nothing that a destructor must free.

#include <fmt/format.h>
#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <vector>

#include "berth/errors.h"
#include "io/image_codec.h"

namespace berth::io {
namespace {

constexpr png_alloc_size_t kMostChunk = png_alloc_size_t{8} << 20;
constexpr png_uint_32 kMostChunks = 1000;

struct PngJob {
  const char* bytes = nullptr;
  size_t size = 0, at = 0;
  bool ended = false;  // asked for bytes after the end
  char problem[160] = "";
  png_structp png = nullptr;
  png_infop info = nullptr;
  png_uint_32 width = 0, height = 0;
  int channels = 0;
  bool wide = false;           // 16 bits a sample
  std::string* out = nullptr;  // of a writer
  bool no_memory = false;
};

void png_problem(png_structp png, png_const_charp message) {
  auto* job = static_cast<PngJob*>(png_get_error_ptr(png));
  std::strncpy(job->problem, message, sizeof(job->problem) - 1);
  png_longjmp(png, 1);
}
void png_ignore(png_structp, png_const_charp) {}

void png_give(png_structp png, png_bytep to, size_t n) {
  auto* job = static_cast<PngJob*>(png_get_io_ptr(png));
  if (n > job->size - job->at) {
    job->ended = true;
    png_error(png, "the file ends too early");
  }
  std::memcpy(to, job->bytes + job->at, n);
  job->at += n;
}

void png_take(png_structp png, png_bytep from, size_t n) {
  auto* job = static_cast<PngJob*>(png_get_io_ptr(png));
  try {
    job->out->append(reinterpret_cast<const char*>(from), n);
    return;
  } catch (...) {
    job->no_memory = true;
  }
  png_error(png, "no memory for the picture");
}
void png_flush_nothing(png_structp) {}

// Asks for what the wanted channels need.
void choose_channels(PngJob* job, int wanted) {
  png_structp png = job->png;
  const png_byte type = png_get_color_type(png, job->info);
  const png_byte depth = png_get_bit_depth(png, job->info);
  const bool transparent = png_get_valid(png, job->info, PNG_INFO_tRNS) != 0;
  const bool palette = type == PNG_COLOR_TYPE_PALETTE;
  const bool grey = (type & PNG_COLOR_MASK_COLOR) == 0;
  job->channels = wanted;
  if (wanted == 0) {
    job->channels = palette
                        ? (transparent ? 4 : 3)
                        : static_cast<int>(png_get_channels(png, job->info));
  }
  if (palette) png_set_palette_to_rgb(png);
  if (grey && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  const bool has_alpha = (type & PNG_COLOR_MASK_ALPHA) != 0;
  if (job->channels % 2 != 0) {
    if (has_alpha || (transparent && !palette)) png_set_strip_alpha(png);
    if (palette && transparent) {
      png_set_tRNS_to_alpha(png);
      png_set_strip_alpha(png);
    }
  } else if (!has_alpha && transparent) {
    png_set_tRNS_to_alpha(png);
  } else if (!has_alpha) {
    png_set_add_alpha(png, depth == 16 || job->wide ? 0xffff : 0xff,
                      PNG_FILLER_AFTER);
  }
  if (job->wide) {
    png_set_expand_16(png);
    if constexpr (std::endian::native == std::endian::little) {
      png_set_swap(png);
    }
  } else if (depth == 16) {
    png_set_strip_16(png);
  }
  if (job->channels < 3 && !grey) png_set_rgb_to_gray(png, 1, 0.299, 0.587);
  if (job->channels >= 3 && grey) png_set_gray_to_rgb(png);
}

// Reads up to the pixels; false after a jump.
bool png_head(PngJob* job, int wanted, int64_t max_pixels) {
  if (setjmp(png_jmpbuf(job->png)) != 0) return false;
  png_set_read_fn(job->png, job, png_give);
  png_set_user_limits(job->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(job->png, kMostChunk);
  png_set_chunk_cache_max(job->png, kMostChunks);
  png_read_info(job->png, job->info);
  job->width = png_get_image_width(job->png, job->info);
  job->height = png_get_image_height(job->png, job->info);
  if (static_cast<uint64_t>(job->width) * job->height >
      static_cast<uint64_t>(max_pixels)) {
    return true;  // the caller refuses
  }
  choose_channels(job, wanted);
  png_set_interlace_handling(job->png);
  png_read_update_info(job->png, job->info);
  const size_t bytes = png_get_rowbytes(job->png, job->info);
  if (bytes != size_t{job->width} * static_cast<size_t>(job->channels) *
                   (job->wide ? 2 : 1)) {
    png_error(job->png, "its colour type is not supported");
  }
  return true;
}

bool png_pixels(PngJob* job, png_bytepp rows) {
  if (setjmp(png_jmpbuf(job->png)) != 0) return false;
  png_read_image(job->png, rows);
  png_read_end(job->png, nullptr);
  return true;
}

bool png_write(PngJob* job, png_bytepp rows, const ImageSize& size,
               int compression) {
  static constexpr int kTypes[] = {
      PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
      PNG_COLOR_TYPE_RGB_ALPHA};
  if (setjmp(png_jmpbuf(job->png)) != 0) return false;
  png_set_write_fn(job->png, job, png_take, png_flush_nothing);
  if (compression >= 0) png_set_compression_level(job->png, compression);
  png_set_IHDR(job->png, job->info, static_cast<png_uint_32>(size.width),
               static_cast<png_uint_32>(size.height), 8,
               kTypes[size.channels - 1], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(job->png, job->info);
  png_write_image(job->png, rows);
  png_write_end(job->png, nullptr);
  return true;
}

[[noreturn]] void png_damaged(const PngJob& job) {
  throw errors::DataLoss(
      fmt::format("the PNG of {} bytes is damaged: {}", job.size, job.problem));
}

struct FreePngRead {
  void operator()(PngJob* job) const {
    png_destroy_read_struct(&job->png, &job->info, nullptr);
  }
};
struct FreePngWrite {
  void operator()(PngJob* job) const {
    png_destroy_write_struct(&job->png, &job->info);
  }
};

}  // namespace

bool looks_like_png(std::string_view bytes) {
  return bytes.starts_with("\x89PNG\r\n\x1a\n");
}

void read_png(std::string_view bytes, int channels, int64_t max_pixels,
              const MakeRoom& room, bool wide) {
  if (!looks_like_png(bytes)) {
    throw errors::InvalidArgument(fmt::format(
        "{} bytes do not begin as a PNG does; expected the contents of a PNG "
        "file",
        bytes.size()));
  }
  PngJob job{.bytes = bytes.data(), .size = bytes.size(), .wide = wide};
  job.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, png_problem,
                                   png_ignore);
  if (job.png == nullptr) throw std::bad_alloc();
  std::unique_ptr<PngJob, FreePngRead> free(&job);
  job.info = png_create_info_struct(job.png);
  if (job.info == nullptr) throw std::bad_alloc();
  if (!png_head(&job, channels, max_pixels)) png_damaged(job);
  if (int64_t{job.width} * job.height > max_pixels) {
    throw errors::ResourceExhausted(fmt::format(
        "the PNG has {} x {} pixels; expected at most {}: raise max_pixels",
        job.width, job.height, max_pixels));
  }
  uint8_t* to = room({job.height, job.width, job.channels});
  std::vector<png_bytep> rows(job.height);
  const size_t stride =
      size_t{job.width} * static_cast<size_t>(job.channels) * (wide ? 2 : 1);
  // What libpng leaves out after an error must not be another's memory.
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = to + i * stride;
  if (!png_pixels(&job, rows.data())) png_damaged(job);
}

std::string write_png(const uint8_t* pixels, const ImageSize& size,
                      int compression) {
  std::string out;
  PngJob job{.out = &out};
  job.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, png_problem,
                                    png_ignore);
  if (job.png == nullptr) throw std::bad_alloc();
  std::unique_ptr<PngJob, FreePngWrite> free(&job);
  job.info = png_create_info_struct(job.png);
  if (job.info == nullptr) throw std::bad_alloc();
  const size_t stride = static_cast<size_t>(size.width * size.channels);
  std::vector<png_bytep> rows(static_cast<size_t>(size.height));
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = const_cast<uint8_t*>(pixels) + i * stride;
  }
  if (!png_write(&job, rows.data(), size, compression)) {
    if (job.no_memory) throw std::bad_alloc();
    throw errors::InvalidArgument(
        fmt::format("cannot write a PNG: {}", job.problem));
  }
  return out;
}

}  // namespace berth::io
