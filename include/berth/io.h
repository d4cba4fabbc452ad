// io: bytes of files and what they encode (tf.io, tf.audio).
//
// Contents are scalar strings unless noted; results are on the host. All act at
// once; inside a trace they throw errors::FailedPrecondition: call them in a
// dataset's map. Invalid bytes throw errors::InvalidArgument (another format),
// errors::DataLoss (damaged) or errors::ResourceExhausted (larger than the
// limits below). Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_IO_H_
#define BERTH_IO_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "berth/dtype.h"
#include "berth/shape.h"
#include "berth/site.h"
#include "berth/tensor.h"

namespace berth::io {

// --- Files -----------------------------------------------------------------

// The bytes of a regular file, at most `max_bytes` of them. `filename` is text
// or a scalar string. Throws errors::NotFound, PermissionDenied, Unavailable,
// ResourceExhausted.
Tensor read_file(const std::string& filename,
                 int64_t max_bytes = int64_t{1} << 31,
                 Site site = Site::here());
Tensor read_file(const Tensor& filename, int64_t max_bytes = int64_t{1} << 31,
                 Site site = Site::here());
// Writes the bytes to a new file that replaces it, atomically.
void write_file(const std::string& filename, const Tensor& contents,
                Site site = Site::here());
// The files that match shell patterns (*, ?, [a-z]), sorted (tf.io.gfile.glob).
std::vector<std::string> matching_files(const std::string& pattern,
                                        Site site = Site::here());

// --- TFRecord --------------------------------------------------------------

struct TFRecordOptions {
  std::string compression_type = {};  // "", "GZIP" or "ZLIB"
  int compression_level = 6;          // 0 to 9
};

// Writes a TFRecord file. Not thread-safe. The destructor closes the file, but
// ignores errors: call close().
class TFRecordWriter {
 public:
  explicit TFRecordWriter(const std::string& path,
                          const TFRecordOptions& options = {},
                          Site site = Site::here());
  TFRecordWriter(TFRecordWriter&&) noexcept;
  TFRecordWriter& operator=(TFRecordWriter&&) noexcept;
  ~TFRecordWriter();

  // Throw errors::Unavailable or ResourceExhausted (disk full), and
  // FailedPrecondition after close().
  void write(std::string_view record);
  void write(const Tensor& record);  // a scalar string
  void flush();
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// --- tf.train.Example ------------------------------------------------------

// A feature of a fixed shape: dtype float32, int64 or string_. Missing ones get
// the default; without a default they are an error.
struct FixedLenFeature {
  Shape shape;
  DType dtype = float32;
  std::optional<Tensor> default_value = std::nullopt;  // scalar or [shape]
};
// A list of any length: padded to the longest with the padding value, with its
// length (TensorFlow returns a sparse tensor).
struct VarLenFeature {
  DType dtype = float32;
  std::optional<Tensor> padding_value = std::nullopt;  // none: 0 or ""
};
// A list of any length, as concatenated values and row_splits.
struct RaggedFeature {
  DType dtype = float32;
};
// A list of parts of a fixed shape: [length, shape...], padded.
struct FixedLenSequenceFeature {
  Shape shape;
  DType dtype = float32;
  bool allow_missing = false;                          // then length 0
  std::optional<Tensor> default_value = std::nullopt;  // pads; none: 0 or ""
};
using Feature = std::variant<FixedLenFeature, VarLenFeature, RaggedFeature,
                             FixedLenSequenceFeature>;
using FeatureSpec = std::vector<std::pair<std::string, Feature>>;

struct ParsedFeatures {
  // By name: FixedLen [batch, shape...], VarLen [batch, longest], Ragged
  // [values], FixedLenSequence [batch, longest, shape...].
  std::map<std::string, Tensor> values;
  // int64 [batch], for VarLen and FixedLenSequence features.
  std::map<std::string, Tensor> lengths;
  // int64 [batch + 1], for Ragged features.
  std::map<std::string, Tensor> row_splits;

  // Throws errors::NotFound, which lists the names.
  const Tensor& operator[](const std::string& name) const;
};

// Parses serialized [batch] tf.train.Example messages. Throws
// errors::InvalidArgument naming message and feature: invalid bytes, another
// dtype or number of values, a missing feature.
ParsedFeatures parse_example(const Tensor& serialized,
                             const FeatureSpec& features,
                             Site site = Site::here());
// Parses one message, without the batch dimension.
ParsedFeatures parse_single_example(const Tensor& serialized,
                                    const FeatureSpec& features,
                                    Site site = Site::here());

struct ParsedSequence {
  ParsedFeatures context;
  ParsedFeatures feature_lists;  // with a time dimension after the batch
};
// Parses tf.train.SequenceExample messages [batch]. Features of sequences are
// FixedLenSequence (shape of a step; lengths [batch]), VarLen (padded [batch,
// time, longest], lengths [batch, time]) or Ragged (row_splits of all steps in
// order, lengths [batch]: the steps of each message).
ParsedSequence parse_sequence_example(const Tensor& serialized,
                                      const FeatureSpec& context_features,
                                      const FeatureSpec& sequence_features,
                                      Site site = Site::here());
ParsedSequence parse_single_sequence_example(
    const Tensor& serialized, const FeatureSpec& context_features,
    const FeatureSpec& sequence_features, Site site = Site::here());

// Encodes these features as a tf.train.Example, for TFRecordWriter. Floats,
// integers and strings of any shape; other dtypes are refused.
std::string serialize_example(const std::map<std::string, Tensor>& features,
                              Site site = Site::here());
// A tf.train.SequenceExample: feature lists have a time dimension first.
std::string serialize_sequence_example(
    const std::map<std::string, Tensor>& context,
    const std::map<std::string, Tensor>& feature_lists,
    Site site = Site::here());

// --- Numbers in text -------------------------------------------------------

// The bytes of strings [shape] as numbers [shape, n]; all strings have the same
// length. n is at least 1; 0 for empty strings.
Tensor decode_raw(const Tensor& input_bytes, DType out_type,
                  bool little_endian = true, Site site = Site::here());

// --- Images ----------------------------------------------------------------

// The limit of an image's pixels: small files can inflate to any size.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;

struct DecodeOptions {
  // 0: as in the file; 1: grey, 3: colour, 4: with alpha (PNG only).
  int64_t channels = 0;
  DType dtype = uint8;  // decode_image: also float32, from 0 to 1
  int64_t max_pixels = kMostPixels;
};
struct DecodePngOptions {
  int64_t channels = 0;  // 2: grey with alpha
  int64_t max_pixels = kMostPixels;
  // uint8; uint16 or int32: values from 0 to 65535, those of 8-bit files times
  // 257.
  DType dtype = uint8;
};
struct DecodeJpegOptions {
  int64_t channels = 0;  // 0, 1, 3
  // Decodes a smaller image, 1/ratio of each side (1, 2, 4, 8), which is much
  // faster than decoding and resizing.
  int64_t ratio = 1;
  bool fancy_upscaling = true;
  bool try_recover_truncated = false;  // the missing part becomes grey
  std::string dct_method = {};  // "": fast; "INTEGER_FAST", "INTEGER_ACCURATE"
  int64_t max_pixels = kMostPixels;  // of the image in the file
};

// Return uint8 [height, width, channels]. 16-bit PNGs keep their upper bytes,
// unless dtype is set otherwise.
Tensor decode_png(const Tensor& contents, const DecodePngOptions& options = {},
                  Site site = Site::here());
Tensor decode_jpeg(const Tensor& contents,
                   const DecodeJpegOptions& options = {},
                   Site site = Site::here());
// The window [height, width] at (y, x), without decoding the whole image to
// memory.
Tensor decode_and_crop_jpeg(const Tensor& contents, int64_t y, int64_t x,
                            int64_t height, int64_t width,
                            const DecodeJpegOptions& options = {},
                            Site site = Site::here());
// PNG or JPEG, by the first bytes.
Tensor decode_image(const Tensor& contents, const DecodeOptions& options = {},
                    Site site = Site::here());
// [height, width, channels] from a JPEG's header, without decoding.
Shape extract_jpeg_shape(const Tensor& contents, Site site = Site::here());
bool is_jpeg(const Tensor& contents, Site site = Site::here());

// uint8 [height, width, 1 to 4] to a scalar string. compression: 0 to 9, -1 the
// library's default.
Tensor encode_png(const Tensor& image, int compression = -1,
                  Site site = Site::here());
struct EncodeJpegOptions {
  int quality = 95;  // 0 to 100
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
};
// uint8 [height, width, 1 or 3] to a scalar string.
Tensor encode_jpeg(const Tensor& image, const EncodeJpegOptions& options = {},
                   Site site = Site::here());

}  // namespace berth::io

namespace berth::audio {

struct DecodedWav {
  Tensor audio;             // float32 [samples, channels], -1 to 1
  int64_t sample_rate = 0;  // per second
};
struct DecodeWavOptions {
  int64_t desired_channels = -1;  // more or fewer than the file's: error, but
                                  // one channel may become two
  int64_t desired_samples = -1;   // truncated, or padded with zeros
};
// 8-, 16-, 24- and 32-bit PCM and 32-bit float WAV files.
DecodedWav decode_wav(const Tensor& contents,
                      const DecodeWavOptions& options = {},
                      Site site = Site::here());
// float32 [samples, channels] as a 16-bit WAV file.
Tensor encode_wav(const Tensor& audio, int64_t sample_rate,
                  Site site = Site::here());

}  // namespace berth::audio

#endif  // BERTH_IO_H_
