// from_directory: datasets of folders of files, a folder per class
// (keras.utils.image_dataset_from_directory, text_dataset_from_directory).
//
//   photos/cats/1.jpg, photos/dogs/a.png, ...
//   const auto train = keras::utils::image_dataset_from_directory(
//       "photos", {.image_size = {128, 128}, .validation_split = 0.2,
//                  .subset = "training", .seed = 1});
//   model.fit(train.dataset, {.epochs = 5});
// The folders are listed now; files are read while the dataset is iterated, by
// as many threads as there are cores. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_FROM_DIRECTORY_H_
#define BERTH_KERAS_FROM_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/data.h"
#include "berth/image.h"

namespace berth::keras::utils {

struct ImageDirectoryOptions {
  // "inferred": each folder is a class; "": no labels.
  std::string labels = "inferred";
  // "int": int32 [n]; "binary": float32 [n, 1] of two classes; "categorical":
  // float32 [n, classes]; "": batches have no labels.
  std::string label_mode = "int";
  // The folders, in the order of their numbers; empty: all, sorted.
  std::vector<std::string> class_names = {};
  std::string color_mode = "rgb";  // "grayscale", "rgba"
  int64_t batch_size = 32;         // 0: single elements
  image::Size image_size = {256, 256};
  bool shuffle = true;  // again in each iteration
  // Seed of the order and of the selection of files for validation.
  std::optional<uint64_t> seed = std::nullopt;
  // The share of files in the subset "validation"; the rest are "training".
  std::optional<double> validation_split = std::nullopt;
  std::string subset = {};
  std::string interpolation = "bilinear";  // image::resize's methods
  bool follow_links = false;               // into folders elsewhere
  // Crops the sides instead of stretching; or pads with black.
  bool crop_to_aspect_ratio = false;
  bool pad_to_aspect_ratio = false;
};

struct TextDirectoryOptions {
  std::string labels = "inferred";
  std::string label_mode = "int";
  std::vector<std::string> class_names = {};
  int64_t batch_size = 32;
  std::optional<int64_t> max_length = std::nullopt;  // in bytes; truncates
  bool shuffle = true;
  std::optional<uint64_t> seed = std::nullopt;
  std::optional<double> validation_split = std::nullopt;
  std::string subset = {};
  bool follow_links = false;
};

struct DirectoryDataset {
  data::Dataset dataset;
  std::vector<std::string> class_names;
  std::vector<std::string> file_paths;
};

// .jpg, .jpeg and .png files: float32 [n, image_size, channels], 0 to 255.
// Throws errors::NotFound for a folder that is missing or has no such file,
// errors::InvalidArgument for options that do not fit; next() throws for a file
// that cannot be decoded, naming it.
DirectoryDataset image_dataset_from_directory(
    const std::string& directory, const ImageDirectoryOptions& options = {},
    Site site = Site::here());
// .txt files: strings [n].
DirectoryDataset text_dataset_from_directory(
    const std::string& directory, const TextDirectoryOptions& options = {},
    Site site = Site::here());

}  // namespace berth::keras::utils

#endif  // BERTH_KERAS_FROM_DIRECTORY_H_
