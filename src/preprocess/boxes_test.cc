#include "base/errors_testing.h"
#include "berth/errors.h"
#include "berth/image_boxes.h"
#include "berth/ops/array.h"

namespace berth::test {
namespace {

using Floats = std::vector<float>;

Tensor picture() {
  return constant(Floats{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3, 1});
}
Floats transformed(const Floats& transform,
                   const image::ProjectiveOptions& o = {}) {
  return image::projective_transform(picture(), constant(transform, {1, 8}),
                                     {3, 3}, o)
      .to_vector<float>();
}

TEST(ProjectiveTransform, MovesAndFills) {
  EXPECT_EQ(transformed({1, 0, 1, 0, 1, 0, 0, 0}),
            (Floats{2, 3, 0, 5, 6, 0, 8, 9, 0}));
  EXPECT_EQ(transformed({1, 0, .5, 0, 1, 0, 0, 0}, {.fill_value = 1}),
            (Floats{1.5, 2.5, 2, 4.5, 5.5, 3.5, 7.5, 8.5, 5}));
  const Floats far = {1, 0, 2, 0, 1, 0, 0, 0};
  EXPECT_EQ(transformed(far, {.fill_mode = "NEAREST"}),
            (Floats{3, 3, 3, 6, 6, 6, 9, 9, 9}));
  EXPECT_EQ(transformed(far, {.fill_mode = "REFLECT"}),
            (Floats{3, 3, 2, 6, 6, 5, 9, 9, 8}));
  EXPECT_EQ(transformed(far, {.interpolation = "NEAREST", .fill_mode = "WRAP"}),
            (Floats{3, 1, 1, 6, 4, 4, 9, 7, 7}));
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>(
                       [&] { transformed(far, {.fill_mode = "ZERO"}); }),
                   "ZERO"));
}

TEST(CropAndResize, TakesPartsOfThePicture) {
  const Tensor boxes = constant(Floats{0, 0, 1, 1, 0, 0, .5, 2}, {2, 4});
  const Tensor y =
      image::crop_and_resize(picture(), boxes, constant(std::vector<int>{0, 0}),
                             {2, 3}, {.extrapolation_value = -1});
  EXPECT_EQ(y.to_vector<float>(),
            (Floats{1, 2, 3, 7, 8, 9, 1, 3, -1, 4, 6, -1}));
}

TEST(NonMaxSuppression, LeavesOutWhatOverlaps) {
  const Tensor boxes = constant(
      Floats{0, 0, 1, 1, 0, .1f, 1, 1.1f, 0, 2, 1, 3, 0, 5, 1, 6}, {4, 4});
  const Tensor scores = constant({.6f, .9f, .3f, .1f});
  EXPECT_EQ(image::non_max_suppression(boxes, scores, 4).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(
      image::non_max_suppression(boxes, scores, 4,
                                 {.iou_threshold = 0.9, .score_threshold = 0.2})
          .to_vector<int32_t>(),
      (std::vector<int32_t>{1, 0, 2}));
  const image::Suppressed r =
      image::non_max_suppression_padded(boxes, scores, 5);
  EXPECT_EQ(r.selected_indices.shape(), (Shape{5}));
  EXPECT_EQ(r.valid_outputs.item<int32_t>(), 3);
}

TEST(SobelEdges, AreTheSlopes) {
  const Floats v = image::sobel_edges(picture()).to_vector<float>();
  ASSERT_EQ(v.size(), 18u);
  EXPECT_EQ(v[8], 24);  // down, in the middle: 4 * (8 - 2)
  EXPECT_EQ(v[9], 8);   // right: 4 * (6 - 4)
}

}  // namespace
}  // namespace berth::test
