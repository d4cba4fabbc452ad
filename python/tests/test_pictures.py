"""Decoders of pictures take each other's files, as TensorFlow's do; the sums of pixels are TensorFlow's."""
import base64
import struct

import berth as tf
import numpy as np
import pytest

JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4zNDL/"
    "2wBDAQkJCQwLDBgNDRgyIRwhMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjL/wAARCAAGAAgDASIAAhEBAxEB/8QA"
    "FQABAQAAAAAAAAAAAAAAAAAAAAb/xAAZEAEAAgMAAAAAAAAAAAAAAAAABCECBpH/xAAUAQEAAAAAAAAAAAAAAAAAAAAB/8QAFBEBAAAAAAAAAAAAAAAAAAAA"
    "AP/aAAwDAQACEQMRAD8AlY2jRKvDgBD/2Q==")
PIXELS = (np.arange(6 * 8 * 3) % 251).astype("uint8").reshape(6, 8, 3)


def total(picture):
    return int(np.sum(picture.numpy(), dtype="int64"))


def bmp(pixels):
    rows = b"".join(row[:, ::-1].tobytes() for row in pixels[::-1])  # 24 bytes, which need no filling
    return (b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54) +
            struct.pack("<IiiHHIIiiII", 40, pixels.shape[1], pixels.shape[0], 1, 24, 0, len(rows), 0, 0, 0, 0) + rows)


def test_pixels_of_a_jpeg_are_tensorflows():
    assert [total(tf.io.decode_jpeg(JPEG, dct_method=m)) for m in ("", "INTEGER_FAST", "INTEGER_ACCURATE")] == [10188, 10188, 10273]
    assert total(tf.io.decode_image(JPEG)) == 10188
    for window in ([1, 1, 3, 3], tf.constant([1, 1, 3, 3])):
        assert total(tf.io.decode_and_crop_jpeg(JPEG, window)) == 1470
    assert tf.image.decode_and_crop_jpeg(JPEG, [0, 2, 6, 4], channels=1).shape == [6, 4, 1]


def test_a_decoder_takes_files_of_the_others():
    png = tf.io.encode_png(PIXELS)
    assert total(tf.io.decode_png(JPEG)) == 10188 and total(tf.io.decode_png(JPEG, channels=1)) == 3395
    np.testing.assert_array_equal(tf.io.decode_jpeg(png), PIXELS)
    assert tf.io.decode_jpeg(png, channels=1).shape == [6, 8, 1] and tf.io.decode_jpeg(png, channels=4).shape == [6, 8, 4]
    np.testing.assert_array_equal(tf.io.decode_gif(png), PIXELS[None])
    assert total(tf.io.decode_gif(JPEG)) == 10188
    for options in ({}, {"channels": 3}, {"expand_animations": False}):
        np.testing.assert_array_equal(tf.io.decode_image(bmp(PIXELS), **options), PIXELS)
    np.testing.assert_allclose(tf.io.decode_image(bmp(PIXELS), dtype=tf.float32), PIXELS / 255.0, rtol=1e-6)
    pictures = tf.data.Dataset.from_tensor_slices([JPEG, png.numpy()]).map(tf.io.decode_png)
    assert [total(p) for p in pictures] == [10188, int(PIXELS.sum(dtype="int64"))]


def test_what_no_decoder_takes_is_refused():
    for decode in (tf.io.decode_png, tf.io.decode_jpeg, tf.io.decode_image, tf.io.decode_gif):
        with pytest.raises(tf.errors.InvalidArgumentError):
            decode(b"nothing of a picture")
    with pytest.raises(tf.errors.InvalidArgumentError, match="channels is 4"):
        tf.io.decode_png(JPEG, channels=4)
    with pytest.raises(ValueError, match="padding is 'same'"):
        tf.image.extract_patches(np.ones((1, 4, 4, 1), "float32"), [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "same")
