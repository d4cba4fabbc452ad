// images: trains a small convolutional network on a folder of pictures, a
// folder per class.
//
//   images --data DIR        DIR/cats/1.jpg, DIR/dogs/7.png, ...
//   images                   pictures of three shapes, drawn to a folder first
//   images --size 64         every picture becomes 64 x 64

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "example.h"

namespace {

using berth::Tensor;
namespace keras = berth::keras;
namespace data = berth::data;
namespace fs = std::filesystem;

// A disc, a ring or a cross somewhere on an even ground, as a JPEG.
void draw(const fs::path& path, int shape, uint32_t seed) {
  constexpr int kSide = 48;
  const auto draw01 = [&] {  // a linear congruential generator
    seed = seed * 1664525u + 1013904223u;
    return static_cast<double>(seed >> 8) / 0x1p24;
  };
  const double cy = 16 + 16 * draw01(), cx = 16 + 16 * draw01();
  const double radius = 8 + 6 * draw01();
  double ground[3], ink[3];
  for (int c = 0; c < 3; ++c) {
    ground[c] = 100 * draw01();
    ink[c] = 155 + 100 * draw01();
  }
  std::vector<uint8_t> pixels;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const double dy = std::abs(y - cy), dx = std::abs(x - cx);
      const double r = std::hypot(dy, dx);
      const bool inside = shape == 0   ? r < radius
                          : shape == 1 ? r < radius && r > 0.6 * radius
                                       : std::max(dy, dx) < radius &&
                                             std::min(dy, dx) < 0.3 * radius;
      for (int c = 0; c < 3; ++c) {
        const double v = (inside ? ink[c] : ground[c]) + 20 * (draw01() - 0.5);
        pixels.push_back(static_cast<uint8_t>(std::clamp(v, 0.0, 255.0)));
      }
    }
  }
  berth::io::write_file(path.string(), berth::io::encode_jpeg(berth::constant(
                                           pixels, {kSide, kSide, 3})));
}

// Draws `count` pictures of each shape.
void draw_folder(const fs::path& folder, int count) {
  const char* names[] = {"cross", "disc", "ring"};
  for (int k = 0; k < 3; ++k) {
    fs::create_directories(folder / names[k]);
    for (int i = 0; i < count; ++i) {
      draw(folder / names[k] / (std::to_string(i) + ".jpg"), k == 0 ? 2 : k - 1,
           static_cast<uint32_t>(3 * i + k) * 2654435761u + 1);
    }
  }
}

// Removes what was drawn.
struct Folder {
  fs::path path;
  ~Folder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

keras::Sequential network(int64_t side, int64_t classes) {
  return keras::Sequential({
      keras::InputLayer({side, side, 3}),
      keras::Rescaling(1 / 255.0),
      keras::Conv2D(16, 3, {.activation = "relu", .strides = 2}),
      keras::Conv2D(32, 3, {.activation = "relu", .strides = 2}),
      keras::Conv2D(32, 3, {.activation = "relu", .strides = 2}),
      keras::Flatten(),
      keras::Dense(64, {.activation = "relu"}),
      keras::Dense(classes),
  });
}

int run(const example::Options& o, int64_t side, int drawn) {
  berth::random::set_seed(o.seed);
  Folder folder;
  std::string data = o.data;
  if (data.empty()) {
    folder.path = fs::temp_directory_path() /
                  ("berth_images_" + std::to_string(getpid()));
    draw_folder(folder.path, drawn);
    data = folder.path.string();
  }
  const auto part = [&](const char* subset) {
    return keras::utils::image_dataset_from_directory(
        data, {.batch_size = o.batch_size,
               .image_size = {side, side},
               .seed = static_cast<uint64_t>(o.seed),
               .validation_split = 0.2,
               .subset = subset});
  };
  const auto train = part("training"), held = part("validation");
  fmt::print("devices: {}\ndata: {} pictures of {} classes in {}\n",
             example::devices_text(),
             train.file_paths.size() + held.file_paths.size(),
             train.class_names.size(), data);
  keras::Model model =
      network(side, static_cast<int64_t>(train.class_names.size()));
  model.compile({.optimizer = keras::Adam(1e-3),
                 .loss = keras::losses::SparseCategoricalCrossentropy(
                     {.from_logits = true}),
                 .metrics = {"accuracy"}});
  model.summary();
  model.fit(train.dataset, {.epochs = o.epochs});
  const keras::Logs test = model.evaluate(held.dataset);
  fmt::print("test accuracy: {:.1f} %, loss {:.4f}\n",
             100 * test.at("accuracy"), test.at("loss"));
  if (o.json) {
    const nlohmann::json line = {
        {"test_accuracy", test.at("accuracy")},
        {"test_loss", test.at("loss")},
        {"pictures", train.file_paths.size() + held.file_paths.size()}};
    fmt::print("{}\n", line.dump());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  example::Options o;
  o.epochs = 15;
  int64_t side = 48;
  int drawn = 200;
  CLI::App app("Trains a network on a folder of pictures.", "images");
  example::add_flags(&app, &o);
  app.add_option("--size", side, "height and width that pictures get")
      ->check(CLI::Range(16, 1024))
      ->capture_default_str();
  app.add_option("--drawn", drawn, "pictures of each shape, without --data")
      ->check(CLI::Range(5, 100000))
      ->capture_default_str();
  return example::main_of(&app, argc, argv,
                          [&] { return run(o, side, drawn); });
}
