#!/usr/bin/env python3
"""Writes image_cases.h beside the tests: what TensorFlow computes for the pictures that the rule
below draws. Needs TensorFlow (CPU); it is used here only, never by the product or its tests.
The committed file was made with TensorFlow 2.21.0.
"""
import pathlib

import numpy as np
import tensorflow as tf

ROOM = pathlib.Path(__file__).resolve().parent.parent


def picture(height, width, channels):
    """Pixel i of the flat picture is (i * i * 7 + i * 13) % 256; the test has the same rule."""
    i = np.arange(height * width * channels, dtype=np.int64)
    return ((i * i * 7 + i * 13) % 256).astype(np.uint8).reshape(height, width, channels)


def floats(height, width, channels):
    return picture(height, width, channels).astype(np.float32) / np.float32(255)


def resize_cases():
    for method in ("bilinear", "bicubic", "area", "lanczos3", "lanczos5", "gaussian",
                   "mitchellcubic", "nearest"):
        for antialias in (False, True):
            if antialias and method in ("area", "nearest"):
                continue
            few = method in ("bilinear", "bicubic", "area", "nearest")
            for size in ((3, 4), (9, 11)) if few else ((3, 4),):
                name = f"resize {method} {int(antialias)} {size[0]} {size[1]}"
                yield name, tf.image.resize(picture(6, 7, 3), size, method, antialias=antialias)
    yield "resize_aspect", tf.image.resize(picture(6, 7, 3), (4, 4), preserve_aspect_ratio=True)
    yield "resize_with_pad", tf.image.resize_with_pad(picture(6, 7, 3), 4, 9)


def other_cases():
    bytes_, x = picture(4, 5, 3), floats(4, 5, 3)
    yield "resize_with_crop_or_pad", tf.image.resize_with_crop_or_pad(bytes_, 3, 8)
    yield "central_crop", tf.image.central_crop(picture(7, 9, 1), 0.5)
    yield "rot90 1", tf.image.rot90(bytes_, 1)
    yield "rot90 2", tf.image.rot90(bytes_, 2)
    yield "rot90 3", tf.image.rot90(bytes_, 3)
    yield "flip_left_right", tf.image.flip_left_right(bytes_)
    yield "flip_up_down", tf.image.flip_up_down(bytes_)
    yield "adjust_brightness", tf.image.adjust_brightness(x, 0.2)
    yield "adjust_brightness bytes", tf.image.adjust_brightness(bytes_, 0.2)
    yield "adjust_contrast", tf.image.adjust_contrast(x, 1.7)
    yield "adjust_contrast bytes", tf.image.adjust_contrast(bytes_, 0.6)
    yield "adjust_gamma", tf.image.adjust_gamma(x, 2.2, 0.9)
    yield "adjust_hue", tf.image.adjust_hue(x, 0.3)
    yield "adjust_hue bytes", tf.image.adjust_hue(bytes_, -0.4)
    yield "adjust_saturation", tf.image.adjust_saturation(x, 0.4)
    yield "adjust_saturation bytes", tf.image.adjust_saturation(bytes_, 1.8)
    yield "rgb_to_grayscale", tf.image.rgb_to_grayscale(x)
    yield "rgb_to_grayscale bytes", tf.image.rgb_to_grayscale(bytes_)
    yield "rgb_to_hsv", tf.image.rgb_to_hsv(x)
    yield "hsv_to_rgb", tf.image.hsv_to_rgb(x)
    yield "rgb_to_yuv", tf.image.rgb_to_yuv(x)
    yield "yuv_to_rgb", tf.image.yuv_to_rgb(x)
    yield "rgb_to_yiq", tf.image.rgb_to_yiq(x)
    yield "yiq_to_rgb", tf.image.yiq_to_rgb(x)
    yield "per_image_standardization", tf.image.per_image_standardization(bytes_)
    yield "to_float", tf.image.convert_image_dtype(bytes_, tf.float32)
    yield "to_bytes", tf.image.convert_image_dtype(x * 1.5 - 0.2, tf.uint8, saturate=True)
    yield "to_int32", tf.image.convert_image_dtype(bytes_, tf.int32)


def main():
    lines = ["// What TensorFlow computes for drawn pictures, made by testdata/make_cases.py.", "",
             "#ifndef BERTH_PREPROCESS_IMAGE_CASES_TESTING_H_",
             "#define BERTH_PREPROCESS_IMAGE_CASES_TESTING_H_", "",
             "#include <map>", "#include <string>", "#include <vector>", "",
             "namespace berth::image {", "",
             "struct ImageCase {", "  std::vector<int64_t> shape;", "  std::vector<double> values;",
             "};", "", "// clang-format off",
             "inline const std::map<std::string, ImageCase>& image_cases() {",
             "  static const auto* cases = new std::map<std::string, ImageCase>{"]
    for cases in (resize_cases(), other_cases()):
        for name, value in cases:
            a = value.numpy()
            shape = ", ".join(str(n) for n in a.shape)
            lines.append(f'{{"{name}", {{{{{shape}}}, {{')
            numbers = [f"{v:.7g}" for v in a.astype(np.float64).ravel()]
            line = ""
            for n in numbers:
                if len(line) + len(n) > 78:
                    lines.append(line)
                    line = ""
                line += n + ","
            lines += [line, "}}},"]
    lines += ["  };", "  return *cases;", "}", "// clang-format on", "",
              "}  // namespace berth::image", "",
              "#endif  // BERTH_PREPROCESS_IMAGE_CASES_TESTING_H_"]
    (ROOM / "image_cases_testing.h").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
