// Cases of conformance/fixtures/keras_layers.json. Tests only.

#ifndef BERTH_KERAS_LAYERS_FIXTURES_TESTING_H_
#define BERTH_KERAS_LAYERS_FIXTURES_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "berth/berth.h"

namespace berth::keras {

inline const nlohmann::json& layer_fixtures() {
  static const auto& all = *new nlohmann::json([] {
    std::ifstream file(BERTH_SOURCE_DIR
                       "/conformance/fixtures/keras_layers.json");
    return nlohmann::json::parse(file);
  }());
  return all;
}

inline std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& c : layer_fixtures()["cases"]) names.push_back(c["name"]);
  return names;
}

inline const nlohmann::json& layer_case(const std::string& name) {
  for (const auto& c : layer_fixtures()["cases"]) {
    if (c["name"] == name) return c;
  }
  throw std::runtime_error("there is no case " + name);
}

inline Shape shape_of(const nlohmann::json& t) {
  const auto dims = t["shape"].get<std::vector<int64_t>>();
  return Shape(dims);
}

// Text, whole numbers as int64, others as float32.
inline Tensor tensor_of(const nlohmann::json& t) {
  const nlohmann::json& v = t["values"];
  const Shape shape = shape_of(t);
  if (!v.empty() && v[0].is_string()) {
    return constant(v.get<std::vector<std::string>>(), shape);
  }
  if (!v.empty() && v[0].is_number_integer()) {
    return constant(v.get<std::vector<int64_t>>(), shape);
  }
  return constant(v.get<std::vector<float>>(), shape);
}

inline void expect_like(const Tensor& got, const nlohmann::json& want,
                        double tolerance = 2e-5) {
  ASSERT_TRUE(got.defined());
  EXPECT_EQ(got.shape(), shape_of(want));
  const nlohmann::json& v = want["values"];
  if (!v.empty() && v[0].is_string()) {
    EXPECT_EQ(got.to_vector<std::string>(), v.get<std::vector<std::string>>());
    return;
  }
  const auto values = got.to_vector<double>();
  ASSERT_EQ(values.size(), v.size());
  double scale = 1;
  for (const nlohmann::json& w : v) {
    scale = std::max(scale, std::abs(w.get<double>()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], v[i].get<double>(), tolerance * scale)
        << "element " << i;
  }
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_FIXTURES_TESTING_H_
