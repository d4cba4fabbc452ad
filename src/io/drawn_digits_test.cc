#include "io/drawn_digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "berth/errors.h"
#include "io/digit_strokes.h"

namespace berth::io {
namespace {

using Image = std::array<uint8_t, kDigitPixels>;

TEST(DrawnDigits, ImageIsAFunctionOfSeedAndIndexAlone) {
  const DrawnDigits all = draw_digits(50, 7);
  for (const uint64_t index : {49u, 0u, 17u}) {
    Image image;
    EXPECT_EQ(draw_digit(7, index, image), all.labels[index]);
    EXPECT_TRUE(std::equal(
        image.begin(), image.end(),
        all.images.begin() + static_cast<ptrdiff_t>(index) * kDigitPixels));
  }
  const DrawnDigits fewer = draw_digits(20, 7);
  EXPECT_TRUE(
      std::equal(fewer.images.begin(), fewer.images.end(), all.images.begin()));
}

TEST(DrawnDigits, OtherSeedsAndOtherIndicesGiveOtherImages) {
  Image a, b;
  int same = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    draw_digit(1, i, a);
    draw_digit(2, i, b);
    same += a == b;
    draw_digit(1, i + 1, b);
    same += a == b;
    // The high words count too.
    draw_digit(1 + (uint64_t{1} << 32), i, b);
    same += a == b;
    draw_digit(1, i + (uint64_t{1} << 32), b);
    same += a == b;
  }
  EXPECT_EQ(same, 0);
}

TEST(DrawnDigits, EveryDigitComesAboutATenthOfTheTime) {
  const DrawnDigits digits = draw_digits(5000, 3);
  std::array<int, 10> count{};
  for (const uint8_t label : digits.labels) ++count.at(label);
  // Expected 500 with standard deviation 21; fixed seed.
  for (const int n : count) {
    EXPECT_GT(n, 400);
    EXPECT_LT(n, 600);
  }
}

TEST(DrawnDigits, InkFillsAPlausiblePartAndLiesInTheMiddle) {
  const DrawnDigits digits = draw_digits(2000, 4);
  double border = 0, ink = 0;
  for (int i = 0; i < 2000; ++i) {
    double sum = 0;
    for (int p = 0; p < kDigitPixels; ++p) {
      const double value = digits.images[i * kDigitPixels + p] / 255.0;
      const int y = p / kDigitSide, x = p % kDigitSide;
      if (x < 2 || y < 2 || x > 25 || y > 25) border += value;
      sum += value;
    }
    // A thin 1 has at least a dozen inked pixels, a fat 8 under half.
    EXPECT_GT(sum, 8) << i;
    EXPECT_LT(sum, 0.5 * kDigitPixels) << i;
    ink += sum;
  }
  EXPECT_LT(border / ink, 0.06);
}

// Not a measure of difficulty, but a sign that labels belong to shapes: the
// nearest of the ten mean images is right far more often than by chance.
TEST(DrawnDigits, LabelsCanBeLearnedFromTheImages) {
  const DrawnDigits train = draw_digits(3000, 5), test = draw_digits(500, 6);
  std::vector<double> mean(10 * kDigitPixels);
  std::array<int, 10> count{};
  for (size_t i = 0; i < train.labels.size(); ++i) {
    const size_t label = train.labels[i];
    ++count[label];
    for (size_t p = 0; p < kDigitPixels; ++p) {
      mean[label * kDigitPixels + p] += train.images[i * kDigitPixels + p];
    }
  }
  int right = 0;
  for (size_t i = 0; i < test.labels.size(); ++i) {
    double best = 1e300;
    size_t guess = 0;
    for (size_t label = 0; label < 10; ++label) {
      double distance = 0;
      for (size_t p = 0; p < kDigitPixels; ++p) {
        const double d = mean[label * kDigitPixels + p] / count[label] -
                         test.images[i * kDigitPixels + p];
        distance += d * d;
      }
      if (distance < best) best = distance, guess = label;
    }
    right += guess == test.labels[i];
  }
  EXPECT_GT(right, 250);
  EXPECT_LT(right, 480);  // and not so alike that averages suffice
}

TEST(DrawnDigits, RefusesACountThatMakesNoSense) {
  EXPECT_THROW(draw_digits(-1, 0), errors::InvalidArgument);
  EXPECT_THROW(draw_digits(int64_t{1} << 40, 0), errors::InvalidArgument);
  EXPECT_TRUE(draw_digits(0, 0).labels.empty());
}

TEST(DigitStrokes, EveryDigitHasMannersInsideTheBox) {
  for (int digit = 0; digit < 10; ++digit) {
    EXPECT_GE(digit_manners(digit).size(), 2u);
    for (const DigitManner& manner : digit_manners(digit)) {
      for (const Stroke& stroke : manner) {
        EXPECT_GE(stroke.points.size(), 2u);
        for (const StrokePoint p : stroke.points) {
          EXPECT_LE(std::abs(p.x), 0.7f);
          EXPECT_LE(std::abs(p.y), 1.0f);
        }
      }
    }
  }
}

}  // namespace
}  // namespace berth::io
