// strings: tensors of text (tf.strings).
//
// Functions of one text apply to each element and keep the shape. Text is on
// the host; all act at once; in a trace they throw errors::FailedPrecondition:
// call them in a dataset's map. Positions and lengths are in bytes unless the
// unit is "UTF8_CHAR". They throw errors::InvalidArgument for tensors that are
// not text, and where noted. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_STRINGS_H_
#define BERTH_STRINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::strings {

// int32. unit: "BYTE" or "UTF8_CHAR" (code points).
Tensor length(const Tensor& input, const std::string& unit = "BYTE",
              Site site = Site::here());
// ASCII letters only.
Tensor lower(const Tensor& input, Site site = Site::here());
Tensor upper(const Tensor& input, Site site = Site::here());
// Removes the white space at both ends.
Tensor strip(const Tensor& input, Site site = Site::here());
// `len` from `pos` on, negative from the end; shorter at the end of the text.
// A position outside is an error.
Tensor substr(const Tensor& input, int64_t pos, int64_t len,
              const std::string& unit = "BYTE", Site site = Site::here());

// Parts of texts: rows of different lengths, concatenated.
struct Ragged {
  Tensor values;      // [parts]
  Tensor row_splits;  // int64 [texts + 1]
  // [texts, longest], padded with `default_value`.
  Tensor to_tensor(const std::string& default_value = "",
                   Site site = Site::here()) const;
};
// The parts of each of the texts [n] (or of one) between `sep`s; sep "": runs
// of white space, none at the ends. maxsplit: at most this many splits, -1 for
// all.
Ragged split(const Tensor& input, const std::string& sep = "",
             int64_t maxsplit = -1, Site site = Site::here());
Ragged bytes_split(const Tensor& input, Site site = Site::here());
// Code points of UTF-8 texts; invalid bytes become U+FFFD.
Ragged unicode_split(const Tensor& input, Site site = Site::here());

// Elementwise, with `separator` between; scalars are repeated.
Tensor join(const Tensors& inputs, const std::string& separator = "",
            Site site = Site::here());
// All elements, or those along `axis`, in one text.
Tensor reduce_join(const Tensor& inputs, const std::string& separator = "",
                   Site site = Site::here());
Tensor reduce_join(const Tensor& inputs, int64_t axis,
                   const std::string& separator = "", Site site = Site::here());

// float32, float64, int32, int64. Surrounding white space is ignored; a text
// that is not such a number is an error.
Tensor to_number(const Tensor& input, DType out_type = float32,
                 Site site = Site::here());
struct AsStringOptions {
  int precision = -1;  // digits after the point; -1: the shortest exact text
  bool scientific = false;
  int width = -1;         // at least this many characters
  std::string fill = {};  // one character; default: spaces
};
Tensor as_string(const Tensor& input, const AsStringOptions& options = {},
                 Site site = Site::here());

// Patterns are RE2's, which take linear time. \1 to \9 in `rewrite` are groups.
Tensor regex_replace(const Tensor& input, const std::string& pattern,
                     const std::string& rewrite, bool replace_global = true,
                     Site site = Site::here());
// bool: the whole text matches.
Tensor regex_full_match(const Tensor& input, const std::string& pattern,
                        Site site = Site::here());

// int64 below num_buckets: the text's FarmHash Fingerprint64, or its
// MurmurHash64A, modulo num_buckets, as in TensorFlow.
Tensor to_hash_bucket_fast(const Tensor& input, int64_t num_buckets,
                           Site site = Site::here());
Tensor to_hash_bucket(const Tensor& input, int64_t num_buckets,
                      Site site = Site::here());

}  // namespace berth::strings

#endif  // BERTH_STRINGS_H_
