// Networks of images: ResNet, MobileNet, VGG, ...

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/applications.h"
#include "berth/keras/element_layers.h"
#include "berth/keras/image_layers.h"

namespace berth::keras::applications {

namespace {

void check_image_options(const char* what, const ImageOptions& o, Site site) {
  if (o.classes > 0 && o.image_size >= 32 && o.channels > 0 && o.alpha > 0 &&
      o.alpha <= 8) {
    return;
  }
  throw errors::InvalidArgument(fmt::format(
      "{}{}: classes is {}, image_size {}, channels {}, alpha {}; expected "
      "classes and channels of at least 1, images from 32, alpha above 0 and "
      "at most 8",
      what, where_text(nullptr, site), o.classes, o.image_size, o.channels,
      o.alpha));
}

// Names follow Keras: a stem per layer, so that weights can be told apart.
class ImageNet {
 public:
  ImageNet(const char* what, const ImageOptions& o, double epsilon, Site site)
      : o_(o), epsilon_(epsilon), site_(site) {
    check_image_options(what, o, site);
  }

  KerasTensor input() const {
    return Input({o_.image_size, o_.image_size, o_.channels}, {}, site_);
  }
  int64_t wide(int64_t channels) const {
    return std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(channels) * o_.alpha));
  }
  KerasTensor conv(const KerasTensor& x, int64_t filters, int64_t size,
                   int64_t strides, bool bias, const std::string& name,
                   const std::string& padding = "same") const {
    return Conv2D(filters, size,
                  {.padding = padding,
                   .strides = strides,
                   .use_bias = bias,
                   .name = name},
                  site_)(x);
  }
  KerasTensor norm(const KerasTensor& x, const std::string& name,
                   double momentum = 0.99) const {
    return BatchNormalization(
        {.momentum = momentum, .epsilon = epsilon_, .name = name}, site_)(x);
  }
  KerasTensor relu(const KerasTensor& x, const std::string& name) const {
    return Activation("relu", {.name = name}, site_)(x);
  }
  KerasTensor add(const KerasTensor& a, const KerasTensor& b,
                  const std::string& name) const {
    return Add({.name = name}, site_)(KerasTensors{a, b});
  }
  KerasTensor classified(const KerasTensor& x) const {
    if (!o_.include_top) return x;
    const KerasTensor mean =
        GlobalAveragePooling2D({.name = "avg_pool"}, site_)(x);
    return Dense(
        o_.classes,
        {.activation = o_.classifier_activation, .name = "predictions"},
        site_)(mean);
  }
  Model model(const KerasTensor& in, const KerasTensor& out,
              const char* usual) const {
    return Model(in, out, {.name = o_.name.empty() ? usual : o_.name}, site_);
  }
  const ImageOptions& options() const { return o_; }
  Site site() const { return site_; }

 private:
  const ImageOptions o_;
  const double epsilon_;
  const Site site_;
};

KerasTensor residual_stem(const ImageNet& net, const KerasTensor& in,
                          bool bias) {
  KerasTensor x = ZeroPadding2D(3, {.name = "conv1_pad"}, net.site())(in);
  x = net.conv(x, net.wide(64), 7, 2, bias, "conv1_conv", "valid");
  x = net.relu(net.norm(x, "conv1_bn"), "conv1_relu");
  x = ZeroPadding2D(1, {.name = "pool1_pad"}, net.site())(x);
  return MaxPooling2D(3, {.strides = 2, .name = "pool1_pool"}, net.site())(x);
}

KerasTensor basic_block(const ImageNet& net, const KerasTensor& in,
                        int64_t filters, int64_t stride,
                        const std::string& name) {
  const bool same = stride == 1 && in.shape()[3] == filters;
  const KerasTensor shortcut =
      same ? in
           : net.norm(net.conv(in, filters, 1, stride, false, name + "_0_conv"),
                      name + "_0_bn");
  KerasTensor x = net.conv(in, filters, 3, stride, false, name + "_1_conv");
  x = net.relu(net.norm(x, name + "_1_bn"), name + "_1_relu");
  x = net.norm(net.conv(x, filters, 3, 1, false, name + "_2_conv"),
               name + "_2_bn");
  return net.relu(net.add(shortcut, x, name + "_add"), name + "_out");
}

KerasTensor bottleneck(const ImageNet& net, const KerasTensor& in,
                       int64_t filters, int64_t stride, bool first,
                       const std::string& name) {
  const KerasTensor shortcut =
      first ? net.norm(
                  net.conv(in, 4 * filters, 1, stride, true, name + "_0_conv"),
                  name + "_0_bn")
            : in;
  KerasTensor x = net.conv(in, filters, 1, stride, true, name + "_1_conv");
  x = net.relu(net.norm(x, name + "_1_bn"), name + "_1_relu");
  x = net.conv(x, filters, 3, 1, true, name + "_2_conv");
  x = net.relu(net.norm(x, name + "_2_bn"), name + "_2_relu");
  x = net.norm(net.conv(x, 4 * filters, 1, 1, true, name + "_3_conv"),
               name + "_3_bn");
  return net.relu(net.add(shortcut, x, name + "_add"), name + "_out");
}

}  // namespace

Model ResNet18(const ImageOptions& options, Site site) {
  const ImageNet net("ResNet18", options, 1.001e-5, site);
  const KerasTensor in = net.input();
  KerasTensor x = residual_stem(net, in, false);
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t i = 0; i < 2; ++i) {
      x = basic_block(net, x, net.wide(64 << stage),
                      stage > 0 && i == 0 ? 2 : 1,
                      fmt::format("conv{}_block{}", stage + 2, i + 1));
    }
  }
  return net.model(in, net.classified(x), "resnet18");
}

namespace {

using Blocks = std::array<int64_t, 4>;  // per stage

Model deep_residual(const char* what, const char* name, const Blocks& blocks,
                    const ImageOptions& options, Site site) {
  const ImageNet net(what, options, 1.001e-5, site);
  const KerasTensor in = net.input();
  KerasTensor x = residual_stem(net, in, true);
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t i = 0; i < blocks[static_cast<size_t>(stage)]; ++i) {
      x = bottleneck(net, x, net.wide(64 << stage), stage > 0 && i == 0 ? 2 : 1,
                     i == 0, fmt::format("conv{}_block{}", stage + 2, i + 1));
    }
  }
  return net.model(in, net.classified(x), name);
}

KerasTensor pre_activated(const ImageNet& net, const KerasTensor& in,
                          int64_t filters, int64_t stride, bool first,
                          const std::string& name) {
  const KerasTensor pre =
      net.relu(net.norm(in, name + "_preact_bn"), name + "_preact_relu");
  KerasTensor shortcut = in;
  if (first) {
    shortcut = net.conv(pre, 4 * filters, 1, stride, true, name + "_0_conv");
  } else if (stride > 1) {
    shortcut = MaxPooling2D(1, {.strides = stride}, net.site())(in);
  }
  KerasTensor x = net.conv(pre, filters, 1, 1, false, name + "_1_conv");
  x = net.relu(net.norm(x, name + "_1_bn"), name + "_1_relu");
  x = ZeroPadding2D(1, {.name = name + "_2_pad"}, net.site())(x);
  x = net.conv(x, filters, 3, stride, false, name + "_2_conv", "valid");
  x = net.relu(net.norm(x, name + "_2_bn"), name + "_2_relu");
  x = net.conv(x, 4 * filters, 1, 1, true, name + "_3_conv");
  return net.add(shortcut, x, name + "_out");
}

Model residual_v2(const char* what, const char* name, const Blocks& blocks,
                  const ImageOptions& options, Site site) {
  const ImageNet net(what, options, 1.001e-5, site);
  const KerasTensor in = net.input();
  KerasTensor x = ZeroPadding2D(3, {.name = "conv1_pad"}, site)(in);
  x = net.conv(x, net.wide(64), 7, 2, true, "conv1_conv", "valid");
  x = ZeroPadding2D(1, {.name = "pool1_pad"}, site)(x);
  x = MaxPooling2D(3, {.strides = 2, .name = "pool1_pool"}, site)(x);
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t n = blocks[static_cast<size_t>(stage)];
    for (int64_t i = 0; i < n; ++i) {
      x = pre_activated(net, x, net.wide(64 << stage),
                        i + 1 == n && stage < 3 ? 2 : 1, i == 0,
                        fmt::format("conv{}_block{}", stage + 2, i + 1));
    }
  }
  x = net.relu(net.norm(x, "post_bn"), "post_relu");
  return net.model(in, net.classified(x), name);
}

}  // namespace

Model ResNet50(const ImageOptions& o, Site site) {
  return deep_residual("ResNet50", "resnet50", {3, 4, 6, 3}, o, site);
}
Model ResNet101(const ImageOptions& o, Site site) {
  return deep_residual("ResNet101", "resnet101", {3, 4, 23, 3}, o, site);
}
Model ResNet152(const ImageOptions& o, Site site) {
  return deep_residual("ResNet152", "resnet152", {3, 8, 36, 3}, o, site);
}
Model ResNet50V2(const ImageOptions& o, Site site) {
  return residual_v2("ResNet50V2", "resnet50v2", {3, 4, 6, 3}, o, site);
}
Model ResNet101V2(const ImageOptions& o, Site site) {
  return residual_v2("ResNet101V2", "resnet101v2", {3, 4, 23, 3}, o, site);
}
Model ResNet152V2(const ImageOptions& o, Site site) {
  return residual_v2("ResNet152V2", "resnet152v2", {3, 8, 36, 3}, o, site);
}

namespace {

// Multiples of 8 that lose at most a tenth.
int64_t divisible(double channels) {
  const auto near = static_cast<int64_t>(channels + 4) / 8 * 8;
  const int64_t v = std::max<int64_t>(8, near);
  return static_cast<double>(v) < 0.9 * channels ? v + 8 : v;
}

KerasTensor relu6(const KerasTensor& x, const std::string& name, Site site) {
  return ReLU({.max_value = 6, .name = name}, site)(x);
}

KerasTensor inverted_residual(const ImageNet& net, const KerasTensor& in,
                              int64_t out, int64_t stride, int64_t expansion,
                              const std::string& name) {
  const int64_t channels = in.shape()[3];
  KerasTensor x = in;
  if (expansion > 1) {
    x = net.conv(x, channels * expansion, 1, 1, false, name + "expand");
    x = relu6(net.norm(x, name + "expand_BN", 0.999), name + "expand_relu",
              net.site());
  }
  x = DepthwiseConv2D(3,
                      {.padding = "same",
                       .strides = stride,
                       .use_bias = false,
                       .name = name + "depthwise"},
                      net.site())(x);
  x = relu6(net.norm(x, name + "depthwise_BN", 0.999), name + "depthwise_relu",
            net.site());
  x = net.conv(x, out, 1, 1, false, name + "project");
  x = net.norm(x, name + "project_BN", 0.999);
  return stride == 1 && channels == out ? net.add(in, x, name + "add") : x;
}

}  // namespace

Model MobileNetV2(const ImageOptions& options, Site site) {
  const ImageNet net("MobileNetV2", options, 0.001, site);
  const double alpha = options.alpha;
  const KerasTensor in = net.input();
  KerasTensor x = net.conv(in, divisible(32 * alpha), 3, 2, false, "Conv1");
  x = relu6(net.norm(x, "bn_Conv1", 0.999), "Conv1_relu", site);
  struct Stage {
    double channels;
    int blocks;
    int64_t stride, expansion;
  };
  constexpr Stage kStages[] = {{16, 1, 1, 1}, {24, 2, 2, 6}, {32, 3, 2, 6},
                               {64, 4, 2, 6}, {96, 3, 1, 6}, {160, 3, 2, 6},
                               {320, 1, 1, 6}};
  int block = 0;
  for (const Stage& s : kStages) {
    for (int i = 0; i < s.blocks; ++i) {
      const std::string name =
          block == 0 ? "expanded_conv_" : fmt::format("block_{}_", block);
      x = inverted_residual(net, x, divisible(s.channels * alpha),
                            i == 0 ? s.stride : 1, s.expansion, name);
      ++block;
    }
  }
  const int64_t last = alpha > 1 ? divisible(1280 * alpha) : 1280;
  x = net.conv(x, last, 1, 1, false, "Conv_1");
  x = relu6(net.norm(x, "Conv_1_bn", 0.999), "out_relu", site);
  return net.model(in, net.classified(x), "mobilenetv2");
}

Model MobileNet(const ImageOptions& options, Site site) {
  const ImageNet net("MobileNet", options, 0.001, site);
  const KerasTensor in = net.input();
  KerasTensor x = net.conv(in, net.wide(32), 3, 2, false, "conv1");
  x = relu6(net.norm(x, "conv1_bn"), "conv1_relu", site);
  struct Stage {
    int64_t channels, stride;
  };
  constexpr Stage kStages[] = {
      {64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
      {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  int block = 1;
  for (const Stage& s : kStages) {
    x = DepthwiseConv2D(3,
                        {.padding = "same",
                         .strides = s.stride,
                         .use_bias = false,
                         .name = fmt::format("conv_dw_{}", block)},
                        site)(x);
    x = relu6(net.norm(x, fmt::format("conv_dw_{}_bn", block)),
              fmt::format("conv_dw_{}_relu", block), site);
    x = net.conv(x, net.wide(s.channels), 1, 1, false,
                 fmt::format("conv_pw_{}", block));
    x = relu6(net.norm(x, fmt::format("conv_pw_{}_bn", block)),
              fmt::format("conv_pw_{}_relu", block), site);
    ++block;
  }
  return net.model(in, net.classified(x), "mobilenet");
}

namespace {

Model visual_geometry(const char* what, const char* usual, int deepest,
                      const ImageOptions& options, Site site) {
  const ImageNet net(what, options, 0.001, site);
  const KerasTensor in = net.input();
  KerasTensor x = in;
  const int64_t filters[] = {64, 128, 256, 512, 512};
  for (int b = 0; b < 5; ++b) {
    for (int i = 0; i < (b < 2 ? 2 : deepest); ++i) {
      x = Conv2D(net.wide(filters[b]), 3,
                 {.activation = "relu",
                  .padding = "same",
                  .name = fmt::format("block{}_conv{}", b + 1, i + 1)},
                 site)(x);
    }
    x = MaxPooling2D(
        2, {.strides = 2, .name = fmt::format("block{}_pool", b + 1)}, site)(x);
  }
  if (options.include_top) {
    x = Flatten({.name = "flatten"}, site)(x);
    for (const char* name : {"fc1", "fc2"}) {
      x = Dense(net.wide(4096), {.activation = "relu", .name = name}, site)(x);
    }
    x = Dense(
        options.classes,
        {.activation = options.classifier_activation, .name = "predictions"},
        site)(x);
  }
  return net.model(in, x, usual);
}

}  // namespace

Model VGG16(const ImageOptions& o, Site site) {
  return visual_geometry("VGG16", "vgg16", 3, o, site);
}
Model VGG19(const ImageOptions& o, Site site) {
  return visual_geometry("VGG19", "vgg19", 4, o, site);
}

namespace {

KerasTensor joined(const KerasTensor& a, const KerasTensor& b,
                   const std::string& name, Site site) {
  return Concatenate({.name = name}, site)(KerasTensors{a, b});
}

Model densely_connected(const char* what, const char* usual,
                        const Blocks& blocks, const ImageOptions& options,
                        Site site) {
  const ImageNet net(what, options, 1.001e-5, site);
  const KerasTensor in = net.input();
  const int64_t growth = net.wide(32);
  KerasTensor x = ZeroPadding2D(3, {.name = "zero_padding2d"}, site)(in);
  x = net.conv(x, net.wide(64), 7, 2, false, "conv1_conv", "valid");
  x = net.relu(net.norm(x, "conv1_bn"), "conv1_relu");
  x = ZeroPadding2D(1, {.name = "zero_padding2d_1"}, site)(x);
  x = MaxPooling2D(3, {.strides = 2, .name = "pool1"}, site)(x);
  for (size_t stage = 0; stage < 4; ++stage) {
    for (int64_t i = 0; i < blocks[stage]; ++i) {
      const auto name = fmt::format("conv{}_block{}", stage + 2, i + 1);
      KerasTensor y = net.relu(net.norm(x, name + "_0_bn"), name + "_0_relu");
      y = net.conv(y, 4 * growth, 1, 1, false, name + "_1_conv");
      y = net.relu(net.norm(y, name + "_1_bn"), name + "_1_relu");
      y = net.conv(y, growth, 3, 1, false, name + "_2_conv");
      x = joined(x, y, name + "_concat", site);
    }
    if (stage == 3) break;
    const auto name = fmt::format("pool{}", stage + 2);
    x = net.relu(net.norm(x, name + "_bn"), name + "_relu");
    x = net.conv(x, x.shape()[3] / 2, 1, 1, false, name + "_conv");
    x = AveragePooling2D(2, {.strides = 2, .name = name + "_pool"}, site)(x);
  }
  x = net.relu(net.norm(x, "bn"), "relu");
  return net.model(in, net.classified(x), usual);
}

KerasTensor separable(const ImageNet& net, const KerasTensor& x,
                      int64_t filters, const std::string& name) {
  const KerasTensor y = SeparableConv2D(
      filters, 3, {.padding = "same", .use_bias = false, .name = name},
      net.site())(x);
  return net.norm(y, name + "_bn");
}

KerasTensor xception_entry(const ImageNet& net, const KerasTensor& in,
                           int64_t first, int64_t filters, bool active,
                           const std::string& name) {
  const KerasTensor shortcut =
      net.norm(net.conv(in, filters, 1, 2, false, name + "_shortcut"),
               name + "_shortcut_bn");
  KerasTensor x = active ? net.relu(in, name + "_sepconv1_act") : in;
  x = separable(net, x, first, name + "_sepconv1");
  x = net.relu(x, name + "_sepconv2_act");
  x = separable(net, x, filters, name + "_sepconv2");
  x = MaxPooling2D(3, {.strides = 2, .padding = "same", .name = name + "_pool"},
                   net.site())(x);
  return net.add(x, shortcut, name + "_add");
}

}  // namespace

Model DenseNet121(const ImageOptions& o, Site site) {
  return densely_connected("DenseNet121", "densenet121", {6, 12, 24, 16}, o,
                           site);
}
Model DenseNet169(const ImageOptions& o, Site site) {
  return densely_connected("DenseNet169", "densenet169", {6, 12, 32, 32}, o,
                           site);
}
Model DenseNet201(const ImageOptions& o, Site site) {
  return densely_connected("DenseNet201", "densenet201", {6, 12, 48, 32}, o,
                           site);
}

Model Xception(const ImageOptions& options, Site site) {
  const ImageNet net("Xception", options, 0.001, site);
  const KerasTensor in = net.input();
  KerasTensor x =
      net.conv(in, net.wide(32), 3, 2, false, "block1_conv1", "valid");
  x = net.relu(net.norm(x, "block1_conv1_bn"), "block1_conv1_act");
  x = net.conv(x, net.wide(64), 3, 1, false, "block1_conv2", "valid");
  x = net.relu(net.norm(x, "block1_conv2_bn"), "block1_conv2_act");
  int block = 2;
  for (const int64_t filters : {128, 256, 728}) {
    x = xception_entry(net, x, net.wide(filters), net.wide(filters), block > 2,
                       fmt::format("block{}", block));
    ++block;
  }
  for (; block < 13; ++block) {
    KerasTensor y = x;
    for (int i = 1; i <= 3; ++i) {
      const auto name = fmt::format("block{}_sepconv{}", block, i);
      y = separable(net, net.relu(y, name + "_act"), net.wide(728), name);
    }
    x = net.add(y, x, fmt::format("block{}_add", block));
  }
  x = xception_entry(net, x, net.wide(728), net.wide(1024), true, "block13");
  x = net.relu(separable(net, x, net.wide(1536), "block14_sepconv1"),
               "block14_sepconv1_act");
  x = net.relu(separable(net, x, net.wide(2048), "block14_sepconv2"),
               "block14_sepconv2_act");
  return net.model(in, net.classified(x), "xception");
}

}  // namespace berth::keras::applications
