#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>

#include "base/errors_testing.h"
#include "berth/errors.h"
#include "berth/io.h"
#include "berth/ops/array.h"
#include "tensor/string_tensor.h"

namespace berth::io {
namespace {

using Pixels = std::vector<int>;

std::string big32(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16),
          static_cast<char>(v >> 8), static_cast<char>(v)};
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string all = type + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(all.data()),
                         static_cast<uInt>(all.size()));
  return big32(static_cast<uint32_t>(data.size())) + all +
         big32(static_cast<uint32_t>(crc));
}

std::string zipped(const std::string& raw) {
  uLongf n = compressBound(raw.size());
  std::string out(n, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &n,
           reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  return out.substr(0, n);
}

// A PNG by the standard's text: rows begin with filter 0.
std::string png(uint32_t width, uint32_t height, int depth, int type,
                const std::string& rows, const std::string& extra = "") {
  const std::string head =
      big32(width) + big32(height) +
      std::string{static_cast<char>(depth), static_cast<char>(type), 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", head) + extra +
         chunk("IDAT", zipped(rows)) + chunk("IEND", "");
}

Pixels pixels(const Tensor& t) { return t.to_vector<int>(); }

TEST(DecodePng, ReadsEveryColourType) {
  using namespace std::string_literals;
  const std::string rgb = png(2, 1, 8, 2, "\0\1\2\3\4\5\6"s);
  const Tensor t = decode_png(constant(rgb));
  EXPECT_EQ(t.shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(pixels(t), (Pixels{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pixels(decode_png(constant(rgb), {.channels = 4})),
            (Pixels{1, 2, 3, 255, 4, 5, 6, 255}));
  const std::string grey = png(2, 2, 8, 0, "\0\x0a\x14\0\x1e\x28"s);
  EXPECT_EQ(pixels(decode_png(constant(grey))), (Pixels{10, 20, 30, 40}));
  EXPECT_EQ(pixels(decode_png(constant(grey), {.channels = 3})),
            (Pixels{10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40}));
  // Two bits: 0, 1, 2, 3 are 0, 85, 170, 255.
  EXPECT_EQ(pixels(decode_png(constant(png(4, 1, 2, 0, "\0\x1b"s)))),
            (Pixels{0, 85, 170, 255}));
  // 16 bits keep their upper byte.
  EXPECT_EQ(pixels(decode_png(constant(png(1, 1, 16, 0, "\0\xab\xcd"s)))),
            (Pixels{0xab}));
  const std::string palette = chunk("PLTE", "\1\2\3\4\5\6");
  EXPECT_EQ(pixels(decode_png(constant(png(2, 1, 8, 3, "\0\1\0"s, palette)))),
            (Pixels{4, 5, 6, 1, 2, 3}));
  const std::string clear = palette + chunk("tRNS", "\x07");
  EXPECT_EQ(pixels(decode_png(constant(png(2, 1, 8, 3, "\0\1\0"s, clear)))),
            (Pixels{4, 5, 6, 255, 1, 2, 3, 7}));
  EXPECT_EQ(pixels(decode_png(constant(png(2, 1, 8, 3, "\0\1\0"s, clear)),
                              {.channels = 3})),
            (Pixels{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(pixels(decode_png(constant(png(1, 1, 8, 6, "\0\1\2\3\4"s)))),
            (Pixels{1, 2, 3, 4}));
  EXPECT_EQ(pixels(decode_png(constant(png(1, 1, 8, 6, "\0\1\2\3\4"s)),
                              {.channels = 3})),
            (Pixels{1, 2, 3}));
}

TEST(DecodePng, GivesSixteenBitsAsInt32) {
  using namespace std::string_literals;
  const DecodePngOptions wide{.dtype = int32};
  const auto values = [&](const std::string& bytes, const DecodePngOptions& o) {
    const Tensor t = decode_png(constant(bytes), o);
    EXPECT_EQ(t.dtype(), int32);
    return t.to_vector<int>();
  };
  EXPECT_EQ(values(png(1, 1, 16, 0, "\0\xab\xcd"s), wide),
            (std::vector<int>{0xabcd}));
  EXPECT_EQ(values(png(1, 1, 16, 2, "\0\0\x01\xff\xff\x80\0"s), wide),
            (std::vector<int>{1, 0xffff, 0x8000}));
  EXPECT_EQ(
      values(png(1, 1, 16, 0, "\0\xab\xcd"s), {.channels = 4, .dtype = int32}),
      (std::vector<int>{0xabcd, 0xabcd, 0xabcd, 0xffff}));
  // Of 8 bits: times 257.
  EXPECT_EQ(values(png(1, 1, 8, 0, "\0\x12"s), wide),
            (std::vector<int>{0x1212}));
  EXPECT_EQ(values(png(1, 1, 8, 0, "\0\x12"s), {.channels = 2, .dtype = int32}),
            (std::vector<int>{0x1212, 0xffff}));
  EXPECT_THROW(
      decode_png(constant(png(1, 1, 8, 0, "\0\x12"s)), {.dtype = float32}),
      errors::InvalidArgument);
}

TEST(DecodePng, RefusesDamageAndBombs) {
  const std::string good = png(3, 1, 8, 0, std::string("\0\1\2\3", 4));
  for (size_t n = 0; n < good.size() - 12; ++n) {
    EXPECT_THROW(decode_png(constant(good.substr(0, n))), errors::Error) << n;
  }
  std::string bad = good;
  bad[45] ^= 1;
  EXPECT_THROW(decode_png(constant(bad)), errors::DataLoss);
  const std::string bomb = png(60000, 60000, 8, 2, "");
  EXPECT_TRUE(says(message_of<errors::ResourceExhausted>(
                       [&] { decode_png(constant(bomb)); }),
                   "60000 x 60000 pixels; expected at most"));
  EXPECT_THROW(decode_png(constant(png(0, 1, 8, 0, ""))), errors::DataLoss);
  EXPECT_THROW(decode_png(constant("GIF89a")), errors::InvalidArgument);
  EXPECT_THROW(decode_png(constant(good), {.channels = 5}),
               errors::InvalidArgument);
  const std::string where =
      message_of<errors::InvalidArgument>([&] { decode_png(constant("x")); });
  EXPECT_TRUE(says(where, "decode_png (image_codec_test.cc:"));
}

TEST(EncodePng, KeepsEveryByte) {
  for (int64_t channels = 1; channels <= 4; ++channels) {
    std::vector<uint8_t> bytes(static_cast<size_t>(5 * 7 * channels));
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<uint8_t>(i * 31);
    }
    const Tensor image = constant(bytes, {5, 7, channels});
    const Tensor back = decode_png(encode_png(image, 9));
    EXPECT_EQ(back.shape(), image.shape());
    EXPECT_EQ(pixels(back), pixels(image));
  }
  EXPECT_THROW(encode_png(constant(1.f)), errors::InvalidArgument);
}

// A smooth picture, which JPEG keeps nearly as it is.
Tensor smooth(int64_t height, int64_t width, int64_t channels) {
  std::vector<uint8_t> bytes;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        bytes.push_back(static_cast<uint8_t>(
            128 + 60 * std::sin(0.05 * static_cast<double>(x + 20 * c)) +
            50 * std::cos(0.07 * static_cast<double>(y))));
      }
    }
  }
  return constant(bytes, {height, width, channels});
}

int largest_difference(const Tensor& a, const Tensor& b) {
  const Pixels x = pixels(a), y = pixels(b);
  int most = x.size() == y.size() ? 0 : 1000;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    most = std::max(most, std::abs(x[i] - y[i]));
  }
  return most;
}

TEST(DecodeJpeg, ReadsWhatWasWritten) {
  for (int64_t channels : {1, 3}) {
    const Tensor image = smooth(50, 70, channels);
    const Tensor jpeg = encode_jpeg(image, {.quality = 98});
    EXPECT_TRUE(is_jpeg(jpeg));
    EXPECT_EQ(extract_jpeg_shape(jpeg), image.shape());
    const Tensor exact = decode_jpeg(jpeg, {.dct_method = "INTEGER_ACCURATE"});
    EXPECT_LE(largest_difference(exact, image), 4);
    EXPECT_LE(largest_difference(decode_jpeg(jpeg), image), 6);
    EXPECT_LE(largest_difference(decode_image(jpeg), image), 6);
    EXPECT_EQ(pixels(decode_png(jpeg)), pixels(decode_jpeg(jpeg)));
    EXPECT_EQ(pixels(decode_jpeg(encode_png(image))), pixels(image));
    const Tensor progressive = encode_jpeg(
        image, {.quality = 98, .progressive = true, .optimize_size = true});
    EXPECT_LE(largest_difference(decode_jpeg(progressive), image), 6);
  }
  const Tensor grey = encode_jpeg(smooth(16, 16, 1));
  EXPECT_EQ(decode_jpeg(grey, {.channels = 3}).shape(), (Shape{16, 16, 3}));
  const Tensor colour = encode_jpeg(smooth(16, 16, 3));
  EXPECT_EQ(decode_jpeg(colour, {.channels = 1}).shape(), (Shape{16, 16, 1}));
}

TEST(DecodeJpeg, ScalesToTheMeanOfItsBlocks) {
  const Tensor image = smooth(64, 96, 3);
  const Tensor jpeg =
      encode_jpeg(image, {.quality = 98, .chroma_downsampling = false});
  const Pixels all = pixels(image);
  for (int64_t ratio : {2, 4, 8}) {
    const Tensor small = decode_jpeg(jpeg, {.ratio = ratio});
    ASSERT_EQ(small.shape(), (Shape{64 / ratio, 96 / ratio, 3}));
    const Pixels got = pixels(small);
    for (int64_t i = 0; i < small.num_elements(); ++i) {
      const int64_t y = i / (96 / ratio * 3), x = i / 3 % (96 / ratio);
      double sum = 0;
      for (int64_t k = 0; k < ratio * ratio; ++k) {
        sum += all[static_cast<size_t>(
            ((y * ratio + k / ratio) * 96 + x * ratio + k % ratio) * 3 +
            i % 3)];
      }
      EXPECT_NEAR(got[static_cast<size_t>(i)],
                  sum / static_cast<double>(ratio * ratio), 4);
    }
  }
}

TEST(DecodeJpeg, CropsAsIfAllHadBeenDecoded) {
  const Tensor jpeg = encode_jpeg(smooth(90, 130, 3));
  const Tensor all = decode_jpeg(jpeg);
  const int64_t windows[][4] = {
      {0, 0, 90, 130}, {7, 33, 40, 50}, {89, 129, 1, 1}, {16, 64, 20, 66}};
  for (const auto& w : windows) {
    const Tensor part = decode_and_crop_jpeg(jpeg, w[0], w[1], w[2], w[3]);
    EXPECT_LE(
        largest_difference(part, slice(all, {w[0], w[1], 0}, {w[2], w[3], 3})),
        1);
  }
  EXPECT_THROW(decode_and_crop_jpeg(jpeg, 0, 0, 91, 1),
               errors::InvalidArgument);
  EXPECT_THROW(decode_and_crop_jpeg(jpeg, 0, -1, 9, 1),
               errors::InvalidArgument);
  EXPECT_THROW(decode_and_crop_jpeg(jpeg, 0, 0, 0, 0), errors::InvalidArgument);
}

TEST(DecodeJpeg, RefusesDamageAndLimits) {
  const Tensor jpeg = encode_jpeg(smooth(64, 64, 3));
  const std::string good = strings_of(jpeg)[0];
  for (size_t n :
       {size_t{0}, size_t{2}, size_t{20}, good.size() / 2, good.size() - 10}) {
    EXPECT_THROW(decode_jpeg(constant(good.substr(0, n))), errors::Error) << n;
  }
  const Tensor rest = decode_jpeg(constant(good.substr(0, good.size() / 2)),
                                  {.try_recover_truncated = true});
  EXPECT_EQ(rest.shape(), (Shape{64, 64, 3}));
  EXPECT_TRUE(says(message_of<errors::ResourceExhausted>(
                       [&] { decode_jpeg(jpeg, {.max_pixels = 4095}); }),
                   "64 x 64 pixels; expected at most 4095"));
  EXPECT_THROW(decode_jpeg(jpeg, {.ratio = 3}), errors::InvalidArgument);
  EXPECT_THROW(decode_jpeg(jpeg, {.channels = 4}), errors::InvalidArgument);
  EXPECT_THROW(decode_jpeg(constant({"a", "b"})), errors::InvalidArgument);
  EXPECT_THROW(decode_image(constant("BM")), errors::InvalidArgument);
}

TEST(DecodeImage, GivesFloatsFromZeroToOne) {
  const Tensor image = constant(std::vector<uint8_t>{0, 51, 255}, {1, 3, 1});
  const Tensor t = decode_image(encode_png(image), {.dtype = float32});
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{0, 0.2f, 1}));
}

// A header as the format's description has it.
std::string wav(int format, int channels, int bits, const std::string& data) {
  const auto little = [](uint32_t v, int n) {
    std::string s;
    for (int i = 0; i < n; ++i) s += static_cast<char>(v >> 8 * i);
    return s;
  };
  const auto number = [](int v) { return static_cast<uint32_t>(v); };
  const std::string fmt = little(number(format), 2) +
                          little(number(channels), 2) + little(8000, 4) +
                          little(0, 4) + little(0, 2) + little(number(bits), 2);
  const std::string odd = "junk" + little(3, 4) + "abc" + std::string(1, '\0');
  return "RIFF" + little(0, 4) + "WAVE" + odd + "fmt " + little(16, 4) + fmt +
         "data" + little(static_cast<uint32_t>(data.size()), 4) + data;
}

TEST(DecodeWav, ReadsEveryWidth) {
  using namespace std::string_literals;
  const auto read = [](const std::string& file,
                       const audio::DecodeWavOptions& o = {}) {
    return audio::decode_wav(constant(file), o).audio.to_vector<float>();
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(read(wav(1, 1, 8, "\x80\x00\xc0"s)), (Floats{0, -1, 0.5f}));
  const std::string two = wav(1, 2, 16, "\0\x40\0\x80\0\0\0\xc0"s);
  const audio::DecodedWav d = audio::decode_wav(constant(two));
  EXPECT_EQ(d.sample_rate, 8000);
  EXPECT_EQ(d.audio.shape(), (Shape{2, 2}));
  EXPECT_EQ(d.audio.to_vector<float>(), (Floats{0.5f, -1, 0, -0.5f}));
  EXPECT_EQ(read(wav(1, 1, 24, "\0\0\x40\0\0\x80"s)), (Floats{0.5f, -1}));
  EXPECT_EQ(read(wav(1, 1, 32, "\0\0\0\xc0"s)), (Floats{-0.5f}));
  EXPECT_EQ(read(wav(3, 1, 32, "\0\0\x80\x3e"s)), (Floats{0.25f}));
  EXPECT_EQ(read(two, {.desired_samples = 1}), (Floats{0.5f, -1}));
  EXPECT_EQ(read(two, {.desired_samples = 3}),
            (Floats{0.5f, -1, 0, -0.5f, 0, 0}));
  EXPECT_EQ(read(wav(1, 1, 8, "\xc0"s), {.desired_channels = 2}),
            (Floats{0.5f, 0.5f}));
}

TEST(DecodeWav, RefusesWhatIsNone) {
  const std::string good = wav(1, 1, 16, "abcdef");
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_THROW(audio::decode_wav(constant(good.substr(0, n))), errors::Error)
        << n;
  }
  const auto problem = [](const std::string& file,
                          const audio::DecodeWavOptions& o = {}) {
    return message_of<errors::InvalidArgument>(
        [&] { audio::decode_wav(constant(file), o); });
  };
  EXPECT_TRUE(says(problem(wav(2, 1, 16, "ab")), "format 2"));
  EXPECT_TRUE(says(problem(wav(1, 1, 12, "ab")), "12 bits"));
  EXPECT_TRUE(says(problem(wav(1, 0, 16, "ab")), "0 channels"));
  EXPECT_TRUE(says(problem(good, {.desired_channels = 3}), "has 1 channels"));
  EXPECT_TRUE(says(problem(good, {.desired_samples = -2}), "desired_samples"));
}

TEST(EncodeWav, IsReadBack) {
  const Tensor audio =
      constant(std::vector<float>{0, 0.5f, -0.25f, 2, -2, 1}, {3, 2});
  const audio::DecodedWav d =
      audio::decode_wav(audio::encode_wav(audio, 44100));
  EXPECT_EQ(d.sample_rate, 44100);
  EXPECT_EQ(d.audio.shape(), (Shape{3, 2}));
  const std::vector<float> wanted{0, 0.5f, -0.25f, 1, -1, 1};
  const auto got = d.audio.to_vector<float>();
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(got[i], wanted[i], 1e-4);
  EXPECT_THROW(audio::encode_wav(constant({1.f}), 1), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::io
