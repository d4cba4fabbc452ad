// Fuzz targets of the readers of files: any bytes end in data or in a named
// error, within the limits that are given. One program per format; which one
// says BERTH_FUZZ.

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/errors.h"
#include "io/csv_row.h"
#include "io/example_wire.h"
#include "io/image_codec.h"
#include "io/npz.h"
#include "io/record_format.h"
#include "io/wav.h"

namespace {

using namespace berth;  // NOLINT
using Bytes = std::string_view;

constexpr size_t kMostRecord = 1 << 16;
constexpr int64_t kMostFuzzPixels = 1 << 20;

std::span<const uint8_t> raw(Bytes b) {
  return {reinterpret_cast<const uint8_t*>(b.data()), b.size()};
}

std::string packed(Bytes bytes, int window_bits) {
  z_stream s{};
  if (deflateInit2(&s, 1, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    std::abort();
  }
  std::string out(deflateBound(&s, bytes.size()) + 32, '\0');
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  s.avail_in = static_cast<uInt>(bytes.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  if (deflate(&s, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

// A sink that touches all that it is promised.
class FuzzSink : public io::CsvSink {
 public:
  void* number(size_t field, size_t row) override {
    if (field > 5 || row > 0) std::abort();
    return room_;
  }
  void text(size_t, Bytes value) override { last_ = value; }
  void rewind(size_t) override {}

 private:
  char room_[16];
  std::string last_;
};

[[maybe_unused]] void fuzz_csv(Bytes b) {
  io::CsvFormat format;
  const DType dtypes[] = {float32, string_, int64, bool_, float64, int32};
  const size_t columns = 1 + static_cast<uint8_t>(b[0]) % 6;
  format.quotes = (b[0] & 8) == 0;
  format.open_ended = (b[0] & 16) == 0;
  for (size_t i = 0; i < columns; ++i) {
    format.fields.push_back({.dtype = dtypes[i], .required = (b[0] & 32) == 0});
    format.columns.push_back(static_cast<int>(i));
  }
  io::WindowReader reader(io::memory_source(raw(b.substr(1))), "fuzz",
                          kMostRecord);
  io::CsvReader rows(&format);
  FuzzSink sink;
  rows.begin(&reader, (b[0] & 64) == 0);
  for (;;) {
    try {
      if (!rows.next(&reader, 0, &sink)) break;
    } catch (const errors::InvalidArgument&) {
      if (!rows.skip_line(&reader)) break;
    }
  }
}

[[maybe_unused]] void fuzz_tfrecord(Bytes b) {
  // Plain, compressed by us, or compressed already.
  const int kind = static_cast<uint8_t>(b[0]) % 5;
  const bool zlib = kind == 2 || kind == 4;
  const auto compression = kind == 0 ? io::Compression::kNone
                           : zlib    ? io::Compression::kZlib
                                     : io::Compression::kGzip;
  const std::string ours = kind == 1 || kind == 2
                               ? packed(b.substr(1), zlib ? 15 : 31)
                               : std::string();
  const Bytes file = ours.empty() ? b.substr(1) : Bytes(ours);
  const io::TFRecordFormat records(kMostRecord);
  const io::TextLineFormat lines;
  const io::FixedLengthFormat fixed(3, 5, 2);
  for (const io::RecordFormat* format :
       {static_cast<const io::RecordFormat*>(&records),
        static_cast<const io::RecordFormat*>(&lines),
        static_cast<const io::RecordFormat*>(&fixed)}) {
    try {
      io::WindowReader reader(
          io::decompress(io::memory_source(raw(file)), compression, "fuzz"),
          "fuzz", kMostRecord + 16);
      format->begin(&reader);
      Bytes record;
      size_t sum = 0;
      while (format->next(&reader, &record)) {
        for (char c : record) sum += static_cast<uint8_t>(c);
      }
      if (sum == SIZE_MAX) std::abort();
    } catch (const errors::Error&) {
    }
  }
}

[[maybe_unused]] void fuzz_example(Bytes b) {
  const auto look = [](Bytes, Bytes bytes) {
    for (const auto kind : {io::FeatureKind::kBytes, io::FeatureKind::kFloat,
                            io::FeatureKind::kInt64}) {
      io::FeatureValues values;
      io::FeatureKind found;
      if (io::read_feature(bytes, kind, &found, &values) &&
          values.count(kind) > bytes.size()) {
        std::abort();
      }
    }
    io::walk_feature_list(bytes, [](Bytes feature) {
      io::FeatureValues values;
      io::FeatureKind found;
      io::read_feature(feature, io::FeatureKind::kInt64, &found, &values);
    });
  };
  io::walk_example(b, look);
  io::walk_sequence_example(b, look, look);
}

// A codec may ask for no more than the limit.
io::MakeRoom room_in(std::vector<uint8_t>* to) {
  return [to](const io::ImageSize& s) {
    if (s.height * s.width > kMostFuzzPixels || s.channels > 4) std::abort();
    to->resize(static_cast<size_t>(s.height * s.width * s.channels));
    return to->data();
  };
}

[[maybe_unused]] void fuzz_png(Bytes b) {
  std::vector<uint8_t> pixels;
  io::read_png(b.substr(1), static_cast<uint8_t>(b[0]) % 5, kMostFuzzPixels,
               room_in(&pixels));
}

[[maybe_unused]] void fuzz_jpeg(Bytes b) {
  std::vector<uint8_t> pixels;
  const auto o = static_cast<uint8_t>(b[0]);
  io::JpegRead read{.channels = o % 3 == 2 ? 3 : o % 3,
                    .ratio = 1 << (o / 4 % 4),
                    .recover = (o & 16) != 0,
                    .max_pixels = kMostFuzzPixels};
  if (o & 32) {
    read.y = o % 7;
    read.x = o % 5;
    read.height = 3;
    read.width = 4;
  }
  io::read_jpeg(b.substr(1), read, room_in(&pixels));
}

[[maybe_unused]] void fuzz_wav(Bytes b) {
  const io::WavFile file = io::read_wav(b);
  std::vector<float> samples(static_cast<size_t>(file.frames * file.channels));
  io::wav_samples(file, 0, file.frames * file.channels, samples.data());
}

[[maybe_unused]] void fuzz_npz(Bytes b) {
  if (b[0] % 2 == 0) {
    io::read_npz(b.substr(1), {.max_bytes = 1 << 20});
  } else {
    io::read_npy(b.substr(1));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    BERTH_FUZZ({reinterpret_cast<const char*>(data), size});
  } catch (const errors::Error& error) {
    if (error.what()[0] == 0) std::abort();
  }
  return 0;
}
