// libjpeg-turbo reports errors by longjmp: the functions below that it may
// jump out of hold nothing that a destructor must free.

#include <fmt/format.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

// After <cstdio>, which it needs.
#include <jerror.h>
#include <jpeglib.h>

#include "berth/errors.h"
#include "io/image_codec.h"

namespace berth::io {
namespace {

// A small file can have thousands of scans of a large picture.
constexpr int kMostScans = 500;

struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg knows this
  jmp_buf jump;
  char problem[JMSG_LENGTH_MAX] = "";
  bool truncated = false;
  bool no_memory = false;
};

[[noreturn]] void jpeg_problem(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->problem);
  errors->no_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
  std::longjmp(errors->jump, 1);
}

void jpeg_warning(j_common_ptr info, int level) {
  if (level >= 0) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  const int code = info->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
      code == JWRN_HUFF_BAD_CODE) {
    errors->truncated = true;
    info->err->format_message(info, errors->problem);
  }
  ++info->err->num_warnings;
}

void jpeg_progress(j_common_ptr info) {
  if (!info->is_decompressor) return;
  auto* d = reinterpret_cast<j_decompress_ptr>(info);
  if (d->input_scan_number > kMostScans) {
    auto* errors = reinterpret_cast<JpegErrors*>(info->err);
    std::snprintf(errors->problem, sizeof(errors->problem),
                  "it has more than %d scans", kMostScans);
    std::longjmp(errors->jump, 1);
  }
}

void set_errors(JpegErrors* errors) {
  jpeg_std_error(&errors->manager);
  errors->manager.error_exit = jpeg_problem;
  errors->manager.emit_message = jpeg_warning;
}

struct JpegReader {
  jpeg_decompress_struct info;
  JpegErrors errors;
  jpeg_progress_mgr progress;
  bool made = false;
  int channels = 0;          // of the result
  JDIMENSION left = 0;       // column of the window in the rows that arrive
  std::vector<uint8_t> row;  // where rows do not go straight to the result
  ~JpegReader() {
    if (made) jpeg_destroy_decompress(&info);
  }
};

bool jpeg_head(JpegReader* r, const uint8_t* bytes, size_t size) {
  if (setjmp(r->errors.jump) != 0) return false;
  jpeg_create_decompress(&r->info);
  r->made = true;
  r->progress.progress_monitor = jpeg_progress;
  r->info.progress = &r->progress;
  jpeg_mem_src(&r->info, bytes, size);
  jpeg_read_header(&r->info, TRUE);
  return true;
}

bool jpeg_start(JpegReader* r, const JpegRead& o) {
  if (setjmp(r->errors.jump) != 0) return false;
  jpeg_decompress_struct& d = r->info;
  r->channels = o.channels != 0 ? o.channels : d.num_components == 1 ? 1 : 3;
  const bool four = d.num_components == 4;
  d.out_color_space = four               ? JCS_CMYK
                      : r->channels == 1 ? JCS_GRAYSCALE
                                         : JCS_RGB;
  d.scale_num = 1;
  d.scale_denom = static_cast<unsigned>(o.ratio);
  d.do_fancy_upsampling = o.fancy_upscaling ? TRUE : FALSE;
  d.dct_method = o.fast_dct ? JDCT_IFAST : JDCT_ISLOW;
  jpeg_start_decompress(&d);
  return true;
}

// Columns beyond the window that its edges depend on.
constexpr JDIMENSION kMargin = 16;

bool jpeg_window(JpegReader* r, const JpegRead& o) {
  if (setjmp(r->errors.jump) != 0) return false;
  jpeg_decompress_struct& d = r->info;
  const auto x = static_cast<JDIMENSION>(o.x);
  JDIMENSION begin = x > kMargin ? x - kMargin : 0;
  JDIMENSION end = x + static_cast<JDIMENSION>(o.width) + kMargin;
  if (end > d.output_width) end = d.output_width;
  JDIMENSION width = end - begin;
  jpeg_crop_scanline(&d, &begin, &width);
  r->left = x - begin;
  if (o.y > 0) jpeg_skip_scanlines(&d, static_cast<JDIMENSION>(o.y));
  return true;
}

// One row of CMYK, as Adobe writes it (inverted), to `channels` colours.
void cmyk_row(const uint8_t* from, size_t width, int channels, uint8_t* to) {
  for (size_t i = 0; i < width; ++i, from += 4) {
    const int k = from[3];
    const int rgb[3] = {from[0] * k / 255, from[1] * k / 255,
                        from[2] * k / 255};
    if (channels == 1) {
      *to++ = static_cast<uint8_t>(
          (299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
    } else {
      for (int v : rgb) *to++ = static_cast<uint8_t>(v);
    }
  }
}

bool jpeg_rows(JpegReader* r, uint8_t* to, size_t height, size_t width) {
  if (setjmp(r->errors.jump) != 0) return false;
  jpeg_decompress_struct& d = r->info;
  const auto channels = static_cast<size_t>(r->channels);
  const bool four = d.out_color_space == JCS_CMYK;
  for (size_t y = 0; y < height; ++y) {
    uint8_t* const out = to + y * width * channels;
    JSAMPROW row = r->row.empty() ? out : r->row.data();
    jpeg_read_scanlines(&d, &row, 1);
    if (r->row.empty()) continue;
    const size_t per_pixel = static_cast<size_t>(d.output_components);
    const uint8_t* from = r->row.data() + r->left * per_pixel;
    if (four) {
      cmyk_row(from, width, r->channels, out);
    } else {
      std::memcpy(out, from, width * channels);
    }
  }
  // The end of the file matters only when all of it was read.
  if (d.output_scanline == d.output_height) jpeg_finish_decompress(&d);
  return true;
}

[[noreturn]] void jpeg_damaged(const JpegErrors& e, size_t size) {
  if (e.no_memory) throw std::bad_alloc();
  throw errors::DataLoss(
      fmt::format("the JPEG of {} bytes is damaged: {}", size, e.problem));
}

void check_jpeg(std::string_view bytes) {
  if (looks_like_jpeg(bytes)) return;
  throw errors::InvalidArgument(fmt::format(
      "{} bytes do not begin as a JPEG does; expected the contents of a JPEG "
      "file",
      bytes.size()));
}

void open_jpeg(JpegReader* r, std::string_view bytes) {
  check_jpeg(bytes);
  std::memset(&r->info, 0, sizeof(r->info));
  std::memset(&r->progress, 0, sizeof(r->progress));
  set_errors(&r->errors);
  r->info.err = &r->errors.manager;
  if (!jpeg_head(r, reinterpret_cast<const uint8_t*>(bytes.data()),
                 bytes.size())) {
    jpeg_damaged(r->errors, bytes.size());
  }
}

struct JpegWriter {
  jpeg_compress_struct info;
  JpegErrors errors;
  bool made = false;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  ~JpegWriter() {
    if (made) jpeg_destroy_compress(&info);
    std::free(bytes);
  }
};

bool jpeg_write(JpegWriter* w, const uint8_t* pixels, const ImageSize& size,
                const JpegWrite& o) {
  if (setjmp(w->errors.jump) != 0) return false;
  jpeg_compress_struct& c = w->info;
  jpeg_create_compress(&c);
  w->made = true;
  jpeg_mem_dest(&c, &w->bytes, &w->size);
  c.image_width = static_cast<JDIMENSION>(size.width);
  c.image_height = static_cast<JDIMENSION>(size.height);
  c.input_components = size.channels;
  c.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, o.quality, TRUE);
  if (o.progressive) jpeg_simple_progression(&c);
  c.optimize_coding = o.optimize ? TRUE : FALSE;
  if (!o.downsample) c.comp_info[0].h_samp_factor = 1;
  if (!o.downsample) c.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&c, TRUE);
  const auto stride = static_cast<size_t>(size.width * size.channels);
  for (size_t y = 0; c.next_scanline < c.image_height; ++y) {
    JSAMPROW row = const_cast<uint8_t*>(pixels) + y * stride;
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  return true;
}

}  // namespace

bool looks_like_jpeg(std::string_view bytes) {
  return bytes.starts_with("\xff\xd8\xff");
}

void read_jpeg(std::string_view bytes, const JpegRead& o,
               const MakeRoom& room) {
  JpegReader r;
  open_jpeg(&r, bytes);
  const int64_t pixels = int64_t{r.info.image_width} * r.info.image_height;
  if (pixels > o.max_pixels) {
    throw errors::ResourceExhausted(fmt::format(
        "the JPEG has {} x {} pixels; expected at most {}: raise max_pixels",
        r.info.image_height, r.info.image_width, o.max_pixels));
  }
  if (!jpeg_start(&r, o)) jpeg_damaged(r.errors, bytes.size());
  int64_t height = r.info.output_height, width = r.info.output_width;
  if (o.height != 0) {
    if (o.y < 0 || o.x < 0 || o.height < 1 || o.width < 1 ||
        o.height > height || o.width > width || o.y > height - o.height ||
        o.x > width - o.width) {
      throw errors::InvalidArgument(fmt::format(
          "the window {} x {} at ({}, {}) is not in the picture of {} x {}",
          o.height, o.width, o.y, o.x, height, width));
    }
    if (!jpeg_window(&r, o)) jpeg_damaged(r.errors, bytes.size());
    height = o.height;
    width = o.width;
  }
  if (o.height != 0 || r.info.out_color_space == JCS_CMYK) {
    r.row.resize(size_t{r.info.output_width} *
                 static_cast<size_t>(r.info.output_components));
  }
  uint8_t* to = room({height, width, r.channels});
  const bool ok = jpeg_rows(&r, to, static_cast<size_t>(height),
                            static_cast<size_t>(width));
  if (!ok || (r.errors.truncated && !o.recover)) {
    jpeg_damaged(r.errors, bytes.size());
  }
}

ImageSize jpeg_size(std::string_view bytes) {
  JpegReader r;
  open_jpeg(&r, bytes);
  return {r.info.image_height, r.info.image_width, r.info.num_components};
}

std::string write_jpeg(const uint8_t* pixels, const ImageSize& size,
                       const JpegWrite& options) {
  JpegWriter w;
  std::memset(&w.info, 0, sizeof(w.info));
  set_errors(&w.errors);
  w.info.err = &w.errors.manager;
  if (!jpeg_write(&w, pixels, size, options)) {
    if (w.errors.no_memory) throw std::bad_alloc();
    throw errors::InvalidArgument(
        fmt::format("cannot write a JPEG: {}", w.errors.problem));
  }
  return std::string(reinterpret_cast<const char*>(w.bytes), w.size);
}

}  // namespace berth::io
