#include "berth/strings.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "tensor/string_tensor.h"

namespace berth::strings {
namespace {

using Words = std::vector<std::string>;
using Ints = std::vector<int64_t>;

Words words(const Tensor& t) { return strings_of(t); }

// "aé" and a text with a byte that is not UTF-8.
const char kAccent[] = "a\xc3\xa9";
const char kBroken[] =
    "\xff"
    "b";

TEST(Strings, MeasureAndCut) {
  const Tensor t = constant({kAccent, "", kBroken});
  EXPECT_EQ(length(t).to_vector<int64_t>(), (Ints{3, 0, 2}));
  EXPECT_EQ(length(t, "UTF8_CHAR").to_vector<int64_t>(), (Ints{2, 0, 2}));
  EXPECT_EQ(words(substr(constant({"hello", "abc"}), 1, 2)),
            (Words{"el", "bc"}));
  EXPECT_EQ(words(substr(constant({"hello"}), -3, 9)), (Words{"llo"}));
  EXPECT_EQ(words(substr(constant(kAccent), 1, 1, "UTF8_CHAR")),
            (Words{"\xc3\xa9"}));
  EXPECT_THROW(substr(constant("abc"), 4, 1), errors::InvalidArgument);
  EXPECT_THROW(substr(constant("abc"), -4, 1), errors::InvalidArgument);
  EXPECT_THROW(length(t, "WORD"), errors::InvalidArgument);
  EXPECT_THROW(length(constant(1)), errors::InvalidArgument);
}

TEST(Strings, FallIntoTensorFlowsBuckets) {
  // tf.strings of TensorFlow 2.21: one text of each of FarmHash's lengths.
  const Words all = {"",
                     "a",
                     "abcdefg",
                     "hello world",
                     std::string(17, 'x'),
                     std::string(33, 'y'),
                     std::string(64, 'z'),
                     std::string(129, 'q')};
  const Tensor texts = make_strings(all, {8});
  const int64_t n = int64_t{1} << 31;
  EXPECT_EQ(
      to_hash_bucket_fast(texts, n).to_vector<int64_t>(),
      (std::vector<int64_t>{797982799, 920614371, 483095381, 198619163,
                            1937846181, 755371774, 1946264088, 952290977}));
  EXPECT_EQ(to_hash_bucket(texts, n).to_vector<int64_t>(),
            (std::vector<int64_t>{429891131, 652921340, 63516224, 376452079,
                                  429240630, 805703498, 1420561816, 6186422}));
  EXPECT_THROW(to_hash_bucket_fast(texts, 0), errors::InvalidArgument);
}

TEST(Strings, ChangeLettersAndWhiteSpace) {
  EXPECT_EQ(words(lower(constant({"AbC-\xc3\x89"}))), (Words{"abc-\xc3\x89"}));
  EXPECT_EQ(words(upper(constant({"aZ1"}))), (Words{"AZ1"}));
  EXPECT_EQ(words(strip(constant({" \t a b\n", "", "  "}))),
            (Words{"a b", "", ""}));
}

TEST(Strings, SplitAsPythonDoes) {
  const Ragged blank = split(constant({" a  b c ", "", "d"}));
  EXPECT_EQ(words(blank.values), (Words{"a", "b", "c", "d"}));
  EXPECT_EQ(blank.row_splits.to_vector<int64_t>(), (Ints{0, 3, 3, 4}));
  const Tensor padded = blank.to_tensor("-");
  EXPECT_EQ(padded.shape(), (Shape{3, 3}));
  EXPECT_EQ(words(padded),
            (Words{"a", "b", "c", "-", "-", "-", "d", "-", "-"}));
  EXPECT_EQ(words(split(constant("a,,b,"), ",").values),
            (Words{"a", "", "b", ""}));
  EXPECT_EQ(words(split(constant("a<>b<>c"), "<>", 1).values),
            (Words{"a", "b<>c"}));
  EXPECT_EQ(words(split(constant(" a b c"), "", 1).values),
            (Words{"a", "b c"}));
  EXPECT_EQ(words(bytes_split(constant("abc")).values), (Words{"a", "b", "c"}));
  EXPECT_EQ(words(unicode_split(constant({kAccent, kBroken})).values),
            (Words{"a", "\xc3\xa9", "\xef\xbf\xbd", "b"}));
  EXPECT_THROW(split(constant({{"a"}, {"b"}})), errors::InvalidArgument);
}

TEST(Strings, SplitUtf8AsTheUnicodeStandardSays) {
  // Overlong, surrogate, beyond U+10FFFF, cut off: one mark per byte.
  for (const char* bad : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xe2\x82", "\xf0\x9f\x98", "\xf8"}) {
    const std::string s = bad;
    const Words parts = words(unicode_split(constant(s)).values);
    EXPECT_EQ(parts, Words(s.size(), "\xef\xbf\xbd"));
  }
  EXPECT_EQ(
      words(unicode_split(constant("\xf0\x9f\x98\x80\xe2\x82\xac")).values),
      (Words{"\xf0\x9f\x98\x80", "\xe2\x82\xac"}));
}

TEST(Strings, Join) {
  EXPECT_EQ(
      words(join({constant({"a", "b"}), constant("x"), constant({"c", "d"})},
                 "-")),
      (Words{"a-x-c", "b-x-d"}));
  EXPECT_THROW(join({constant({"a", "b"}), constant({"c"})}),
               errors::InvalidArgument);
  EXPECT_THROW(join({}), errors::InvalidArgument);
  const Tensor square = constant({{"a", "b"}, {"c", "d"}});
  EXPECT_EQ(words(reduce_join(square, " ")), (Words{"a b c d"}));
  EXPECT_EQ(words(reduce_join(square, int64_t{0})), (Words{"ac", "bd"}));
  EXPECT_EQ(words(reduce_join(square, int64_t{-1}, "+")),
            (Words{"a+b", "c+d"}));
  EXPECT_THROW(reduce_join(square, int64_t{2}), errors::InvalidArgument);
}

TEST(Strings, ReadAndWriteNumbers) {
  EXPECT_EQ(to_number(constant({" 1.5 ", "-2e3", "+4"})).to_vector<float>(),
            (std::vector<float>{1.5f, -2000, 4}));
  EXPECT_EQ(to_number(constant("9000000000"), int64).item<int64_t>(),
            9000000000);
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>([] {
                     to_number(constant({"1", "1x"}), int32);
                   }),
                   "text 1 is \"1x\"; expected a number of int32"));
  EXPECT_THROW(to_number(constant("1.5"), int32), errors::InvalidArgument);
  EXPECT_THROW(to_number(constant("1"), uint8), errors::InvalidArgument);
  EXPECT_EQ(words(as_string(constant({1, -20}))), (Words{"1", "-20"}));
  EXPECT_EQ(words(as_string(constant({0.1f, 2.f}))), (Words{"0.1", "2"}));
  EXPECT_EQ(words(as_string(constant(3.14159), {.precision = 2})),
            (Words{"3.14"}));
  EXPECT_EQ(words(as_string(constant(7), {.width = 3, .fill = "0"})),
            (Words{"007"}));
  EXPECT_EQ(words(as_string(constant(true))), (Words{"true"}));
}

TEST(Strings, MatchPatterns) {
  EXPECT_EQ(words(regex_replace(constant({"a1b22", "x"}), "[0-9]+", "#")),
            (Words{"a#b#", "x"}));
  EXPECT_EQ(words(regex_replace(constant("a1b2"), "[0-9]", "#", false)),
            (Words{"a#b2"}));
  EXPECT_EQ(words(regex_replace(constant("ab"), "(a)(b)", "\\2\\1")),
            (Words{"ba"}));
  EXPECT_EQ(
      regex_full_match(constant({"abc", "abcd"}), "a.c").to_vector<bool>(),
      (std::vector<bool>{true, false}));
  EXPECT_THROW(regex_full_match(constant("a"), "("), errors::InvalidArgument);
  EXPECT_THROW(regex_replace(constant("a"), "a", "\\3"),
               errors::InvalidArgument);
  // What makes backtracking engines hang.
  const std::string many(5000, 'a');
  EXPECT_FALSE(regex_full_match(constant(many + "!"), "(a+)+").item<bool>());
}

}  // namespace
}  // namespace berth::strings
