// decode_wav and encode_wav.

#include <fmt/format.h>

#include <algorithm>

#include "berth/io.h"
#include "data/row_source.h"
#include "io/text_input.h"
#include "io/wav.h"
#include "tensor/tensor_impl.h"

namespace berth::audio {

namespace {

constexpr int64_t kMostSamples = int64_t{1} << 31;

}  // namespace

DecodedWav decode_wav(const Tensor& contents, const DecodeWavOptions& o,
                      Site site) {
  const std::string_view bytes = io::scalar_text(contents, "decode_wav", site);
  return io::named_call("decode_wav", site, [&]() -> DecodedWav {
    const io::WavFile file = io::read_wav(bytes);
    const int64_t channels =
        o.desired_channels == -1 ? file.channels : o.desired_channels;
    const bool doubled = file.channels == 1 && channels == 2;
    if (channels != file.channels && !doubled) {
      throw errors::InvalidArgument(
          fmt::format("the file has {} channels, desired_channels is {}; "
                      "expected as many, or 2 of one",
                      file.channels, channels));
    }
    const int64_t frames =
        o.desired_samples == -1 ? file.frames : o.desired_samples;
    if (frames < 0 || frames > kMostSamples / channels) {
      throw errors::InvalidArgument(
          fmt::format("desired_samples is {}; expected -1 (the file's) to {}",
                      frames, kMostSamples / channels));
    }
    DecodedWav out{data::make_batch(float32, Shape{frames, channels}),
                   file.sample_rate};
    auto* to = reinterpret_cast<float*>(out.audio.impl()->data());
    const int64_t there = std::min(frames, file.frames);
    if (doubled) {
      for (int64_t i = 0; i < there; ++i) {
        io::wav_samples(file, i, 1, to + 2 * i);
        to[2 * i + 1] = to[2 * i];
      }
    } else {
      io::wav_samples(file, 0, there * channels, to);
    }
    std::fill(to + there * channels, to + frames * channels, 0.0f);
    return out;
  });
}

Tensor encode_wav(const Tensor& audio, int64_t sample_rate, Site site) {
  return io::named_call("encode_wav", site, [&] {
    io::check_values(audio, "audio");
    const Shape& s = audio.shape();
    if (audio.dtype() != float32 || s.rank() != 2 || s[1] < 1 || s[1] > 256 ||
        audio.num_elements() > int64_t{1} << 30 || sample_rate < 1 ||
        sample_rate > INT32_MAX) {
      throw errors::InvalidArgument(fmt::format(
          "audio is {} at {} samples per second; expected float32 [samples, "
          "channels] and a rate above 0",
          audio.spec().str(), sample_rate));
    }
    const auto samples = audio.to_vector<float>();
    return io::text_tensor(io::write_wav(samples.data(), s[0],
                                         static_cast<int>(s[1]), sample_rate));
  });
}

}  // namespace berth::audio
