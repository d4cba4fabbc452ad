// applications: known networks (tf.keras.applications).
//
// Each function makes a model with random initial weights; nothing is
// downloaded. Numbers of parameters are those of Keras' models or of the
// papers. Options make models smaller, for tests and small data sets. Throw
// errors::InvalidArgument for sizes that do not fit.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_APPLICATIONS_H_
#define BERTH_KERAS_APPLICATIONS_H_

#include <string>

#include "berth/keras/models.h"

namespace berth::keras::applications {

// Networks for images [n, size, size, channels], with values as from Keras'
// preprocess_input.
struct ImageOptions {
  bool include_top = true;  // false: the last features [n, h, w, c]
  int64_t classes = 1000;
  int64_t image_size = 224;
  int64_t channels = 3;
  std::string classifier_activation = "softmax";
  // Factor of the numbers of channels, Keras' alpha of MobileNet.
  double alpha = 1;
  std::string name = {};
};
// He et al. 2015: 11,699,112 and 25,636,712 parameters (in ResNet50 of Keras
// convolutions have biases).
Model ResNet18(const ImageOptions& options = {}, Site site = Site::here());
Model ResNet50(const ImageOptions& options = {}, Site site = Site::here());
// 44,707,176 and 60,419,944.
Model ResNet101(const ImageOptions& options = {}, Site site = Site::here());
Model ResNet152(const ImageOptions& options = {}, Site site = Site::here());
// He et al. 2016, norms first: 25,613,800, 44,675,560 and 60,380,648.
Model ResNet50V2(const ImageOptions& options = {}, Site site = Site::here());
Model ResNet101V2(const ImageOptions& options = {}, Site site = Site::here());
Model ResNet152V2(const ImageOptions& options = {}, Site site = Site::here());
// Howard et al. 2017: 4,253,864 parameters. dropout is before the classes.
Model MobileNet(const ImageOptions& options = {}, Site site = Site::here());
// Sandler et al. 2018: 3,538,984 parameters.
Model MobileNetV2(const ImageOptions& options = {}, Site site = Site::here());
// Simonyan and Zisserman 2014: 138,357,544 and 143,667,240 parameters.
Model VGG16(const ImageOptions& options = {}, Site site = Site::here());
Model VGG19(const ImageOptions& options = {}, Site site = Site::here());
// Huang et al. 2016: 8,062,504, 14,307,880 and 20,242,984 parameters.
Model DenseNet121(const ImageOptions& options = {}, Site site = Site::here());
Model DenseNet169(const ImageOptions& options = {}, Site site = Site::here());
Model DenseNet201(const ImageOptions& options = {}, Site site = Site::here());
// Chollet 2016: 22,910,480 parameters; Keras's image_size is 299.
Model Xception(const ImageOptions& options = {}, Site site = Site::here());
// Tan and Le 2019: 5,330,570 to 66,658,686 parameters (Keras counts one more, a
// counter). They scale inputs from 0 to 255 themselves. Keras's image sizes are
// 224, 240, 260, 300, 380, 456, 528, 600.
Model EfficientNetB0(const ImageOptions& options = {},
                     Site site = Site::here());
Model EfficientNetB1(const ImageOptions& options = {},
                     Site site = Site::here());
Model EfficientNetB2(const ImageOptions& options = {},
                     Site site = Site::here());
Model EfficientNetB3(const ImageOptions& options = {},
                     Site site = Site::here());
Model EfficientNetB4(const ImageOptions& options = {},
                     Site site = Site::here());
Model EfficientNetB5(const ImageOptions& options = {},
                     Site site = Site::here());
Model EfficientNetB6(const ImageOptions& options = {},
                     Site site = Site::here());
Model EfficientNetB7(const ImageOptions& options = {},
                     Site site = Site::here());

// Converts images [..., 3], red, green and blue from 0 to 255, to what networks
// were trained on, float32: mode "caffe" (ResNet, VGG) gives blue, green and
// red minus the means of ImageNet; "tf" (MobileNet, ResNetV2, Xception) -1 to
// 1; "torch" (DenseNet) 0 to 1 minus means, divided by deviations.
// EfficientNets take images unchanged.
Tensor preprocess_input(const Tensor& x, const std::string& mode = "caffe",
                        Site site = Site::here());

// Transformers for text. Ids are whole numbers below vocabulary_size.
struct TextOptions {
  int64_t vocabulary_size = 0;      // 0: the published one
  int64_t sequence_length = 0;      // of the inputs; 0: the longest
  int64_t max_sequence_length = 0;  // that positions are learned for; 0: same
  int64_t num_layers = 12;
  int64_t num_heads = 12;
  int64_t hidden_dim = 768;
  int64_t intermediate_dim = 0;  // 0: 4 hidden_dim
  double dropout = 0.1;
  std::string name = {};
};
// Devlin et al. 2018, 109,482,240 parameters: inputs "token_ids" and
// "segment_ids" [n, s]; outputs the sequence [n, s, hidden_dim] and the pooled
// first position [n, hidden_dim]. Tokens with id 0 are padding, which is never
// attended to.
Model BERTBase(const TextOptions& options = {}, Site site = Site::here());
// Radford et al. 2019, 124,439,808 parameters: token ids [n, s] to logits
// [n, s, vocabulary_size]; position i sees positions 0 to i.
Model GPT2Small(const TextOptions& options = {}, Site site = Site::here());

}  // namespace berth::keras::applications

#endif  // BERTH_KERAS_APPLICATIONS_H_
