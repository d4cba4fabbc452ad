#include <gtest/gtest.h>

#include <map>
#include <string>

#include "berth/ops/contract.h"
#include "ops/gradient_check_testing.h"
#include "ops/testing.h"
#include "ops/unknown_dims_testing.h"

namespace berth::test {
namespace {

using testing::expect_gradients;
using testing::numbers;

// Letters of an equation's terms; the last one is the result's.
std::vector<std::string> terms_of(const std::string& equation) {
  std::vector<std::string> terms(1);
  for (const char c : equation) {
    if (c == ',' || c == '>') {
      terms.emplace_back();
    } else if (c != '-') {
      terms.back() += c;
    }
  }
  return terms;
}

// The sum over all values of all letters, one product at a time.
Tensor by_loops(const std::string& equation, const Tensors& in) {
  const std::vector<std::string> terms = terms_of(equation);
  std::map<char, int64_t> size, at;
  for (size_t i = 0; i < in.size(); ++i) {
    for (int d = 0; d < in[i].rank(); ++d) {
      size[terms[i][static_cast<size_t>(d)]] = in[i].shape()[d];
    }
  }
  const auto place = [&](const std::string& term) {
    int64_t offset = 0;
    for (const char c : term) offset = offset * size[c] + at[c];
    return static_cast<size_t>(offset);
  };
  Shape shape;
  for (const char c : terms.back()) shape.push_back(size[c]);
  Doubles out(static_cast<size_t>(shape.num_elements()), 0.0);
  std::vector<Doubles> values;
  for (const Tensor& t : in) values.push_back(doubles(t));
  for (bool more = !size.empty() || true; more;) {
    double product = 1;
    for (size_t i = 0; i < in.size(); ++i)
      product *= values[i][place(terms[i])];
    out[place(terms.back())] += product;
    more = false;
    for (auto& [letter, n] : size) {
      if (++at[letter] < n) {
        more = true;
        break;
      }
      at[letter] = 0;
    }
  }
  return constant(out, shape);
}

void expect_near(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  const Doubles a = doubles(got), b = doubles(want);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
}

struct Equation {
  const char* text;
  std::vector<Shape> in;
};

const std::vector<Equation> kEquations = {
    {"ij,jk->ik", {{2, 3}, {3, 4}}},
    {"ij,kj->ik", {{2, 3}, {4, 3}}},
    {"ji,jk->ki", {{3, 2}, {3, 4}}},
    {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
    {"bhqd,bhkd->bhqk", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
    {"bqhd,bkhd->bhqk", {{2, 3, 2, 4}, {2, 5, 2, 4}}},
    {"bsd,dhk->bshk", {{2, 3, 4}, {4, 2, 3}}},
    {"abc,cab->", {{2, 3, 4}, {4, 2, 3}}},
    {"abc,cbd->ad", {{2, 3, 4}, {4, 3, 5}}},
    {"i,j->ij", {{3}, {4}}},
    {"i,i->i", {{3}, {3}}},
    {"i,i->", {{3}, {3}}},
    {"ij,j->i", {{2, 3}, {3}}},
    {"ij,ij->ji", {{2, 3}, {2, 3}}},
    {"ijk->kj", {{2, 3, 4}}},
    {"ij->", {{2, 3}}},
    {"ij->ji", {{2, 3}}},
    {"ii->i", {{3, 3}}},
    {"ii->", {{3, 3}}},
    {"iji->j", {{3, 2, 3}}},
    {"iii->i", {{2, 2, 2}}},
    {"ii,ij->j", {{3, 3}, {3, 2}}},
    {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
    {"a,b,c->cab", {{2}, {3}, {4}}},
    {"ab,bc,ca->", {{2, 3}, {3, 4}, {4, 2}}},
    {"ab,cd->", {{2, 3}, {2, 2}}},
    {",i->i", {{}, {3}}},
    {",->", {{}, {}}},
    {",ij->ji", {{}, {2, 3}}},
    {"ij,->ij", {{2, 3}, {}}},
    {"i,jk->jik", {{2}, {3, 2}}},
    {"ik,j->ijk", {{2, 2}, {3}}},
    {"i->ii", {{3}}},
    {"ij->iji", {{2, 3}}},
    {"ij->iij", {{2, 3}}},
    {"ij->jii", {{2, 3}}},
};

TEST(Einsum, IsTheSumOverAllLettersOfTheProducts) {
  for (const Equation& e : kEquations) {
    SCOPED_TRACE(e.text);
    Tensors in;
    for (const Shape& s : e.in) {
      in.push_back(numbers(s, static_cast<int>(in.size())));
    }
    expect_near(einsum(e.text, in), by_loops(e.text, in));
    expect_gradients([&](const Tensors& x) { return einsum(e.text, x); }, in);
  }
}

TEST(Einsum, WithoutAnArrowKeepsLettersThatOccurOnceInOrder) {
  const Tensor a = numbers({2, 3}), b = numbers({3, 4}, 1);
  expect_near(einsum("ba,ac", {a, b}), einsum("ba,ac->bc", {a, b}));
  expect_near(einsum("ib", {a}), einsum("ib->bi", {a}));
  expect_near(einsum("ii", {numbers({3, 3})}),
              einsum("ii->", {numbers({3, 3})}));
  expect_near(einsum("b...,a", {a, numbers({4})}),
              einsum("bx,a->xab", {a, numbers({4})}));
}

TEST(Einsum, AxesOfAnEllipsisBroadcast) {
  const Tensor a = numbers({2, 1, 3, 4}), b = numbers({5, 4, 2}, 1);
  const Tensor y = einsum("...ij,...jk->...ik", {a, b});
  EXPECT_EQ(y.shape(), (Shape{2, 5, 3, 2}));
  expect_near(y, matmul(a, b));
  expect_near(einsum("...ij,jk->i...k", {a, numbers({4, 2})}),
              einsum("abij,jk->iabk", {a, numbers({4, 2})}));
  expect_near(einsum("...,...", {numbers({2, 1}), numbers({3}, 1)}),
              numbers({2, 1}) * numbers({3}, 1));
  expect_near(einsum("i...->...", {numbers({2, 3})}),
              math::reduce_sum(numbers({2, 3}), {.axis = {{0}}}));
  expect_gradients(
      [](const Tensors& x) { return einsum("...ij,...jk->...ik", x); }, {a, b});
}

TEST(Einsum, SpacesMeanNothingAndCapitalsComeFirst) {
  const Tensor a = numbers({2, 3});
  expect_near(einsum(" i j -> j i ", {a}), einsum("ij->ji", {a}));
  EXPECT_EQ(einsum("iJ", {a}).shape(), (Shape{3, 2}));
}

TEST(Einsum, OfNothingIsZero) {
  EXPECT_EQ(floats(einsum("ij,jk->ik", {zeros({2, 0}), zeros({0, 2})})),
            Floats(4, 0.f));
}

TEST(Einsum, AMatrixProductIsOneMatMulWithoutTransposes) {
  for (const char* text : {"bqd,bkd->bqk", "ij,jk->ik", "ji,jk->ik"}) {
    ShapesOnly tracer;
    const DispatchGuard on(&tracer);
    const int rank = text[2] == ',' ? 2 : 3;
    const Shape square = rank == 2 ? Shape{4, 4} : Shape{2, 4, 4};
    einsum(text, {symbol(square), symbol(square)});
    EXPECT_EQ(tracer.called, (std::vector<std::string>{"MatMul"})) << text;
  }
}

TEST(Einsum, SaysWhatIsWrongWithAnEquation) {
  const Tensor a = ones({2, 3});
  const auto of = [&](const char* text, Tensors in) {
    return [text, in] { einsum(text, in); };
  };
  expect_invalid(of("ij,jk->ik", {a}), "1 operands given; expected 2");
  expect_invalid(of("ij", {}), "0 operands given; expected 1");
  expect_invalid(of("ijk->i", {a}), "operand 0 is [2,3]; expected 3 axes");
  expect_invalid(of("ij->k", {a}), "no operand has the result's axis 'k'");
  expect_invalid(of("ij,ij->", {a, ones({2, 4})}), "axis 'j' is 4");
  expect_invalid(of("i.->i", {a}), "'.' is no axis");
  expect_invalid(of("i1->i", {a}), "'1' is no axis");
  expect_invalid(of("i\xe9->i", {a}), "is no axis");
  expect_invalid(of("......->", {a}), "two \"...\"");
  expect_invalid(of("i...->i", {a}), "the result none");
  expect_invalid(of("ij->i->j", {a}), "'-' is no axis");
  expect_invalid(of("ij->i,j", {a}), "',' is no axis");
  expect_invalid(of("ii", {a}), "axis 'i' is 3");
  expect_invalid(of("ijk->i", {a}), "einsum_test.cc:");
}

TEST(Tensordot, SumsOverPairsOfAxes) {
  const Tensor a = numbers({2, 3, 4}), b = numbers({4, 3, 5}, 1);
  expect_near(tensordot(a, b, {{1, 2}, {1, 0}}), einsum("aij,jib->ab", {a, b}));
  expect_near(tensordot(a, b, {{-1}, {0}}), einsum("abi,icd->abcd", {a, b}));
  const Tensor c = numbers({3, 4, 2}, 2);
  expect_near(tensordot(a, c, 2), einsum("aij,ijb->ab", {a, c}));
  expect_near(tensordot(a, c, 0), einsum("abc,def->abcdef", {a, c}));
  expect_near(tensordot(a, a, 3), einsum("abc,abc->", {a, a}));
  expect_invalid([&] { tensordot(a, b, {{0}, {0}}); }, "do not pair");
  expect_invalid([&] { tensordot(a, b, {{0, 1}, {0}}); }, "do not pair");
  expect_invalid([&] { tensordot(a, a, {{0, 0}, {0, 0}}); }, "do not pair");
  expect_invalid([&] { tensordot(a, b, 4); }, "axes is 4");
  expect_invalid([&] { tensordot(a, b, {{7}, {0}}); }, "tensordot");
}

TEST(Linalg, MatvecAndCross) {
  const Tensor a = numbers({2, 3, 4}), x = numbers({2, 4}, 1);
  expect_near(linalg::matvec(a, x), einsum("bij,bj->bi", {a, x}));
  const Tensor y = numbers({2, 3}, 1);
  expect_near(linalg::matvec(a, y, true), einsum("bji,bj->bi", {a, y}));
  const Tensor i = constant({1.f, 0.f, 0.f}), j = constant({0.f, 1.f, 0.f});
  EXPECT_EQ(floats(linalg::cross(i, j)), (Floats{0, 0, 1}));
  EXPECT_EQ(floats(linalg::cross(j, i)), (Floats{0, 0, -1}));
  const Tensor u = numbers({4, 3}), v = numbers({4, 3}, 1);
  expect_near(math::reduce_sum(linalg::cross(u, v) * u, {.axis = {{-1}}}),
              zeros({4}, float64));
  expect_invalid([&] { linalg::cross(a, a); }, "expected [..., 3]");
}

TEST(Contractions, PassUnknownDimensionsThroughBothOrders) {
  const auto of = [](const char* text) {
    return [text](const Tensors& x) { return einsum(text, x); };
  };
  const std::vector<UnknownCase> cases = {
      {"rows", {{-2, 3}, {3, 4}}, of("ij,jk->ik")},
      {"sequences", {{-2, -3, 4}, {4, 2, 3}}, of("bsd,dhk->bshk")},
      {"attention", {{-2, -3, 2, 4}, {-2, -3, 2, 4}}, of("bqhd,bkhd->bhqk")},
      {"inner", {{2, -2}, {-2, 3}}, of("ij,jk->ik")},
      {"outer", {{-2}, {-3}}, of("i,j->ij")},
      {"one anonymous", {{-1, 3}, {3, 4}}, of("ij,jk->ik")},
      {"tensordot", {{-2, 3, 4}, {4, 3}}, [](const Tensors& x) {
         return tensordot(x[0], x[1], {{2, 1}, {0, 1}});
       }}};
  for (const UnknownCase& k : cases) expect_gradient_shapes(k);
  ShapesOnly tracer;
  const DispatchGuard on(&tracer);
  EXPECT_EQ(
      einsum("bsd,dhk->bshk", {symbol({-2, -3, 4}), symbol({4, 2, 3})}).shape(),
      (Shape{-2, -3, 2, 3}));
  expect_invalid(
      [] {
        einsum("abcd,cdabe->e",
               {symbol({-1, -1, -1, -1}), symbol({-1, -1, -1, -1, -1})});
      },
      "at most one that is not known");
}

}  // namespace
}  // namespace berth::test
