// Layers of preprocessing against Keras' own, and what they refuse.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>

#include "berth/berth.h"
#include "keras/layers/fixtures_testing.h"
#include "keras/layers/layers_testing.h"

namespace berth::keras {
namespace {

using Ints = std::vector<int64_t>;
using Words = std::vector<std::string>;
using MakeOne = std::function<Layer()>;

RandomTransformOptions filled(const std::string& mode) {
  return {.fill_mode = mode, .fill_value = mode == "constant" ? 9.0 : 0.0};
}

const std::map<std::string, MakeOne>& preprocessing_cases() {
  static const auto& all = *new std::map<std::string, MakeOne>{
      {"Resizing/crop",
       [] { return Resizing(4, 4, {.crop_to_aspect_ratio = true}); }},
      {"Resizing/pad",
       [] {
         return Resizing(6, 4, {.pad_to_aspect_ratio = true, .fill_value = 7});
       }},
      {"UpSampling2D/bilinear",
       [] {
         return UpSampling2D({2, 3}, {.interpolation = "bilinear"});
       }},
      {"UpSampling2D/bicubic",
       [] { return UpSampling2D(2, {.interpolation = "bicubic"}); }},
      {"CenterCrop", [] { return CenterCrop(3, 3); }},
      {"CenterCrop/larger", [] { return CenterCrop(4, 8); }},
      {"RandomCrop/same", [] { return RandomCrop(5, 3); }},
      {"RandomRotation/nearest_pixel",
       [] {
         return RandomRotation({0.25, 0.25}, {.interpolation = "nearest"});
       }},
      {"RandomZoom/in",
       [] {
         return RandomZoom(Factor{-0.4, -0.4});
       }},
      {"RandomBrightness",
       [] {
         return RandomBrightness({0.2, 0.2});
       }},
      {"RandomBrightness/range",
       [] {
         return RandomBrightness({-0.3, -0.3}, {.value_range = {0, 1}});
       }},
      {"RandomContrast",
       [] {
         return RandomContrast({0, 0});
       }},
      {"RandomGrayscale", [] { return RandomGrayscale(1); }},
      {"RandomInvert",
       [] {
         return RandomInvert({1, 1});
       }},
      {"RandomPosterization", [] { return RandomPosterization(3); }},
      {"RandomSaturation",
       [] {
         return RandomSaturation({0.3, 0.3});
       }},
      {"RandomHue",
       [] {
         return RandomHue({0, 0});
       }},
      {"RandomColorDegeneration",
       [] {
         return RandomColorDegeneration({0.4, 0.4});
       }},
      {"RandomSharpness",
       [] {
         return RandomSharpness({0.7, 0.7});
       }},
      {"Normalization",
       [] {
         return Normalization({.mean = {1, 2, 3}, .variance = {4, 0.25, 0}});
       }},
      {"Normalization/scalar",
       [] {
         return Normalization({.axis = {}, .mean = {0.5}, .variance = {4}});
       }},
      {"Normalization/invert",
       [] {
         return Normalization({.mean = {2}, .variance = {9}, .invert = true});
       }},
      {"Discretization",
       [] {
         return Discretization({.bin_boundaries = {-1, 0.5, 2}});
       }},
      {"Discretization/one_hot",
       [] {
         return Discretization(
             {.bin_boundaries = {0, 1}, .output_mode = "one_hot"});
       }},
      {"Discretization/multi_hot",
       [] {
         return Discretization(
             {.bin_boundaries = {0, 1}, .output_mode = "multi_hot"});
       }},
      {"Discretization/count",
       [] {
         return Discretization(
             {.bin_boundaries = {0, 1}, .output_mode = "count"});
       }},
      {"CategoryEncoding/multi_hot", [] { return CategoryEncoding(4); }},
      {"CategoryEncoding/count",
       [] { return CategoryEncoding(4, {.output_mode = "count"}); }},
      {"CategoryEncoding/one_hot",
       [] { return CategoryEncoding(4, {.output_mode = "one_hot"}); }},
      {"CategoryEncoding/one_hot_column",
       [] { return CategoryEncoding(4, {.output_mode = "one_hot"}); }},
      {"CategoryEncoding/weights",
       [] { return CategoryEncoding(4, {.output_mode = "count"}); }},
      {"IntegerLookup",
       [] {
         return IntegerLookup({.vocabulary = {12, 36, 1138, 42}});
       }},
      {"IntegerLookup/oov",
       [] {
         return IntegerLookup(
             {.num_oov_indices = 3, .vocabulary = {12, 36, 42}});
       }},
      {"IntegerLookup/mask",
       [] {
         return IntegerLookup({.mask_token = 1000, .vocabulary = {12, 36, 42}});
       }},
      {"IntegerLookup/multi_hot",
       [] {
         return IntegerLookup(
             {.vocabulary = {12, 36, 42}, .output_mode = "multi_hot"});
       }},
      {"IntegerLookup/count",
       [] {
         return IntegerLookup({.max_tokens = 6,
                               .vocabulary = {12, 36, 42},
                               .output_mode = "count",
                               .pad_to_max_tokens = true});
       }},
      {"IntegerLookup/one_hot",
       [] {
         return IntegerLookup(
             {.vocabulary = {12, 36, 42}, .output_mode = "one_hot"});
       }},
      {"IntegerLookup/invert",
       [] {
         return IntegerLookup({.vocabulary = {12, 36, 42}, .invert = true});
       }},
      {"IntegerLookup/tf_idf",
       [] {
         return IntegerLookup({.vocabulary = {12, 36, 42},
                               .idf_weights = {0.25, 0.75, 0.5},
                               .output_mode = "tf_idf"});
       }},
      {"StringLookup",
       [] {
         return StringLookup({.vocabulary = {"a", "b", "c", "d"}});
       }},
      {"StringLookup/oov",
       [] {
         return StringLookup({.num_oov_indices = 3,
                              .mask_token = "",
                              .vocabulary = {"a", "b"}});
       }},
      {"StringLookup/multi_hot",
       [] {
         return StringLookup(
             {.vocabulary = {"a", "b", "c", "d"}, .output_mode = "multi_hot"});
       }},
      {"StringLookup/invert",
       [] {
         return StringLookup({.vocabulary = {"a", "b"}, .invert = true});
       }},
      {"Hashing", [] { return Hashing(3); }},
      {"Hashing/mask", [] { return Hashing(3, {.mask_value = ""}); }},
      {"Hashing/long", [] { return Hashing(1000000); }},
      {"Hashing/salt",
       [] {
         return Hashing(1000000, {.salt = Salt{133, 137}});
       }},
      {"Hashing/one_salt", [] { return Hashing(7, {.salt = 133}); }},
      {"Hashing/numbers", [] { return Hashing(11); }},
      {"Hashing/one_hot",
       [] { return Hashing(3, {.output_mode = "one_hot"}); }},
      {"Hashing/count", [] { return Hashing(3, {.output_mode = "count"}); }},
      {"HashedCrossing", [] { return HashedCrossing(5); }},
  };
  return all;
}

// "Resizing/lanczos3_down" and the like.
std::optional<Layer> layer_by_name(const std::string& name) {
  const auto& all = preprocessing_cases();
  if (const auto it = all.find(name); it != all.end()) return it->second();
  const size_t slash = name.find('/');
  const std::string type = name.substr(0, slash);
  const std::string rest = slash == name.npos ? "" : name.substr(slash + 1);
  if (type == "Resizing") {
    const size_t end = rest.find('_');
    const std::string kind = rest.substr(0, end);
    const std::string how = end == rest.npos ? "" : rest.substr(end + 1);
    if (how == "antialias") {
      return Resizing(2, 3, {.interpolation = kind, .antialias = true});
    }
    return how == "down" ? Resizing(3, 4, {.interpolation = kind})
                         : Resizing(8, 9, {.interpolation = kind});
  }
  if (type == "RandomRotation") return RandomRotation({0.1, 0.1}, filled(rest));
  if (type == "RandomTranslation") {
    return RandomTranslation({0.35, 0.35}, {-0.4, -0.4}, {.fill_mode = rest});
  }
  if (type == "RandomZoom") {
    return RandomZoom({0.6, 0.6}, Factor{0.3, 0.3}, {.fill_mode = rest});
  }
  return std::nullopt;
}

class KerasPreprocessing : public testing::TestWithParam<std::string> {};

TEST_P(KerasPreprocessing, HasKerasOutputs) {
  const auto& c = layer_case(GetParam());
  const Layer layer = *layer_by_name(GetParam());
  Tensors x;
  for (const auto& t : c["inputs"]) x.push_back(tensor_of(t));
  // Lookup tables of weights in TensorFlow's bicubic have 1024 places.
  const bool table = GetParam().find("bicubic") != std::string::npos;
  expect_like(layer(x, true)[0], c["outputs"][0], table ? 2e-3 : 3e-5);
}

std::vector<std::string> preprocessing_names() {
  std::vector<std::string> names;
  for (const std::string& name : case_names()) {
    if (name.find("/adapt") == name.npos && name != "Normalization/axes" &&
        layer_by_name(name)) {
      names.push_back(name);
    }
  }
  return names;
}

std::string preprocessing_name(
    const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (char c : info.param) name += std::isalnum(c) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, KerasPreprocessing,
                         testing::ValuesIn(preprocessing_names()),
                         preprocessing_name);

TEST(Normalization, LearnsMeanAndVariance) {
  const auto& c = layer_case("Normalization/adapt");
  const Tensor data = tensor_of(c["inputs"][0]);
  const Normalization whole, batches;
  auto learn = [](Normalization layer, const AdaptData& from) {
    layer.adapt(from);
    return layer;
  };
  const auto a = learn(whole, data);
  expect_like(a(tensor_of(c["inputs"][1])), c["outputs"][0]);
  const auto b =
      learn(batches, data::Dataset::from_tensor_slices({data}).batch(3));
  expect_like(b(tensor_of(c["inputs"][1])), c["outputs"][0]);
  const auto& axes = layer_case("Normalization/axes");
  const auto d =
      learn(Normalization({.axis = {1, 2}}), tensor_of(axes["inputs"][0]));
  expect_like(d(tensor_of(axes["inputs"][1])), axes["outputs"][0]);
  EXPECT_EQ(d.non_trainable_variables().size(), 3u);  // and the count
  EXPECT_THROW(Normalization({.mean = {1}}), errors::InvalidArgument);
}

TEST(Discretization, LearnsQuantiles) {
  for (const int bins : {2, 5}) {
    const auto& c = layer_case("Discretization/adapt_" + std::to_string(bins));
    Discretization layer({.num_bins = bins});
    EXPECT_THROW(layer(ones({1})), errors::InvalidArgument);
    layer.adapt(tensor_of(c["inputs"][0]));
    const auto got = layer.bin_boundaries();
    expect_like(constant(got, {static_cast<int64_t>(got.size())}),
                c["outputs"][0], 1e-4);
  }
  EXPECT_THROW(Discretization({}), errors::InvalidArgument);
  EXPECT_THROW(Discretization({.bin_boundaries = {2, 1}}),
               errors::InvalidArgument);
}

TEST(IntegerLookup, LearnsTheMostFrequent) {
  const auto& c = layer_case("IntegerLookup/adapt");
  IntegerLookup layer({.max_tokens = 4});
  EXPECT_THROW(layer(constant({1})), errors::InvalidArgument);
  layer.adapt(tensor_of(c["inputs"][0]));
  expect_like(layer(tensor_of(c["inputs"][1])), c["outputs"][0]);
}

TEST(IntegerLookup, TracesToTheSame) {
  const Tensor x = constant(Ints{12, 7, 36, 1000, 12, -5}, {2, 3});
  const IntegerLookup all[] = {
      IntegerLookup({.vocabulary = {36, 12, 42}}),
      IntegerLookup({.num_oov_indices = 3, .vocabulary = {36, 12, 42}}),
      IntegerLookup({.mask_token = 7, .vocabulary = {36, 12}}),
      IntegerLookup({.vocabulary = {36, 12}, .output_mode = "count"}),
      IntegerLookup({.mask_token = 7,
                     .vocabulary = {36, 12},
                     .output_mode = "multi_hot"})};
  for (const IntegerLookup& layer : all) {
    const auto traced =
        function([&](const Tensor& t) { return Tensor(layer(t)); });
    EXPECT_EQ(traced(x).to_vector<double>(), layer(x).to_vector<double>());
  }
  const IntegerLookup closed(
      {.num_oov_indices = 0, .vocabulary = {36, 12, 7, 1000, -5}});
  EXPECT_EQ(closed(x).to_vector<int64_t>(), (Ints{1, 2, 0, 3, 1, 4}));
  EXPECT_THROW(closed(constant({8})), errors::InvalidArgument);
}

TEST(StringLookup, LearnsTheMostFrequent) {
  for (const std::string mode : {"int", "count", "tf_idf"}) {
    SCOPED_TRACE(mode);
    const auto& c = layer_case("StringLookup/adapt_" + mode);
    StringLookup layer({.output_mode = mode});
    layer.adapt(tensor_of(c["inputs"][0]));
    EXPECT_EQ(layer.get_vocabulary(), c["vocabulary"].get<Words>());
    expect_like(layer(tensor_of(c["inputs"][1])), c["outputs"][0]);
  }
}

TEST(StringLookup, ReadsAndChecksVocabularies) {
  const std::string path = testing::TempDir() + "/words.txt";
  std::ofstream(path) << "one\ntwo\r\nthree\n";
  const StringLookup layer({.vocabulary_file = path});
  std::remove(path.c_str());
  EXPECT_EQ(layer.get_vocabulary(), (Words{"[UNK]", "one", "two", "three"}));
  EXPECT_EQ(layer.get_vocabulary(false), (Words{"one", "two", "three"}));
  EXPECT_EQ(layer.vocabulary_size(), 4);
  EXPECT_THROW(StringLookup({.vocabulary_file = path}),
               errors::InvalidArgument);
  EXPECT_THROW(StringLookup({.vocabulary = {"a", "a"}}),
               errors::InvalidArgument);
  EXPECT_THROW(StringLookup({.max_tokens = 2, .vocabulary = {"a", "b"}}),
               errors::InvalidArgument);
  EXPECT_THROW(StringLookup({.mask_token = "b", .vocabulary = {"a", "b"}}),
               errors::InvalidArgument);
  EXPECT_THROW(StringLookup({.invert = true, .output_mode = "count"}),
               errors::InvalidArgument);
  EXPECT_THROW(layer(constant({1})), errors::InvalidArgument);
  StringLookup fixed({.vocabulary = {"a"}});
  EXPECT_THROW(fixed.adapt(constant({"b"})), errors::InvalidArgument);
  // Special tokens in front are told from others.
  fixed.set_vocabulary({"[UNK]", "x", "y"});
  EXPECT_EQ(fixed(constant({"y", "z"})).to_vector<int64_t>(), (Ints{2, 0}));
}

TEST(TextVectorization, HasKerasVocabulariesAndOutputs) {
  using Options = TextVectorizationOptions;
  const std::map<std::string, Options> all{
      {"int", {}},
      {"length", {.max_tokens = 5, .output_sequence_length = 2}},
      {"longer", {.output_sequence_length = 6}},
      {"ngrams", {.ngrams = 2}},
      {"ngrams_2_3", {.ngrams = Ngrams{{2, 3}}}},
      {"multi_hot",
       {.max_tokens = 12,
        .output_mode = "multi_hot",
        .pad_to_max_tokens = true}},
      {"count", {.output_mode = "count"}},
      {"tf_idf", {.output_mode = "tf_idf"}},
      {"lower", {.standardize = "lower"}},
      {"strip", {.standardize = "strip_punctuation"}},
      {"none", {.standardize = ""}},
      {"characters", {.split = "character"}},
  };
  for (const auto& [name, options] : all) {
    SCOPED_TRACE(name);
    const auto& c = layer_case("TextVectorization/" + name);
    TextVectorization layer(options);
    layer.adapt(tensor_of(c["inputs"][0]));
    EXPECT_EQ(layer.get_vocabulary(), c["vocabulary"].get<Words>());
    expect_like(layer(tensor_of(c["inputs"][1])), c["outputs"][0]);
  }
}

TEST(TextVectorization, TakesFunctionsAndSurvivesBrokenText) {
  TextVectorizationOptions options;
  options.standardize_fn = [](const std::string& s) { return s + ",END"; };
  options.split_fn = [](const std::string& s) {
    return Words{s.substr(0, s.find(',')), s.substr(s.find(',') + 1)};
  };
  options.vocabulary = {"END", "a"};
  EXPECT_EQ(
      TextVectorization(options)(constant({"a", "b"})).to_vector<int64_t>(),
      (Ints{3, 2, 1, 2}));
  TextVectorization characters({.standardize = "", .split = "character"});
  characters.adapt(constant({"\xff\xc3\xa9\xe2\x82"}));
  EXPECT_EQ(characters.get_vocabulary(false),
            (Words{"\xef\xbf\xbd", "\xc3\xa9"}));
  EXPECT_THROW(TextVectorization({.split = "words"}), errors::InvalidArgument);
  EXPECT_THROW(characters(constant({1})), errors::InvalidArgument);
}

// Works on a pipeline's threads.
TEST(TextVectorization, MapsADataset) {
  const TextVectorization layer(
      {.output_sequence_length = 2, .vocabulary = {"a", "b"}});
  auto batches =
      data::Dataset::from_tensor_slices({constant({"a b c", "b", "x a"})})
          .map([=](const Tensors& e) { return Tensors{layer(e[0])}; },
               {.num_parallel_calls = 2})
          .batch(3);
  for (const Tensors& b : batches) {
    EXPECT_EQ(b[0].to_vector<int64_t>(), (Ints{2, 3, 3, 0, 1, 2}));
  }
}

TEST(RandomLayers, ActInTrainingOnlyAndFollowTheSeed) {
  random::set_seed(7);
  const Tensor x = random::uniform({4, 6, 5, 3}, {.maxval = 255});
  const std::vector<MakeOne> all{
      [] { return RandomFlip(); },
      [] { return RandomRotation(0.3); },
      [] { return RandomTranslation(0.3, 0.3); },
      [] { return RandomZoom(0.4); },
      [] { return RandomShear(0.5, 0.5); },
      [] { return RandomBrightness(0.5); },
      [] { return RandomContrast(0.9); },
      [] { return RandomHue(0.9); },
      [] { return RandomSaturation(0.9); },
      [] { return RandomInvert(0.5); },
  };
  for (const MakeOne& make : all) {
    const Layer layer = make();
    SCOPED_TRACE(layer.name());
    EXPECT_EQ(layer(x).to_vector<float>(), x.to_vector<float>());
    random::set_seed(1);
    const auto first = layer(x, true).to_vector<float>();
    const auto second = layer(x, true).to_vector<float>();
    random::set_seed(1);
    EXPECT_EQ(layer(x, true).to_vector<float>(), first);
    EXPECT_NE(second, first);
    EXPECT_EQ(layer(x[{0}], true).shape(), (Shape{6, 5, 3}));
    const auto traced =
        function([&](const Tensor& t) { return layer(t, true); });
    EXPECT_EQ(traced(x).shape(), x.shape());
  }
}

TEST(RandomFlip, GivesEachImageOrItsMirror) {
  random::set_seed(2);
  const auto layer = RandomFlip("horizontal");
  const Tensor x = reshape(range(0, 400, 1, float32), {100, 2, 2, 1});
  const auto y = layer(x, true).to_vector<float>();
  int flipped = 0;
  for (int i = 0; i < 100; ++i) {
    const float a = y[4 * i], b = y[4 * i + 1];
    EXPECT_EQ(std::abs(a - b), 1);
    EXPECT_EQ(std::min(a, b), 4 * i);
    flipped += a > b;
  }
  EXPECT_GT(flipped, 25);
  EXPECT_LT(flipped, 75);
}

TEST(RandomCrop, TakesAPartOfTheImage) {
  random::set_seed(3);
  const auto layer = RandomCrop(2, 3);
  const Tensor x = reshape(range(0, 60, 1, float32), {1, 6, 10, 1});
  std::set<float> corners;
  for (int i = 0; i < 40; ++i) {
    const auto y = layer(x, true).to_vector<float>();
    const float c = y[0];
    corners.insert(c);
    EXPECT_EQ(y, (Floats{c, c + 1, c + 2, c + 10, c + 11, c + 12}));
  }
  EXPECT_GT(corners.size(), 10u);
  EXPECT_EQ(layer(x).to_vector<float>(), (Floats{23, 24, 25, 33, 34, 35}));
}

TEST(Solarization, TurnsBrightPixelsAround) {
  const auto layer = Solarization(
      {.addition_factor = {0.2, 0.2}, .threshold_factor = {0.5, 0.5}});
  const Tensor x = constant(Floats{0, 76, 77, 250}, {1, 2, 2, 1});
  expect_near(layer(x, true), {51, 127, 127, 0}, 1e-4);
}

TEST(AlphaDropout, KeepsMeanAndVariance) {
  random::set_seed(4);
  const auto layer = AlphaDropout(0.3);
  const Tensor x = random::normal({400, 250});
  const Tensor y = layer(x, true);
  EXPECT_NEAR(math::reduce_mean(y).item<float>(), 0, 0.02);
  EXPECT_NEAR(math::reduce_variance(y).item<float>(), 1, 0.03);
  EXPECT_EQ(layer(x).to_vector<float>(), x.to_vector<float>());
}

TEST(Lambda, CallsItsFunction) {
  const auto twice = Lambda([](const Tensor& x) { return x * 2.0; });
  EXPECT_EQ(twice(ones({2})).to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(twice(Input({3})).shape(), (Shape{-1, 3}));
  const auto swap = Lambda([](const Tensors& x) {
    return Tensors{x[1], x[0]};
  });
  EXPECT_EQ(swap(Tensors{zeros({1}), ones({2})})[0].shape(), (Shape{2}));
  EXPECT_THROW(twice(Tensors{ones({1}), ones({1})}), errors::InvalidArgument);
}

TEST(Initializers, OrthogonalIdentityAndScaled) {
  using initializers::Orthogonal, initializers::VarianceScaling;
  for (const Shape& shape : {Shape{6, 4}, Shape{2, 2, 7}, Shape{5, 5}}) {
    const Tensor q = Orthogonal({.gain = 2, .seed = 1})(shape);
    EXPECT_EQ(q.shape(), shape);
    const int64_t columns = shape[shape.rank() - 1];
    const int64_t rows = shape.num_elements() / columns;
    const Tensor m = reshape(q, {rows, columns});
    const bool tall = rows >= columns;
    const Tensor product =
        matmul(m, m, {.transpose_a = tall, .transpose_b = !tall});
    expect_near(product,
                (eye(std::min(rows, columns)) * 4.0).to_vector<float>(), 1e-5);
  }
  expect_near(initializers::Identity(3)({2, 3}), {3, 0, 0, 0, 3, 0}, 0);
  auto variance = [](const Initializer& i) {
    return math::reduce_variance(i({400, 100})).item<float>();
  };
  EXPECT_NEAR(variance("lecun_normal"), 1 / 400., 1e-4);
  EXPECT_NEAR(variance("lecun_uniform"), 1 / 400., 1e-4);
  EXPECT_NEAR(
      variance(VarianceScaling(
          {.scale = 2, .mode = "fan_geo_avg", .distribution = "uniform"})),
      2 / 200., 3e-4);
  EXPECT_NEAR(variance(VarianceScaling(
                  {.mode = "fan_out", .distribution = "untruncated_normal"})),
              1 / 100., 3e-4);
  EXPECT_THROW(VarianceScaling({.mode = "in"}), errors::InvalidArgument);
  EXPECT_THROW(Orthogonal()({3}), errors::InvalidArgument);
}

TEST(Layers, MergeAsFunctions) {
  const Tensor a = constant({1.f, 4.f}), b = constant({3.f, 2.f});
  EXPECT_EQ(layers::add({a, b}).to_vector<float>(), (Floats{4, 6}));
  EXPECT_EQ(layers::maximum({a, b}).to_vector<float>(), (Floats{3, 4}));
  const KerasTensor x = Input({3}), y = Input({2});
  EXPECT_EQ(layers::concatenate(KerasTensors{x, y}).shape(), (Shape{-1, 5}));
}

}  // namespace
}  // namespace berth::keras
