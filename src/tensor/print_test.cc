// Texts of tensors. The expected ones are NumPy's, of
// numpy.array2string(x, separator=", ") and str(x); words of bools are C++'s.

#include <gtest/gtest.h>

#include <cmath>

#include "berth/berth.h"

namespace berth {
namespace {

// The values alone.
std::string printed(const Tensor& t) {
  const std::string s = t.str();
  const std::string before = "device=CPU:0,";
  const size_t at = s.find(before) + before.size() + 1;
  return s.substr(at, s.size() - at - 1);
}

template <class T>
void expect_text(const std::vector<T>& values, const Shape& shape,
                 const std::string& text) {
  const auto on = device("/CPU:0");
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<int> numbers(values.begin(), values.end());
    EXPECT_EQ(printed(math::cast(constant(numbers, shape), bool_)), text);
  } else {
    EXPECT_EQ(printed(constant(values, shape)), text);
  }
}

TEST(TensorText, AlignsColumnsAsNumPyDoes) {
  expect_text<float>({1.0f, 2.5f, 3.0f, 4.0f}, {2, 2},
                     R"([[1. , 2.5],
 [3. , 4. ]])");
  expect_text<float>(
      {0.10000000149011612f, 0.3333333432674408f, -2.0f, 100.0f}, {4},
      R"([  0.1       ,   0.33333334,  -2.        , 100.        ])");
  expect_text<float>({9.999999747378752e-06f, 1.0f, 2.0f}, {3},
                     R"([1.e-05, 1.e+00, 2.e+00])");
  expect_text<float>({1000000.0f, 2.0f, 0.5f, -3.0f}, {2, 2},
                     R"([[ 1.e+06,  2.e+00],
 [ 5.e-01, -3.e+00]])");
  expect_text<double>({10000000000.0, -2.5e-07, 0.0}, {3},
                      R"([ 1.0e+10, -2.5e-07,  0.0e+00])");
  expect_text<double>({0.3333333333333333, 0.6666666666666666, 123.456}, {3},
                      R"([  0.33333333,   0.66666667, 123.456     ])");
  expect_text<float>({NAN, 1.0f, -INFINITY}, {3}, R"([ nan,   1., -inf])");
  expect_text<float>({NAN, INFINITY}, {2}, R"([nan, inf])");
  expect_text<float16_t>({float16_t(0.0999755859375f), float16_t(2.0f),
                          float16_t(0.333251953125f)},
                         {3}, R"([0.1   , 2.    , 0.3333])");
  expect_text<float16_t>({float16_t(1000.0f), float16_t(1.0f)}, {2},
                         R"([1.e+03, 1.e+00])");
  expect_text<int32_t>({1, -20, 300, 4}, {2, 2},
                       R"([[  1, -20],
 [300,   4]])");
  expect_text<bool>({true, false, false, true}, {2, 2},
                    R"([[ true, false],
 [false,  true]])");
  expect_text<std::complex<float>>({{1.0f, 2.0f}, {-0.5f, -1.25f}}, {2},
                                   R"([ 1. +2.j  , -0.5-1.25j])");
  expect_text<float>({-0.0f, 0.0f}, {2}, R"([-0.,  0.])");
  expect_text<float>({999.0f, 1.0f, 0.0012339999666437507f}, {3},
                     R"([9.990e+02, 1.000e+00, 1.234e-03])");
  expect_text<double>({5e-324, 1.7976931348623157e+308}, {2},
                      R"([4.94065646e-324, 1.79769313e+308])");
  expect_text<float>({123456.703125f, 0.12300000339746475f}, {2},
                     R"([1.234567e+05, 1.230000e-01])");
  expect_text<int64_t>({1, 2, 3, 4}, {2, 2, 1},
                       R"([[[1],
  [2]],

 [[3],
  [4]]])");
  expect_text<float>({30.000001907348633f, 16777.216796875f}, {2},
                     R"([   30.000002, 16777.217   ])");
  expect_text<float>({1e-5f, 1.2345678e-3f}, {2},
                     "[9.9999997e-06, 1.2345678e-03]");
  expect_text<float>({0.1f, 1.2345678e-9f}, {2},
                     "[1.0000000e-01, 1.2345678e-09]");
  expect_text<float>({}, {0, 3}, "[]");
  expect_text<std::string>({"a", "longer"}, {2}, R"(["a", "longer"])");
}

TEST(TensorText, BreaksLongRows) {
  const auto on = device("/CPU:0");
  EXPECT_EQ(printed(float_range(0, 15, 0.5)),
            "[ 0. ,  0.5,  1. ,  1.5,  2. ,  2.5,  3. ,  3.5,  4. ,  4.5,  5. "
            ",  5.5,\n"
            "  6. ,  6.5,  7. ,  7.5,  8. ,  8.5,  9. ,  9.5, 10. , 10.5, 11. "
            ", 11.5,\n"
            " 12. , 12.5, 13. , 13.5, 14. , 14.5]");
}

TEST(TensorText, ElidesWhatHasMoreThanAThousandElements) {
  const auto on = device("/CPU:0");
  EXPECT_EQ(printed(range(1001)), "[   0,    1,    2, ...,  998,  999, 1000]");
  EXPECT_EQ(printed(range(1000)).find("..."), std::string::npos);
  EXPECT_EQ(printed(reshape(float_range(1, 1202), {1201, 1})), R"([[1.000e+00],
 [2.000e+00],
 [3.000e+00],
 ...,
 [1.199e+03],
 [1.200e+03],
 [1.201e+03]])");
  EXPECT_EQ(printed(reshape(range(1008), {2, 7, 72})),
            R"([[[   0,    1,    2, ...,   69,   70,   71],
  [  72,   73,   74, ...,  141,  142,  143],
  [ 144,  145,  146, ...,  213,  214,  215],
  ...,
  [ 288,  289,  290, ...,  357,  358,  359],
  [ 360,  361,  362, ...,  429,  430,  431],
  [ 432,  433,  434, ...,  501,  502,  503]],

 [[ 504,  505,  506, ...,  573,  574,  575],
  [ 576,  577,  578, ...,  645,  646,  647],
  [ 648,  649,  650, ...,  717,  718,  719],
  ...,
  [ 792,  793,  794, ...,  861,  862,  863],
  [ 864,  865,  866, ...,  933,  934,  935],
  [ 936,  937,  938, ..., 1005, 1006, 1007]]])");
}

TEST(TensorText, WritesSingleNumbersInFull) {
  const auto on = device("/CPU:0");
  const auto expect_number = [](const Tensor& t, const std::string& text) {
    EXPECT_EQ(printed(t), text);
  };
  expect_number(constant(0.1f), "0.1");
  expect_number(constant(1.f / 3), "0.33333334");
  expect_number(constant(7.f), "7.0");
  expect_number(constant(-0.0f), "-0.0");
  expect_number(constant(1e10f), "1e+10");
  expect_number(constant(123456.7f), "123456.7");
  expect_number(constant(16777216.f), "1.6777216e+07");
  expect_number(constant(1.5e-7f), "1.5e-07");
  expect_number(constant(1. / 3), "0.3333333333333333");
  expect_number(constant(123456789012.5), "123456789012.5");
  expect_number(constant(1e15), "1000000000000000.0");
  expect_number(constant(1e16), "1e+16");
  expect_number(constant(float16_t(0.1f)), "0.1");
  expect_number(constant(float16_t(2000.f)), "2e+03");
  expect_number(constant(42), "42");
}

}  // namespace
}  // namespace berth
