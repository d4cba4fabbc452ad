// image_dataset_from_directory and text_dataset_from_directory.

#include "berth/keras/from_directory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/rng.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/io.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "data/row_source.h"
#include "io/text_input.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::keras::utils {

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr uint32_t kSplitOp = 0xD14EC704u;

struct Labelled {
  Names paths;
  std::vector<int32_t> labels;
  Names class_names;
};

// What both kinds of folders are read by.
struct Reading {
  std::string labels, label_mode;
  Names class_names;
  bool shuffle;
  std::optional<uint64_t> seed;
  std::optional<double> validation_split;
  std::string subset;
  bool follow_links;
  int64_t batch_size;
  Names endings;
};

template <class Options>
Reading reading_of(const Options& o, const Names& endings) {
  return {
      o.labels,           o.label_mode, o.class_names,  o.shuffle,    o.seed,
      o.validation_split, o.subset,     o.follow_links, o.batch_size, endings};
}

[[noreturn]] void wrong(const std::string& problem) {
  throw errors::InvalidArgument(problem);
}

bool ends_in(const fs::path& path, const Reading& r) {
  std::string ending = path.extension().string();
  for (char& c : ending)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return std::any_of(r.endings.begin(), r.endings.end(),
                     [&](const std::string& e) { return ending == e; });
}

// The files below `folder`, sorted.
Names files_below(const fs::path& folder, const Reading& r) {
  Names all;
  std::error_code code;
  const auto options =
      (r.follow_links ? fs::directory_options::follow_directory_symlink
                      : fs::directory_options::none) |
      fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator it(folder, options, code), end;
  for (; !code && it != end; it.increment(code)) {
    // A link to a folder above would be followed for ever.
    if (it.depth() > 64) it.disable_recursion_pending();
    std::error_code ignored;
    if (it->is_regular_file(ignored) && ends_in(it->path(), r)) {
      all.push_back(it->path().string());
    }
  }
  if (code) {
    throw errors::Unavailable(fmt::format("cannot read the folder \"{}\": {}",
                                          folder.string(), code.message()));
  }
  std::sort(all.begin(), all.end());
  return all;
}

Names folders_in(const std::string& directory) {
  Names all;
  std::error_code code;
  fs::directory_iterator it(directory, code), end;
  for (; !code && it != end; it.increment(code)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (it->is_directory(ignored) && name[0] != '.') all.push_back(name);
  }
  std::sort(all.begin(), all.end());
  return all;
}

Labelled all_files(const std::string& directory, const Reading& r) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    throw errors::NotFound(
        fmt::format("\"{}\" is no folder; check the path", directory));
  }
  Labelled l;
  if (r.labels.empty()) {
    l.paths = files_below(directory, r);
    l.labels.resize(l.paths.size());
  } else {
    const Names found = folders_in(directory);
    l.class_names = r.class_names.empty() ? found : r.class_names;
    for (size_t i = 0; i < l.class_names.size(); ++i) {
      if (!std::binary_search(found.begin(), found.end(), l.class_names[i])) {
        wrong(fmt::format("class \"{}\" has no folder in \"{}\"; there are {}",
                          l.class_names[i], directory, fmt::join(found, ", ")));
      }
      for (std::string& path :
           files_below(fs::path(directory) / l.class_names[i], r)) {
        l.paths.push_back(std::move(path));
        l.labels.push_back(static_cast<int32_t>(i));
      }
    }
  }
  if (l.paths.empty()) {
    throw errors::NotFound(
        fmt::format("\"{}\" has no files that end in {}{}", directory,
                    fmt::join(r.endings, ", "),
                    r.labels.empty() ? "" : " in folders, one per class"));
  }
  return l;
}

// Draws an order from the seed alone (Fisher-Yates).
void mix(uint64_t seed, Labelled* l) {
  const RandomStream random(seed, kSplitOp, 0);
  for (size_t i = l->paths.size(); i > 1; --i) {
    const auto j =
        static_cast<size_t>(static_cast<uint64_t>(random.word(i)) * i >> 32);
    std::swap(l->paths[i - 1], l->paths[j]);
    std::swap(l->labels[i - 1], l->labels[j]);
  }
}

// Keeps the files of the subset.
void take_subset(const Reading& r, Labelled* l) {
  if (!r.validation_split) {
    if (!r.subset.empty()) {
      wrong(
          fmt::format("subset is \"{}\" without a validation_split; expected "
                      "both",
                      r.subset));
    }
    return;
  }
  const double share = *r.validation_split;
  if (!(share > 0 && share < 1) ||
      (r.subset != "training" && r.subset != "validation")) {
    wrong(
        fmt::format("validation_split is {}, subset \"{}\"; expected a share "
                    "between 0 and 1 and \"training\" or \"validation\"",
                    share, r.subset));
  }
  if (r.shuffle && !r.seed) {
    wrong(
        "validation_split with shuffle needs a seed; expected the same one "
        "for both subsets, or they overlap");
  }
  if (r.shuffle) mix(*r.seed, l);
  const size_t n = l->paths.size();
  const auto held = static_cast<size_t>(share * static_cast<double>(n));
  const auto cut = [&](auto* v) {
    const auto at = v->begin() + static_cast<std::ptrdiff_t>(n - held);
    r.subset == "training" ? v->erase(at, v->end()) : v->erase(v->begin(), at);
  };
  cut(&l->paths);
  cut(&l->labels);
  if (l->paths.empty()) {
    wrong(fmt::format("the subset \"{}\" of {} files is empty; expected some",
                      r.subset, n));
  }
}

// int32 [n] as the mode wants them; empty without labels.
Tensor labels_of(const Labelled& l, const Reading& r) {
  const auto n = static_cast<int64_t>(l.labels.size());
  const auto classes = static_cast<int64_t>(l.class_names.size());
  if (r.labels.empty() || r.label_mode.empty()) return {};
  if (r.label_mode == "int") {
    Tensor t = data::make_batch(int32, {n});
    std::copy(l.labels.begin(), l.labels.end(),
              reinterpret_cast<int32_t*>(t.impl()->data()));
    return t;
  }
  const bool binary = r.label_mode == "binary";
  if (!binary && r.label_mode != "categorical") {
    wrong(
        fmt::format("label_mode is \"{}\"; expected int, binary, categorical "
                    "or \"\"",
                    r.label_mode));
  }
  if (binary && classes != 2) {
    wrong(fmt::format("label_mode is binary, of {} classes; expected 2",
                      classes));
  }
  const int64_t width = binary ? 1 : classes;
  Tensor t = data::make_batch(float32, {n, width});
  auto* to = reinterpret_cast<float*>(t.impl()->data());
  std::fill_n(to, n * width, 0.0f);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t label = l.labels[static_cast<size_t>(i)];
    to[i * width + (binary ? 0 : label)] =
        binary ? static_cast<float>(label) : 1.0f;
  }
  return t;
}

DirectoryDataset directory_dataset(
    const char* name, const std::string& directory, const Reading& r,
    const std::function<Tensor(const Tensor& path)>& load, Site site) {
  Tensors components;
  const Labelled l = io::named_call(name, site, [&] {
    if (!r.labels.empty() && r.labels != "inferred") {
      wrong(
          fmt::format("labels is \"{}\"; expected inferred or \"\"", r.labels));
    }
    if (r.batch_size < 0) wrong("batch_size is below 0; expected 0 or more");
    Labelled all = all_files(directory, r);
    take_subset(r, &all);
    components.push_back(
        make_strings(all.paths, Shape{static_cast<int64_t>(all.paths.size())}));
    if (Tensor labels = labels_of(all, r); labels.defined()) {
      components.push_back(std::move(labels));
    }
    return all;
  });
  using data::Dataset;
  Dataset d = Dataset::from_tensor_slices(components, site);
  if (r.shuffle) {
    d = d.shuffle(static_cast<int64_t>(l.paths.size()), {.seed = r.seed}, site);
  }
  d = d.map(
      [load](const Tensors& e) {
        Tensors out = e;
        out[0] = load(e[0]);
        return out;
      },
      {.num_parallel_calls = data::AUTOTUNE}, site);
  if (r.batch_size > 0) d = d.batch(r.batch_size, {}, site);
  return {d.prefetch(data::AUTOTUNE, site), l.class_names, l.paths};
}

// The window in the middle that has the proportions of `size`.
Tensor middle(const Tensor& t, image::Size size) {
  const int64_t h = t.shape()[0], w = t.shape()[1];
  const int64_t wide = std::min(w, h * size.width / size.height);
  const int64_t high = std::min(h, w * size.height / size.width);
  const int64_t tall = std::max<int64_t>(high, 1);
  const int64_t broad = std::max<int64_t>(wide, 1);
  return image::crop_to_bounding_box(t, (h - tall) / 2, (w - broad) / 2, tall,
                                     broad);
}

Tensor load_image(const Tensor& path, int64_t channels,
                  const ImageDirectoryOptions& o) {
  try {
    const Tensor contents = io::read_file(path);
    const image::ResizeOptions resize{.method = o.interpolation};
    if (o.crop_to_aspect_ratio || o.pad_to_aspect_ratio || channels == 4) {
      // JPEGs have no alpha.
      const Tensor t =
          channels == 4 && !io::is_jpeg(contents)
              ? io::decode_png(contents, {.channels = 4})
              : io::decode_image(contents,
                                 {.channels = std::min<int64_t>(channels, 3)});
      const Tensor whole =
          t.shape()[2] == channels
              ? t
              : concat({t, fill({t.shape()[0], t.shape()[1], 1}, 255, uint8)},
                       2);
      if (o.pad_to_aspect_ratio) {
        return image::resize_with_pad(whole, o.image_size.height,
                                      o.image_size.width, resize);
      }
      return math::cast(
          image::resize(
              o.crop_to_aspect_ratio ? middle(whole, o.image_size) : whole,
              o.image_size, resize),
          float32);
    }
    return math::cast(image::decode_and_resize(
                          contents, o.image_size,
                          {.channels = channels, .method = o.interpolation}),
                      float32);
  } catch (const errors::Error& e) {
    errors::raise(e.code(),
                  fmt::format("\"{}\": {}", strings_of(path)[0], e.what()));
  }
}

}  // namespace

DirectoryDataset image_dataset_from_directory(const std::string& directory,
                                              const ImageDirectoryOptions& o,
                                              Site site) {
  const char* name = "image_dataset_from_directory";
  int64_t channels = 3;
  io::named_call(name, site, [&] {
    if (o.color_mode == "grayscale") {
      channels = 1;
    } else if (o.color_mode == "rgba") {
      channels = 4;
    } else if (o.color_mode != "rgb") {
      wrong(fmt::format("color_mode is \"{}\"; expected grayscale, rgb or rgba",
                        o.color_mode));
    }
    if (o.image_size.height < 1 || o.image_size.width < 1) {
      wrong(fmt::format("image_size is {} x {}; expected at least 1 x 1",
                        o.image_size.height, o.image_size.width));
    }
    if (o.crop_to_aspect_ratio && o.pad_to_aspect_ratio) {
      wrong("crop_to_aspect_ratio and pad_to_aspect_ratio; expected one");
    }
  });
  return directory_dataset(
      name, directory, reading_of(o, {".jpeg", ".jpg", ".png"}),
      [o, channels](const Tensor& path) {
        return load_image(path, channels, o);
      },
      site);
}

DirectoryDataset text_dataset_from_directory(const std::string& directory,
                                             const TextDirectoryOptions& o,
                                             Site site) {
  const char* name = "text_dataset_from_directory";
  if (o.max_length && *o.max_length < 0) {
    throw errors::InvalidArgument(
        fmt::format("{}: max_length is {}; expected 0 or more",
                    call_text(name, site), *o.max_length));
  }
  return directory_dataset(
      name, directory, reading_of(o, {".txt"}),
      [o](const Tensor& path) {
        const Tensor text = io::read_file(path);
        if (!o.max_length) return text;
        const std::string_view all = io::scalar_text(text, "text", Site{});
        return io::text_tensor(
            all.substr(0, static_cast<size_t>(*o.max_length)));
      },
      site);
}

}  // namespace berth::keras::utils
