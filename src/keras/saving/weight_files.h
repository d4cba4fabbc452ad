// Names of files of weights.

#ifndef BERTH_KERAS_SAVING_WEIGHT_FILES_H_
#define BERTH_KERAS_SAVING_WEIGHT_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "berth/keras/layers.h"

namespace berth::keras {

// Returns the path with its ending. Throws errors::InvalidArgument, beginning
// with `call`, for another format, or a path that asks for one.
std::string weights_file(const std::string& path, const std::string& format,
                         const std::string& call);

// "<what> of model "<name>" (train.cc:9)"
std::string weights_call(const char* what, const Layer& model, Site site);

// The weights of a model by their names in files. Throws
// errors::FailedPrecondition, beginning with `call`, before they are made.
std::vector<std::pair<std::string, Variable>> made_weights(
    const Layer& model, const std::string& call);

// Makes the folder, and refuses a file that must not be replaced.
void prepare_file(const std::string& path, bool overwrite,
                  const std::string& call);

// What a file of a whole model has beside weights: metadata, and tensors.
inline constexpr const char* kModelInFile = "berth.model";
inline constexpr const char* kCompileInFile = "berth.compile";
inline constexpr const char* kOptimizerInFile = "optimizer/";

}  // namespace berth::keras

#endif  // BERTH_KERAS_SAVING_WEIGHT_FILES_H_
