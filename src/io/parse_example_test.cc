#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "berth/errors.h"
#include "berth/io.h"
#include "berth/ops/array.h"
#include "tensor/string_tensor.h"

namespace berth::io {
namespace {

using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;
using Words = std::vector<std::string>;

// Bytes of messages, written by hand from the wire format: a tag is field
// number << 3 | type (2: length and bytes).
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2),
                     static_cast<char>(bytes.size())} +
         bytes;
}
std::string entry(const std::string& name, const std::string& value) {
  return field(1, field(1, name) + field(2, value));
}
std::string example(const std::string& entries) { return field(1, entries); }
std::string floats(const std::string& raw) { return field(2, field(1, raw)); }
std::string ints(const std::string& raw) { return field(3, field(1, raw)); }
const std::string kOne("\0\0\x80\x3f", 4);  // 1.0f
const std::string kTwo("\0\0\0\x40", 4);    // 2.0f

Tensor batch(const Words& messages) {
  return constant(messages, {static_cast<int64_t>(messages.size())});
}

TEST(ParseExample, ReadsFixedFeaturesInEveryEncoding) {
  // 300 is the varint AC 02; -1 is ten bytes.
  const std::string minus_one = std::string(9, '\xff') + "\x01";
  const std::string packed = example(entry("f", floats(kOne + kTwo)) +
                                     entry("i", ints("\xac\x02" + minus_one)) +
                                     entry("s", field(1, field(1, "ab"))));
  const std::string unpacked =
      example(entry("f", field(2, "\x0d" + kTwo + "\x0d" + kOne)) +
              entry("i", field(3, "\x08\x05\x08\x06")) +
              entry("s", field(1, field(1, ""))) + entry("other", ints("\1")));
  const FeatureSpec spec{{"f", FixedLenFeature{{2}, float32}},
                         {"i", FixedLenFeature{{2}, int64}},
                         {"s", FixedLenFeature{{}, string_}}};
  const auto p = parse_example(batch({packed, unpacked}), spec);
  EXPECT_EQ(p["f"].shape(), (Shape{2, 2}));
  EXPECT_EQ(p["f"].to_vector<float>(), (Floats{1, 2, 2, 1}));
  EXPECT_EQ(p["i"].to_vector<int64_t>(), (Longs{300, -1, 5, 6}));
  EXPECT_EQ(p["s"].shape(), (Shape{2}));
  EXPECT_EQ(strings_of(p["s"]), (Words{"ab", ""}));
  const auto one = parse_single_example(constant(packed), spec);
  EXPECT_EQ(one["f"].shape(), (Shape{2}));
  EXPECT_EQ(one["s"].rank(), 0);
  EXPECT_TRUE(says(message_of<errors::NotFound>([&] { one["g"]; }),
                   "expected one of f, i, s"));
}

TEST(ParseExample, TakesTheLastOfTwoValues) {
  const std::string twice =
      example(entry("i", ints("\1"))) + example(entry("i", ints("\2")));
  const auto p = parse_single_example(constant(twice),
                                      {{"i", FixedLenFeature{{}, int64}}});
  EXPECT_EQ(p["i"].item<int64_t>(), 2);
}

TEST(ParseExample, FillsInDefaults) {
  const Tensor empty = batch({"", example(entry("a", ""))});
  const auto p = parse_example(
      empty, {{"a", FixedLenFeature{{2}, float32, constant(7.f)}},
              {"b", FixedLenFeature{{2}, int64, constant(Longs{1, 2}, {2})}},
              {"c", FixedLenFeature{{}, string_, constant("none")}}});
  EXPECT_EQ(p["a"].to_vector<float>(), (Floats{7, 7, 7, 7}));
  EXPECT_EQ(p["b"].to_vector<int64_t>(), (Longs{1, 2, 1, 2}));
  EXPECT_EQ(strings_of(p["c"]), (Words{"none", "none"}));
  const std::string m = message_of<errors::InvalidArgument>([&] {
    parse_example(empty, {{"a", FixedLenFeature{{2}, float32}}});
  });
  EXPECT_TRUE(says(m, "message 0, feature \"a\" is missing"));
  EXPECT_TRUE(says(m, "parse_example_test.cc:"));
}

TEST(ParseExample, PadsAndSplitsListsOfAnyLength) {
  const Tensor messages = batch({example(entry("v", ints("\1\2\3"))), "",
                                 example(entry("v", ints("\4")))});
  const auto var = parse_example(
      messages, {{"v", VarLenFeature{int64, constant(int64_t{-1})}}});
  EXPECT_EQ(var["v"].shape(), (Shape{3, 3}));
  EXPECT_EQ(var["v"].to_vector<int64_t>(),
            (Longs{1, 2, 3, -1, -1, -1, 4, -1, -1}));
  EXPECT_EQ(var.lengths.at("v").to_vector<int64_t>(), (Longs{3, 0, 1}));
  const auto ragged = parse_example(messages, {{"v", RaggedFeature{int64}}});
  EXPECT_EQ(ragged["v"].to_vector<int64_t>(), (Longs{1, 2, 3, 4}));
  EXPECT_EQ(ragged.row_splits.at("v").to_vector<int64_t>(),
            (Longs{0, 3, 3, 4}));
  const FeatureSpec pairs{{"v", FixedLenSequenceFeature{{2}, int64, true}}};
  const auto list =
      parse_example(batch({example(entry("v", ints("\1\2\3\4"))), ""}), pairs);
  EXPECT_EQ(list["v"].shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(list["v"].to_vector<int64_t>(), (Longs{1, 2, 3, 4, 0, 0, 0, 0}));
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>(
                       [&] { parse_example(messages, pairs); }),
                   "has 3 values; expected a multiple of 2"));
  const auto words = parse_example(
      batch({example(entry("w", field(1, field(1, "a") + field(1, "b")))), ""}),
      {{"w", VarLenFeature{string_, constant("-")}}});
  EXPECT_EQ(strings_of(words["w"]), (Words{"a", "b", "-", "-"}));
}

TEST(ParseExample, SkipsFieldsOfEveryType) {
  const auto parsed = [](const std::string& before) {
    return parse_single_example(
               constant(before + example(entry("x", ints("\7")))),
               {{"x", FixedLenFeature{{}, int64}}})["x"]
        .item<int64_t>();
  };
  // Fields 4 to 6 and 8: a varint, 8 bytes, text, 4 bytes.
  EXPECT_EQ(parsed("\x20\x96\x01"), 7);
  EXPECT_EQ(parsed("\x29"
                   "12345678"),
            7);
  EXPECT_EQ(parsed("\x32\x02"
                   "ab"),
            7);
  EXPECT_EQ(parsed("\x45"
                   "1234"),
            7);
  // A group of field 7 with one of field 9 in it.
  EXPECT_EQ(parsed("\x3b\x20\x01\x4b\x20\x01\x4c\x3c"), 7);
  EXPECT_NO_THROW(parse_single_example(constant("\x3b\x3c"),
                                       {{"x", VarLenFeature{int64}}}));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += '\x3b';
  for (const std::string& bad :
       std::vector<std::string>{"\x3b", "\x3b\x4c", "\x3c",
                                "\x29"
                                "1234567",
                                "\x45"
                                "123",
                                std::string("\x02\0", 2), "\x26",
                                "\x20" + std::string(10, '\xff'), deep}) {
    EXPECT_THROW(
        parse_single_example(constant(bad), {{"x", VarLenFeature{int64}}}),
        errors::InvalidArgument);
  }
}

TEST(ParseExample, NamesWhatIsWrong) {
  const auto problem = [](const std::string& message, const Feature& f) {
    return message_of<errors::InvalidArgument>([&] {
      parse_single_example(constant(message), {{"x", f}});
    });
  };
  const FixedLenFeature x{{2}, float32};
  EXPECT_TRUE(says(problem(example(entry("x", floats(kOne))), x),
                   "has 1 values; expected 2"));
  EXPECT_TRUE(says(problem(example(entry("x", ints("\1"))), x),
                   "holds int64; expected float32"));
  EXPECT_TRUE(says(problem("\x0a\x7f", x), "is no tf.train.Example"));
  EXPECT_TRUE(says(problem(example(entry("x", floats("abc"))), x),
                   "no tf.train.Feature"));
  EXPECT_TRUE(says(problem("", FixedLenFeature{{}, int32}),
                   "expected float32, int64 or string_"));
  EXPECT_TRUE(says(problem("", FixedLenFeature{{2}, float32, constant(1)}),
                   "the default is int32"));
  EXPECT_THROW(parse_example(constant("x"), {}), errors::InvalidArgument);
  EXPECT_THROW(parse_example(constant(1), {}), errors::InvalidArgument);
}

TEST(ParseSequenceExample, PadsTimeAndLists) {
  // Two steps of lists {1, 2} and {3}; one step {4}.
  const auto list = [](const std::string& name, const Words& steps) {
    std::string all;
    for (const std::string& s : steps) all += field(1, s);
    return field(2, entry(name, all));
  };
  const Tensor messages = batch(
      {field(1, entry("c", ints("\7"))) + list("v", {ints("\1\2"), ints("\3")}),
       field(1, entry("c", ints("\x08"))) + list("v", {ints("\4")})});
  const FeatureSpec context{{"c", FixedLenFeature{{}, int64}}};
  const auto p =
      parse_sequence_example(messages, context, {{"v", VarLenFeature{int64}}});
  EXPECT_EQ(p.context["c"].to_vector<int64_t>(), (Longs{7, 8}));
  EXPECT_EQ(p.feature_lists["v"].shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(p.feature_lists["v"].to_vector<int64_t>(),
            (Longs{1, 2, 3, 0, 4, 0, 0, 0}));
  EXPECT_EQ(p.feature_lists.lengths.at("v").to_vector<int64_t>(),
            (Longs{2, 1, 1, 0}));
  const auto r =
      parse_sequence_example(messages, context, {{"v", RaggedFeature{int64}}});
  EXPECT_EQ(r.feature_lists.row_splits.at("v").to_vector<int64_t>(),
            (Longs{0, 2, 3, 4}));
  EXPECT_EQ(r.feature_lists.lengths.at("v").to_vector<int64_t>(),
            (Longs{2, 1}));
  const FeatureSpec steps{{"v", FixedLenSequenceFeature{{}, int64}}};
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>([&] {
                     parse_sequence_example(messages, context, steps);
                   }),
                   "has 2 values at step 0; expected 1"));
  const auto one = parse_single_sequence_example(
      constant(list("v", {ints("\5"), ints("\6")})), {}, steps);
  EXPECT_EQ(one.feature_lists["v"].to_vector<int64_t>(), (Longs{5, 6}));
  EXPECT_EQ(one.feature_lists.lengths.at("v").item<int64_t>(), 2);
}

TEST(SerializeExample, WritesTheWireFormat) {
  EXPECT_EQ(serialize_example({{"x", constant({1.f, 2.f})}}),
            example(entry("x", floats(kOne + kTwo))));
  EXPECT_EQ(serialize_example({{"i", constant(300)}, {"s", constant("ab")}}),
            example(entry("i", ints("\xac\x02")) +
                    entry("s", field(1, field(1, "ab")))));
  EXPECT_EQ(
      serialize_sequence_example({}, {{"v", constant({{1}, {2}})}}),
      std::string("\x0a\0", 2) +
          field(2, entry("v", field(1, ints("\1")) + field(1, ints("\2")))));
  EXPECT_THROW(serialize_example({{"x", Tensor()}}), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::io
