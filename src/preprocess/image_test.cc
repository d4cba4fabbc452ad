#include "berth/image.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/errors_testing.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "preprocess/image_cases_testing.h"
#include "preprocess/pixel_colours.h"

namespace berth::image {
namespace {

// The rule of testdata/make_cases.py.
Tensor bytes(int64_t height, int64_t width, int64_t channels) {
  std::vector<uint8_t> all;
  for (int64_t i = 0; i < height * width * channels; ++i) {
    all.push_back(static_cast<uint8_t>((i * i * 7 + i * 13) % 256));
  }
  return constant(all, {height, width, channels});
}
Tensor floats(int64_t height, int64_t width, int64_t channels) {
  return math::cast(bytes(height, width, channels), float32) / constant(255.0f);
}

void expect_near(const Tensor& got, const std::string& name, double tolerance) {
  const ImageCase& wanted = image_cases().at(name);
  ASSERT_EQ(got.shape(), Shape(wanted.shape)) << name;
  const auto values = got.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], wanted.values[i], tolerance) << name << ", " << i;
  }
}

struct ResizeCase {
  std::string name, method;
  bool antialias;
  Size size;
};

// The cases of resize, by their names.
std::vector<ResizeCase> resize_cases() {
  std::vector<ResizeCase> all;
  for (const auto& [name, unused] : image_cases()) {
    char method[32];
    int antialias, height, width;
    if (std::sscanf(name.c_str(), "resize %31s %d %d %d", method, &antialias,
                    &height, &width) == 4) {
      all.push_back({name, method, antialias != 0, {height, width}});
    }
  }
  return all;
}

TEST(Resize, ComputesWhatTensorFlowDoes) {
  ASSERT_GT(resize_cases().size(), 15u);
  for (const ResizeCase& c : resize_cases()) {
    const ResizeOptions o{.method = c.method, .antialias = c.antialias};
    // TensorFlow rounds the weights of bicubic to 1/1024.
    const double tolerance = c.method == "bicubic" && !c.antialias ? 0.4 : 2e-3;
    expect_near(resize(bytes(6, 7, 3), c.size, o), c.name, tolerance);
    const Tensor x = math::cast(bytes(6, 7, 3), float32);
    expect_near(resize(x, c.size, o), c.name, tolerance);
  }
  expect_near(resize(bytes(6, 7, 3), {4, 4}, {.preserve_aspect_ratio = true}),
              "resize_aspect", 1e-3);
  expect_near(resize_with_pad(bytes(6, 7, 3), 4, 9), "resize_with_pad", 1e-3);
}

TEST(Resize, IsTheSameInATrace) {
  for (const ResizeCase& c : resize_cases()) {
    const ResizeOptions o{.method = c.method, .antialias = c.antialias};
    const Tensor x = math::cast(bytes(6, 7, 3), float32);
    const auto f =
        function([&](const Tensor& t) { return resize(t, c.size, o); });
    const auto eager = resize(x, c.size, o).to_vector<float>();
    const auto traced = f(x).to_vector<float>();
    ASSERT_EQ(eager.size(), traced.size());
    for (size_t i = 0; i < eager.size(); ++i) {
      EXPECT_NEAR(eager[i], traced[i], 1e-3) << c.name;
    }
  }
}

TEST(Resize, TakesBatchesAndKeepsDtypesOfNearest) {
  const Tensor one = bytes(6, 7, 3);
  const Tensor two = stack({one, flip_up_down(one)});
  const Tensor small = resize(two, {3, 4});
  EXPECT_EQ(small.shape(), (Shape{2, 3, 4, 3}));
  EXPECT_EQ(small[{0}].to_vector<float>(),
            resize(one, {3, 4}).to_vector<float>());
  EXPECT_EQ(small[{1}].to_vector<float>(),
            resize(flip_up_down(one), {3, 4}).to_vector<float>());
  EXPECT_EQ(resize(one, {3, 4}, {.method = "nearest"}).dtype(), uint8);
  EXPECT_EQ(resize(one, {6, 7}).to_vector<float>(), one.to_vector<float>());
  const Tensor grey = bytes(5, 5, 1);
  EXPECT_EQ(resize(grey, {2, 2}).shape(), (Shape{2, 2, 1}));
  EXPECT_EQ(resize(bytes(5, 5, 7), {2, 9}).shape(), (Shape{2, 9, 7}));
}

TEST(Resize, HasGradients) {
  const Tensor x = math::cast(bytes(4, 4, 1), float32);
  GradientTape tape;
  tape.watch(x);
  const Tensor sum = math::reduce_sum(resize(x, {2, 2}));
  // Each of 2 x 2 is the mean of its 4 pixels.
  EXPECT_EQ(tape.gradient(sum, x).to_vector<float>(),
            std::vector<float>(16, 0.25f));
}

TEST(Resize, RefusesWhatDoesNotFit) {
  const Tensor x = bytes(4, 4, 3);
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>([&] {
                     resize(x, {2, 2}, {.method = "cubic"});
                   }),
                   "expected bilinear"));
  EXPECT_THROW(resize(x, {0, 2}), errors::InvalidArgument);
  EXPECT_THROW(resize(constant(1.f), {2, 2}), errors::InvalidArgument);
  EXPECT_THROW(resize(constant("x"), {2, 2}), errors::InvalidArgument);
  EXPECT_THROW(resize(Tensor(), {2, 2}), errors::InvalidArgument);
}

TEST(Image, ComputesWhatTensorFlowDoes) {
  const Tensor b = bytes(4, 5, 3), x = floats(4, 5, 3);
  expect_near(resize_with_crop_or_pad(b, 3, 8), "resize_with_crop_or_pad", 0);
  expect_near(central_crop(bytes(7, 9, 1), 0.5), "central_crop", 0);
  for (int64_t k : {1, 2, 3}) {
    expect_near(rot90(b, k), "rot90 " + std::to_string(k), 0);
    expect_near(rot90(b, k - 8), "rot90 " + std::to_string(k), 0);
  }
  expect_near(flip_left_right(b), "flip_left_right", 0);
  expect_near(flip_up_down(b), "flip_up_down", 0);
  constexpr double kExact = 2e-6;
  expect_near(adjust_brightness(x, 0.2), "adjust_brightness", kExact);
  expect_near(adjust_brightness(b, 0.2), "adjust_brightness bytes", 0);
  expect_near(adjust_contrast(x, 1.7), "adjust_contrast", kExact);
  expect_near(adjust_contrast(b, 0.6), "adjust_contrast bytes", 1);
  expect_near(adjust_gamma(x, 2.2, 0.9), "adjust_gamma", kExact);
  expect_near(adjust_hue(x, 0.3), "adjust_hue", kExact);
  expect_near(adjust_hue(b, -0.4), "adjust_hue bytes", 1);
  expect_near(adjust_saturation(x, 0.4), "adjust_saturation", kExact);
  expect_near(adjust_saturation(b, 1.8), "adjust_saturation bytes", 1);
  expect_near(rgb_to_grayscale(x), "rgb_to_grayscale", kExact);
  expect_near(rgb_to_grayscale(b), "rgb_to_grayscale bytes", 1);
  expect_near(rgb_to_hsv(x), "rgb_to_hsv", kExact);
  expect_near(hsv_to_rgb(x), "hsv_to_rgb", kExact);
  expect_near(rgb_to_yuv(x), "rgb_to_yuv", kExact);
  expect_near(yuv_to_rgb(x), "yuv_to_rgb", kExact);
  expect_near(rgb_to_yiq(x), "rgb_to_yiq", kExact);
  expect_near(yiq_to_rgb(x), "yiq_to_rgb", kExact);
  expect_near(per_image_standardization(b), "per_image_standardization", 1e-5);
  expect_near(convert_image_dtype(b, float32), "to_float", kExact);
  expect_near(convert_image_dtype(x * 1.5 - 0.2, uint8, true), "to_bytes", 0);
  // Multiples of 2^23, of which the table has seven digits.
  expect_near(convert_image_dtype(b, int32), "to_int32", 1e3);
}

TEST(Image, TurnsColoursInATraceAsAtOnce) {
  const Tensor x = floats(4, 5, 3);
  const auto f = function([](const Tensor& t) {
    return adjust_saturation(adjust_hue(t, 0.3), 0.4);
  });
  const auto traced = f(x).to_vector<float>();
  const auto eager =
      adjust_saturation(adjust_hue(x, 0.3), 0.4).to_vector<float>();
  for (size_t i = 0; i < eager.size(); ++i) {
    EXPECT_NEAR(traced[i], eager[i], 2e-6);
  }
}

TEST(Image, CropsAndPads) {
  const Tensor b = bytes(4, 5, 1);
  const Tensor part = crop_to_bounding_box(b, 1, 2, 2, 3);
  const Tensor cut = b[{slice(1, 3), slice(2, 5), slice()}];
  EXPECT_EQ(part.to_vector<int>(), cut.to_vector<int>());
  const Tensor back = pad_to_bounding_box(part, 1, 2, 4, 5);
  EXPECT_EQ(math::reduce_sum(math::cast(back, int32)).item<int>(),
            math::reduce_sum(math::cast(part, int32)).item<int>());
  EXPECT_EQ(crop_to_bounding_box(back, 1, 2, 2, 3).to_vector<int>(),
            part.to_vector<int>());
  EXPECT_THROW(crop_to_bounding_box(b, 3, 0, 2, 1), errors::InvalidArgument);
  EXPECT_THROW(pad_to_bounding_box(b, 1, 0, 4, 5), errors::InvalidArgument);
  EXPECT_THROW(central_crop(b, 0), errors::InvalidArgument);
  EXPECT_EQ(image::transpose(stack({b, b})).shape(), (Shape{2, 5, 4, 1}));
}

TEST(Image, RotatesByQuartersAsRot90) {
  const Tensor b = bytes(5, 5, 3);
  for (int64_t k : {1, 2, 3}) {
    const double angle = static_cast<double>(k) * std::numbers::pi / 2;
    const Tensor wanted = rot90(b, k);
    EXPECT_EQ(rotate(b, angle, {.interpolation = "nearest"}).to_vector<int>(),
              wanted.to_vector<int>());
    const auto smooth = rotate(b, angle).to_vector<float>();
    const auto exact = wanted.to_vector<float>();
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_NEAR(smooth[i], exact[i], 1e-3);
    }
  }
}

TEST(Image, FillsWhatRotationUncovers) {
  const Tensor ones = berth::ones({7, 7, 1});
  const double eighth = std::numbers::pi / 4;
  const auto corner = [&](const RotateOptions& o) {
    return rotate(ones, eighth, o).to_vector<float>()[0];
  };
  EXPECT_EQ(corner({}), 0);
  EXPECT_EQ(corner({.fill_value = 0.5}), 0.5f);
  for (const char* mode : {"nearest", "reflect", "wrap"}) {
    EXPECT_NEAR(corner({.fill_mode = mode}), 1, 1e-6) << mode;
  }
  EXPECT_THROW(corner({.fill_mode = "mirror"}), errors::InvalidArgument);
  EXPECT_THROW(corner({.interpolation = "cubic"}), errors::InvalidArgument);
}

TEST(RandomImage, IsAFunctionOfTheSeed) {
  const Tensor x = floats(6, 6, 3);
  const random::StatelessSeed seed{3, 4};
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.to_vector<float>() == b.to_vector<float>();
  };
  EXPECT_TRUE(same(stateless_random_brightness(x, 0.3, seed),
                   stateless_random_brightness(x, 0.3, seed)));
  EXPECT_FALSE(same(stateless_random_brightness(x, 0.3, seed),
                    stateless_random_brightness(x, 0.3, {3, 5})));
  EXPECT_FALSE(same(stateless_random_contrast(x, 0.2, 0.8, seed), x));
  EXPECT_FALSE(same(stateless_random_hue(x, 0.5, seed), x));
  EXPECT_FALSE(same(stateless_random_saturation(x, 0.2, 0.8, seed), x));
  random::set_seed(5);
  const Tensor a = random_brightness(x, 0.3);
  random::set_seed(5);
  EXPECT_TRUE(same(a, random_brightness(x, 0.3)));
  EXPECT_EQ(random_contrast(x, 0.5, 0.5).to_vector<float>(),
            adjust_contrast(x, 0.5).to_vector<float>());
  EXPECT_EQ(random_rotation(x, 0.1).shape(), x.shape());
  EXPECT_EQ(random_jpeg_quality(x, 50, 90).shape(), x.shape());
  EXPECT_THROW(random_hue(x, 0.7), errors::InvalidArgument);
  EXPECT_THROW(random_contrast(x, -1, 1), errors::InvalidArgument);
}

TEST(RandomImage, FlipsEachPictureOrNot) {
  random::set_seed(1);
  const Tensor one = bytes(2, 3, 1);
  const Tensor many = tile(expand_dims(one, 0), {200, 1, 1, 1});
  const auto first = random_flip_left_right(many).to_vector<int>();
  const auto plain = one.to_vector<int>();
  const auto turned = flip_left_right(one).to_vector<int>();
  int flipped = 0;
  for (size_t i = 0; i < 200; ++i) {
    const std::vector<int> got(first.begin() + static_cast<long>(6 * i),
                               first.begin() + static_cast<long>(6 * i + 6));
    EXPECT_TRUE(got == plain || got == turned);
    flipped += got == turned;
  }
  // 100 expected, with a standard deviation of 7.
  EXPECT_GT(flipped, 60);
  EXPECT_LT(flipped, 140);
  EXPECT_EQ(random_flip_up_down(one).shape(), one.shape());
}

TEST(RandomImage, StatelessFlipsFollowTheirSeed) {
  const Tensor x = bytes(2, 3, 1);
  const auto plain = x.to_vector<int>();
  const auto sideways = flip_left_right(x).to_vector<int>();
  const auto upside_down = flip_up_down(x).to_vector<int>();
  int turned = 0, over = 0;
  for (int64_t i = 0; i < 64; ++i) {
    const random::StatelessSeed seed{i, 7};
    const auto a = stateless_random_flip_left_right(x, seed).to_vector<int>();
    const auto b = stateless_random_flip_up_down(x, seed).to_vector<int>();
    EXPECT_EQ(a, stateless_random_flip_left_right(x, seed).to_vector<int>());
    EXPECT_TRUE(a == plain || a == sideways);
    EXPECT_TRUE(b == plain || b == upside_down);
    turned += a == sideways;
    over += b == upside_down;
  }
  // 32 expected, with a standard deviation of 4.
  EXPECT_NEAR(turned, 32, 16);
  EXPECT_NEAR(over, 32, 16);
}

TEST(Image, GreyBecomesThreeEqualChannels) {
  const Tensor grey = reshape(constant({1.f, 2.f}), {1, 2, 1});
  EXPECT_EQ(grayscale_to_rgb(grey).to_vector<float>(),
            (std::vector<float>{1, 1, 1, 2, 2, 2}));
  EXPECT_THROW(grayscale_to_rgb(ones({2, 2, 3})), errors::InvalidArgument);
}

TEST(Image, LowerJpegQualityLosesMore) {
  const Tensor even = zeros({16, 16, 3}) + 0.5;
  const Tensor rough = floats(16, 16, 3);
  const auto error = [](const Tensor& x, int quality) {
    const Tensor y = adjust_jpeg_quality(x, quality);
    EXPECT_EQ(y.dtype(), x.dtype());
    EXPECT_EQ(y.shape(), x.shape());
    return math::reduce_mean(math::abs(y - x)).item<float>();
  };
  EXPECT_LT(error(even, 5), 0.02f);
  EXPECT_LT(error(rough, 100), error(rough, 50));
  EXPECT_LT(error(rough, 50), error(rough, 5));
}

TEST(RandomImage, CropsWithinTheImageEverywhere) {
  random::set_seed(2);
  const Tensor x = reshape(range(0, 5 * 4), {5, 4, 1});
  std::vector<int> seen(20);
  for (int i = 0; i < 200; ++i) {
    const Tensor part = random_crop(x, {2, 3, 1});
    ASSERT_EQ(part.shape(), (Shape{2, 3, 1}));
    const auto v = part.to_vector<int>();
    EXPECT_EQ(v[5] - v[0], 4 + 2);
    ++seen[static_cast<size_t>(v[0])];
  }
  for (int y = 0; y < 5; ++y) {
    for (int x0 = 0; x0 < 4; ++x0) {
      EXPECT_EQ(seen[static_cast<size_t>(4 * y + x0)] > 0, y < 4 && x0 < 2);
    }
  }
  EXPECT_THROW(random_crop(x, {6, 1, 1}), errors::InvalidArgument);
  EXPECT_EQ(stateless_random_crop(x, {2, 3, 1}, {1, 2}).to_vector<int>(),
            stateless_random_crop(x, {2, 3, 1}, {1, 2}).to_vector<int>());
}

TEST(DecodeAndResize, GivesTheSizeFromSmallerDecodes) {
  // A picture of even colour stays one whatever the way.
  const Tensor even = fill({200, 300, 3}, 77, uint8);
  const Tensor jpeg = encode_jpeg(even);
  for (bool scaled : {true, false}) {
    const Tensor t =
        decode_and_resize(jpeg, {40, 50}, {.scaled_decode = scaled});
    EXPECT_EQ(t.shape(), (Shape{40, 50, 3}));
    for (float v : t.to_vector<float>()) ASSERT_NEAR(v, 77, 1.5);
  }
  const Tensor png = encode_png(bytes(8, 9, 3));
  EXPECT_EQ(decode_and_resize(png, {4, 4}).to_vector<float>(),
            resize(bytes(8, 9, 3), {4, 4}).to_vector<float>());
  EXPECT_THROW(decode_and_resize(png, {0, 4}), errors::InvalidArgument);
  EXPECT_THROW(decode_and_resize(constant("x"), {4, 4}),
               errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::image
