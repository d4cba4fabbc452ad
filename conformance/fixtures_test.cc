// Every case of fixtures/ops*.json (NumPy and PyTorch) against the op, run
// eagerly on the device under test. The format is in fixtures/README.md.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/environment.h"
#include "conformance/device_run.h"
#include "op/op_registry.h"

namespace berth::conformance {

namespace {

using Json = nlohmann::json;

// Where they are, or, for a program that was carried away, where they are now.
std::string fixtures() {
  const std::string folder = environment("BERTH_FIXTURES");
  return folder.empty() ? BERTH_FIXTURES : folder;
}

double number(const Json& j) {
  if (!j.is_string()) return j.get<double>();
  if (j == "nan") return std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  return j == "inf" ? inf : -inf;
}

Array array_of(const Json& j) {
  const auto dims = j.at("shape").get<std::vector<int64_t>>();
  Array a(dtype_from_name(j.at("dtype").get<std::string>()), Shape(dims));
  int64_t i = 0;
  for (const Json& v : j.at("data")) {
    if (a.dtype() == int64) {
      const int64_t whole = v.get<int64_t>();
      std::memcpy(a.data() + i * 8, &whole, 8);
    } else if (a.dtype() == uint64) {
      const uint64_t whole = v.get<uint64_t>();
      std::memcpy(a.data() + i * 8, &whole, 8);
    } else {
      a.set(i, number(v));
    }
    ++i;
  }
  EXPECT_EQ(i, a.parts());
  return a;
}

// A JSON value as the type that the op declares.
AttrValue attr_of(const AttrValue& like, const Json& j) {
  if (std::holds_alternative<bool>(like)) return j.get<bool>();
  if (std::holds_alternative<int64_t>(like)) return j.get<int64_t>();
  if (std::holds_alternative<double>(like)) return j.get<double>();
  if (std::holds_alternative<std::string>(like)) return j.get<std::string>();
  if (std::holds_alternative<DType>(like)) {
    return dtype_from_name(j.at("dtype").get<std::string>());
  }
  if (std::holds_alternative<Shape>(like)) {
    return Shape(j.get<std::vector<int64_t>>());
  }
  return j.get<std::vector<int64_t>>();
}

// True for a value that means "as usual": an op may leave it out.
bool is_neutral(const Json& j) {
  if (j == false) return true;
  if (!j.is_array()) return false;
  for (const Json& v : j) {
    if (v != 1) return false;
  }
  return true;
}

// Names that the engine has under another name.
Json renamed(Json c) {
  if (c.at("op") != "BatchMatMulV2") return c;
  const Json& attrs = c.at("attrs");
  c["attrs"] = {{"transpose_a", attrs.at("adj_x")},
                {"transpose_b", attrs.at("adj_y")}};
  c["op"] = "MatMul";
  return c;
}

AttrsRef attrs_of(const OpDef& op, const Json& attrs) {
  std::vector<Attrs::Pair> pairs;
  for (const auto& [name, value] : attrs.items()) {
    bool found = false;
    for (const AttrDef& a : op.attrs()) {
      if (a.name != name) continue;
      pairs.push_back({name, attr_of(a.default_value, value)});
      found = true;
    }
    EXPECT_TRUE(found || is_neutral(value))
        << op.name() << " has no attribute '" << name << "'";
  }
  return pairs.empty() ? AttrsRef() : AttrsRef(std::move(pairs));
}

// Results are the outputs, or the variables that the op writes.
Arrays results_of(const OpDef& op, const Json& c) {
  const AttrsRef attrs = attrs_of(op, c.at("attrs"));
  Tensors in, written;
  for (const Json& j : c.at("inputs")) {
    const ArgDef& arg = op.input(static_cast<int>(in.size()));
    const bool variable = arg.access != Access::kValue;
    in.push_back(variable ? to_variable(array_of(j)) : to_device(array_of(j)));
    if (writes(arg.access)) written.push_back(in.back());
  }
  Arrays results;
  for (const Tensor& t : call_on_device(op, in, attrs.get())) {
    results.push_back(to_host(t));
  }
  if (!results.empty()) return results;
  for (const Tensor& t : written) results.push_back(value_of(t));
  return results;
}

class FixtureTest final : public testing::Test {
 public:
  explicit FixtureTest(const Json* c) : case_(*c) {}

  void TestBody() override {
    const Json c = renamed(case_);
    // Throws when there is no such op.
    const OpDef& op = op_named(c.at("op").get<std::string>());
    if (accelerator_lacks(op)) GTEST_SKIP() << "host devices alone have it";
    const Arrays got = results_of(op, c);
    // An op may have more, for its own gradient.
    ASSERT_GE(got.size(), c.at("outputs").size());
    const Tolerance t{c.at("rtol").get<double>(), c.at("atol").get<double>()};
    for (size_t i = 0; i < c.at("outputs").size(); ++i) {
      const Array want = array_of(c.at("outputs")[i]);
      EXPECT_EQ(difference(got[i], want, t), "") << "output " << i;
    }
  }

 private:
  const Json& case_;
};

void register_fixtures(const Json& file) {
  for (const Json& c : file.at("cases")) {
    testing::RegisterTest("fixture", c.at("name").get<std::string>().c_str(),
                          nullptr, nullptr, __FILE__, __LINE__,
                          [&c]() -> testing::Test* {  // gtest owns it
                            return std::make_unique<FixtureTest>(&c).release();
                          });
  }
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::string device;  // --device=NAME, as conformance has it
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (!arg.starts_with("--device=")) {
      fmt::print(stderr, "fixtures_test: '{}' is not understood\n", arg);
      return 2;
    }
    device = arg.substr(9);
  }
  choose_device(device);
  static const Json files[] = {
      Json::parse(std::ifstream(fixtures() + "/ops.json")),
      Json::parse(std::ifstream(fixtures() + "/ops_dtypes.json")),
      Json::parse(std::ifstream(fixtures() + "/ops_integers.json"))};
  for (const Json& file : files) register_fixtures(file);
  const int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 0 ||
      GTEST_FLAG_GET(list_tests)) {
    return failed;
  }
  fmt::print(stderr, "fixtures_test: no test matches the filter\n");
  return 1;
}

}  // namespace

}  // namespace berth::conformance

int main(int argc, char** argv) {
  try {
    return berth::conformance::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "fixtures_test: {}\n", e.what());
    return 1;
  }
}
