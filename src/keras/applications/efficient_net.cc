// EfficientNet (Tan and Le 2019), and what networks of images take.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/applications.h"
#include "berth/keras/element_layers.h"
#include "berth/keras/image_layers.h"
#include "berth/keras/preprocessing_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/layers/noise_shape.h"

namespace berth::keras::applications {

namespace {

// Factors of channels and of blocks, and the rate of dropout.
struct Scaling {
  const char *what, *usual;
  double width, depth, dropout;
};
constexpr std::array<Scaling, 8> kScalings = {{
    {"EfficientNetB0", "efficientnetb0", 1.0, 1.0, 0.2},
    {"EfficientNetB1", "efficientnetb1", 1.0, 1.1, 0.2},
    {"EfficientNetB2", "efficientnetb2", 1.1, 1.2, 0.3},
    {"EfficientNetB3", "efficientnetb3", 1.2, 1.4, 0.3},
    {"EfficientNetB4", "efficientnetb4", 1.4, 1.8, 0.4},
    {"EfficientNetB5", "efficientnetb5", 1.6, 2.2, 0.4},
    {"EfficientNetB6", "efficientnetb6", 1.8, 2.6, 0.5},
    {"EfficientNetB7", "efficientnetb7", 2.0, 3.1, 0.5},
}};
struct MobileStage {
  int64_t kernel, repeats, in, out, expansion, stride;
};
constexpr std::array<MobileStage, 7> kMobileStages = {{{3, 1, 32, 16, 1, 1},
                                                       {3, 2, 16, 24, 6, 2},
                                                       {5, 2, 24, 40, 6, 2},
                                                       {3, 3, 40, 80, 6, 2},
                                                       {5, 3, 80, 112, 6, 1},
                                                       {5, 4, 112, 192, 6, 2},
                                                       {3, 1, 192, 320, 6, 1}}};

class EfficientNet {
 public:
  EfficientNet(const Scaling& s, const ImageOptions& o, Site site)
      : s_(s), o_(o), site_(site) {
    if (o.classes > 0 && o.image_size >= 32 && o.channels > 0 && o.alpha > 0 &&
        o.alpha <= 8) {
      return;
    }
    throw errors::InvalidArgument(fmt::format(
        "{}{}: classes is {}, image_size {}, channels {}, alpha {}; expected "
        "classes and channels of at least 1, images from 32, alpha above 0 and "
        "at most 8",
        s.what, where_text(nullptr, site), o.classes, o.image_size, o.channels,
        o.alpha));
  }

  Model make() const {
    const KerasTensor in =
        Input({o_.image_size, o_.image_size, o_.channels}, {}, site_);
    KerasTensor x = Rescaling(1.0 / 255, {.name = "rescaling"}, site_)(in);
    x = Normalization({.name = "normalization"}, site_)(x);
    x = act(conv(x, wide(32), 3, 2, "stem_conv"), "stem");
    double total = 0, done = 0;
    for (const MobileStage& stage : kMobileStages) {
      total += static_cast<double>(repeats(stage));
    }
    for (size_t i = 0; i < kMobileStages.size(); ++i) {
      const MobileStage& stage = kMobileStages[i];
      for (int64_t k = 0; k < repeats(stage); ++k) {
        x = block(x, stage, k == 0, 0.2 * done / total,
                  fmt::format("block{}{}_", i + 1,
                              static_cast<char>('a' + static_cast<char>(k))));
        ++done;
      }
    }
    x = act(conv(x, wide(1280), 1, 1, "top_conv"), "top");
    if (o_.include_top) {
      x = GlobalAveragePooling2D({.name = "avg_pool"}, site_)(x);
      x = Dropout(s_.dropout, {.name = "top_dropout"}, site_)(x);
      x = Dense(o_.classes,
                {.activation = o_.classifier_activation, .name = "predictions"},
                site_)(x);
    }
    return Model(in, x, {.name = o_.name.empty() ? s_.usual : o_.name}, site_);
  }

 private:
  // A multiple of 8 near channels times the factors.
  int64_t wide(int64_t channels) const {
    const double want = static_cast<double>(channels) * s_.width * o_.alpha;
    const auto near =
        std::max<int64_t>(8, static_cast<int64_t>(want + 4) / 8 * 8);
    return static_cast<double>(near) < 0.9 * want ? near + 8 : near;
  }
  int64_t repeats(const MobileStage& stage) const {
    return static_cast<int64_t>(
        std::ceil(s_.depth * static_cast<double>(stage.repeats)));
  }
  KerasTensor conv(const KerasTensor& x, int64_t filters, int64_t size,
                   int64_t strides, const std::string& name) const {
    return Conv2D(filters, size,
                  {.padding = "same",
                   .strides = strides,
                   .use_bias = false,
                   .kernel_initializer = "he_normal",
                   .name = name},
                  site_)(x);
  }
  KerasTensor norm(const KerasTensor& x, const std::string& name) const {
    return BatchNormalization({.name = name + "bn"}, site_)(x);
  }
  KerasTensor act(const KerasTensor& x, const std::string& name) const {
    const std::string stem = name.ends_with('_') ? name : name + "_";
    return Activation("swish", {.name = stem + "activation"},
                      site_)(norm(x, stem));
  }

  KerasTensor block(const KerasTensor& in, const MobileStage& stage, bool first,
                    double drop, const std::string& name) const {
    const int64_t channels = in.shape()[3];
    const int64_t inner = channels * stage.expansion;
    KerasTensor x = in;
    if (stage.expansion > 1) {
      x = act(conv(x, inner, 1, 1, name + "expand_conv"), name + "expand_");
    }
    x = DepthwiseConv2D(stage.kernel,
                        {.padding = "same",
                         .strides = first ? stage.stride : 1,
                         .use_bias = false,
                         .depthwise_initializer = "he_normal",
                         .name = name + "dwconv"},
                        site_)(x);
    x = act(x, name);
    x = excited(x, std::max<int64_t>(1, channels / 4), inner, name);
    const int64_t out = wide(stage.out);
    x = norm(conv(x, out, 1, 1, name + "project_conv"), name + "project_");
    if (channels != out || (first && stage.stride > 1)) return x;
    if (drop > 0) {
      // Whole branches: one number per image.
      x = dropout_with_noise_shape(drop, {-1, 1, 1, 1}, {.name = name + "drop"},
                                   site_)(x);
    }
    return Add({.name = name + "add"}, site_)(KerasTensors{x, in});
  }

  // Channels times factors that follow from their means.
  KerasTensor excited(const KerasTensor& x, int64_t few, int64_t channels,
                      const std::string& name) const {
    KerasTensor s = GlobalAveragePooling2D(
        {.keepdims = true, .name = name + "se_squeeze"}, site_)(x);
    s = Conv2D(few, 1, {.activation = "swish", .name = name + "se_reduce"},
               site_)(s);
    s = Conv2D(channels, 1,
               {.activation = "sigmoid", .name = name + "se_expand"}, site_)(s);
    return Multiply({.name = name + "se_excite"}, site_)(KerasTensors{x, s});
  }

  const Scaling& s_;
  const ImageOptions o_;
  const Site site_;
};

}  // namespace

Model EfficientNetB0(const ImageOptions& o, Site site) {
  return EfficientNet(kScalings[0], o, site).make();
}
Model EfficientNetB1(const ImageOptions& o, Site site) {
  return EfficientNet(kScalings[1], o, site).make();
}
Model EfficientNetB2(const ImageOptions& o, Site site) {
  return EfficientNet(kScalings[2], o, site).make();
}
Model EfficientNetB3(const ImageOptions& o, Site site) {
  return EfficientNet(kScalings[3], o, site).make();
}
Model EfficientNetB4(const ImageOptions& o, Site site) {
  return EfficientNet(kScalings[4], o, site).make();
}
Model EfficientNetB5(const ImageOptions& o, Site site) {
  return EfficientNet(kScalings[5], o, site).make();
}
Model EfficientNetB6(const ImageOptions& o, Site site) {
  return EfficientNet(kScalings[6], o, site).make();
}
Model EfficientNetB7(const ImageOptions& o, Site site) {
  return EfficientNet(kScalings[7], o, site).make();
}

Tensor preprocess_input(const Tensor& x, const std::string& mode, Site site) {
  if (x.rank() < 1 || x.shape()[x.rank() - 1] != 3) {
    throw errors::InvalidArgument(
        fmt::format("preprocess_input{}: images are {}; expected [..., 3]",
                    where_text(nullptr, site), x.shape().str()));
  }
  const Tensor y = math::cast(x, float32, site);
  const auto of_channels = [&](float r, float g, float b) {
    return constant(std::vector<float>{r, g, b}, {3}, site);
  };
  if (mode == "caffe") {
    return math::subtract(reverse(y, {-1}, site),
                          of_channels(103.939f, 116.779f, 123.68f), site);
  }
  if (mode == "tf") return y / 127.5 - 1.0;
  if (mode == "torch") {
    return math::divide(
        math::subtract(y / 255.0, of_channels(0.485f, 0.456f, 0.406f), site),
        of_channels(0.229f, 0.224f, 0.225f), site);
  }
  throw errors::InvalidArgument(fmt::format(
      "preprocess_input{}: mode is \"{}\"; expected \"caffe\", \"tf\" or "
      "\"torch\"",
      where_text(nullptr, site), mode));
}

}  // namespace berth::keras::applications
