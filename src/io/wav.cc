#include "io/wav.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "berth/errors.h"

namespace berth::io {
namespace {

constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;
constexpr int kMostWavChannels = 256;

uint32_t wav_number(std::string_view s, size_t at, int bytes) {
  uint32_t v = 0;
  for (int i = 0; i < bytes; ++i) {
    v |= uint32_t{static_cast<uint8_t>(s[at + static_cast<size_t>(i)])}
         << 8 * i;
  }
  return v;
}

[[noreturn]] void not_wav(const std::string& why) {
  throw errors::InvalidArgument(
      why +
      "; expected a WAV file of 8-, 16-, 24- or 32-bit PCM, or of 32-bit "
      "floats");
}

void read_format(std::string_view chunk, WavFile* file) {
  if (chunk.size() < 16) {
    throw errors::DataLoss(fmt::format(
        "the WAV file's \"fmt \" chunk has {} bytes; expected 16 and more",
        chunk.size()));
  }
  uint32_t format = wav_number(chunk, 0, 2);
  if (format == kExtensible && chunk.size() >= 26) {
    format = wav_number(chunk, 24, 2);
  }
  file->channels = static_cast<int>(wav_number(chunk, 2, 2));
  file->sample_rate = wav_number(chunk, 4, 4);
  file->bits = static_cast<int>(wav_number(chunk, 14, 2));
  file->is_float = format == kFloat;
  const bool known = (format == kPcm && file->bits % 8 == 0 &&
                      file->bits >= 8 && file->bits <= 32) ||
                     (format == kFloat && file->bits == 32);
  if (!known || file->channels < 1 || file->channels > kMostWavChannels) {
    not_wav(fmt::format("format {} with {} bits and {} channels", format,
                        file->bits, file->channels));
  }
}

float wav_sample(const WavFile& f, size_t at) {
  switch (f.bits) {
    case 8:
      return (static_cast<float>(wav_number(f.samples, at, 1)) - 128.0f) /
             128.0f;
    case 16:
      return static_cast<float>(
                 static_cast<int16_t>(wav_number(f.samples, at, 2))) /
             32768.0f;
    case 24:
      return static_cast<float>(
                 static_cast<int32_t>(wav_number(f.samples, at, 3) << 8) >> 8) /
             8388608.0f;
    default: {
      const uint32_t bits = wav_number(f.samples, at, 4);
      if (f.is_float) return std::bit_cast<float>(bits);
      return static_cast<float>(static_cast<int32_t>(bits)) / 2147483648.0f;
    }
  }
}

void put_wav(uint64_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) *to += static_cast<char>(value >> 8 * i);
}

}  // namespace

WavFile read_wav(std::string_view bytes) {
  if (bytes.size() < 12 || !bytes.starts_with("RIFF") ||
      bytes.substr(8, 4) != "WAVE") {
    not_wav(
        fmt::format("{} bytes do not begin as a WAV file does (RIFF....WAVE)",
                    bytes.size()));
  }
  WavFile file;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const std::string_view id = bytes.substr(at, 4);
    const size_t size = wav_number(bytes, at + 4, 4);
    at += 8;
    const size_t left = bytes.size() - at;
    if (id == "data") {
      if (file.channels == 0) {
        throw errors::DataLoss(
            "the WAV file's \"data\" chunk comes before its \"fmt \" chunk");
      }
      if (size > left && size < 0xfffffff0u) {
        throw errors::DataLoss(
            fmt::format("the WAV file ends after {} of its {} bytes of samples",
                        left, size));
      }
      const size_t frame = static_cast<size_t>(file.channels * file.bits / 8);
      file.frames = static_cast<int64_t>(std::min(size, left) / frame);
      file.samples = bytes.substr(at, static_cast<size_t>(file.frames) * frame);
      return file;
    }
    if (size > left) {
      throw errors::DataLoss(fmt::format(
          "the WAV file ends at byte {}, within a chunk of {} bytes",
          bytes.size(), size));
    }
    if (id == "fmt ") read_format(bytes.substr(at, size), &file);
    at += size + size % 2;
  }
  throw errors::DataLoss("the WAV file has no \"data\" chunk");
}

void wav_samples(const WavFile& file, int64_t first, int64_t count, float* to) {
  const auto width = static_cast<size_t>(file.bits / 8);
  size_t at = static_cast<size_t>(first) * width;
  for (int64_t i = 0; i < count; ++i, at += width) to[i] = wav_sample(file, at);
}

std::string write_wav(const float* samples, int64_t frames, int channels,
                      int64_t sample_rate) {
  const int64_t count = frames * channels;
  const auto bytes = static_cast<uint64_t>(2 * count);
  std::string s = "RIFF";
  put_wav(36 + bytes, 4, &s);
  s += "WAVEfmt ";
  put_wav(16, 4, &s);
  put_wav(kPcm, 2, &s);
  put_wav(static_cast<uint64_t>(channels), 2, &s);
  put_wav(static_cast<uint64_t>(sample_rate), 4, &s);
  put_wav(static_cast<uint64_t>(sample_rate * channels * 2), 4, &s);
  put_wav(static_cast<uint64_t>(channels * 2), 2, &s);
  put_wav(16, 2, &s);
  s += "data";
  put_wav(bytes, 4, &s);
  for (int64_t i = 0; i < count; ++i) {
    const float v = samples[i] * 32767.0f;
    // NaN becomes silence.
    const float bounded =
        v > -32768.0f ? std::min(v, 32767.0f) : (v == v ? -32768.0f : 0.0f);
    const long whole = std::lrintf(bounded);
    put_wav(static_cast<uint16_t>(static_cast<int16_t>(whole)), 2, &s);
  }
  return s;
}

}  // namespace berth::io
