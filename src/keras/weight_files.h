// Names of files of weights.

#ifndef BERTH_KERAS_WEIGHT_FILES_H_
#define BERTH_KERAS_WEIGHT_FILES_H_

#include <string>

namespace berth::keras {

// Returns the path with its ending. Throws errors::InvalidArgument, beginning
// with `call`, for another format, or a path that asks for one.
std::string weights_file(const std::string& path, const std::string& format,
                         const std::string& call);

}  // namespace berth::keras

#endif  // BERTH_KERAS_WEIGHT_FILES_H_
