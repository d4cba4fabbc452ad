// keras.datasets beyond MNIST: CIFAR-100, IMDB, Reuters, California housing.

#include "berth/keras/more_datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "berth/errors.h"
#include "berth/io.h"
#include "data/row_source.h"
#include "io/byte_source.h"
#include "io/idx.h"
#include "io/npz.h"
#include "io/text_input.h"
#include "preprocess/named_files.h"
#include "tensor/tensor_impl.h"

namespace berth::keras::datasets {

namespace {

using io::named_call;
using io::NpyArray;
using Lists = std::vector<std::vector<int64_t>>;

constexpr Archive kHousing{
    "California housing", "california_housing.npz", "",
    "1a2e3a52e0398de6463aebe6f4a8da34fb21fbb6b934cf88c3425e766f2a1a6f"};
constexpr int kSide = 32, kPicture = 3 * kSide * kSide;

Tensor tensor_of_bytes(DType dtype, const Shape& shape, const void* bytes) {
  Tensor t = data::make_batch(dtype, shape);
  if (t.num_elements() > 0) {
    std::memcpy(t.impl()->data(), bytes, t.impl()->size_bytes());
  }
  return t;
}

Tensor bytes_of_idx(const std::string& path, int rank) {
  const io::IdxData d = io::read_idx_file(path);
  if (d.dtype != io::IdxType::kUint8 ||
      static_cast<int>(d.dims.size()) != rank) {
    throw errors::InvalidArgument(fmt::format(
        "\"{}\" holds other arrays than bytes of {} dimensions", path, rank));
  }
  return tensor_of_bytes(uint8, Shape(d.dims), d.bytes.data());
}

std::map<std::string, NpyArray> arrays_of(const std::string& path) {
  const Tensor bytes = io::read_file(path);
  try {
    return io::read_npz(io::scalar_text(bytes, "npz", Site{}));
  } catch (const errors::Error& e) {
    errors::raise(e.code(), fmt::format("\"{}\": {}", path, e.what()));
  }
}

const NpyArray& array(const std::map<std::string, NpyArray>& all,
                      const std::string& name) {
  const auto at = all.find(name);
  if (at != all.end()) return at->second;
  throw errors::InvalidArgument(
      fmt::format("the file has no array \"{}\"; is it that data set?", name));
}

// Integers of any width.
std::vector<int64_t> integers(const NpyArray& a) {
  const Tensor t =
      a.dtype == int64 || a.dtype == int32 || a.dtype == uint8
          ? tensor_of_bytes(a.dtype, Shape(a.shape), a.bytes.data())
          : Tensor();
  if (!t.defined() || a.shape.size() != 1) {
    throw errors::InvalidArgument(
        "the labels, words or lengths are no list of integers");
  }
  return t.to_vector<int64_t>();
}

// Lists, which tools/plain_npz writes one after another, and their lengths.
Lists lists_of(const std::map<std::string, NpyArray>& all,
               const std::string& name) {
  const auto words = integers(array(all, name + "_words"));
  Lists lists;
  size_t at = 0;
  for (const int64_t n : integers(array(all, name + "_lengths"))) {
    const size_t left = words.size() - at;
    if (n < 0 || static_cast<size_t>(n) > left) {
      throw errors::InvalidArgument(fmt::format(
          "\"{}_lengths\" has {}, where {} words are left", name, n, left));
    }
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(at);
    lists.emplace_back(first, first + static_cast<std::ptrdiff_t>(n));
    at += static_cast<size_t>(n);
  }
  if (at != words.size()) {
    throw errors::InvalidArgument(fmt::format(
        "\"{0}_lengths\" counts {1} words; expected {2}, as many as "
        "\"{0}_words\" has",
        name, at, words.size()));
  }
  return lists;
}

Tensor int64_tensor(const std::vector<int64_t>& values) {
  return tensor_of_bytes(int64, {static_cast<int64_t>(values.size())},
                         values.data());
}

struct Texts {
  Lists x;
  std::vector<int64_t> y;
};

Texts shuffled(const Lists& x, const std::vector<int64_t>& y,
               const std::vector<int64_t>& order) {
  if (x.size() != y.size()) {
    throw errors::InvalidArgument(fmt::format(
        "{} texts and {} labels; expected as many", x.size(), y.size()));
  }
  Texts t;
  for (const int64_t i : order) {
    t.x.push_back(x[static_cast<size_t>(i)]);
    t.y.push_back(y[static_cast<size_t>(i)]);
  }
  return t;
}

// Start marks, shifted words, long texts left out.
void begin_texts(const SequenceOptions& o, Texts* t) {
  Texts kept;
  for (size_t i = 0; i < t->x.size(); ++i) {
    std::vector<int64_t> words;
    if (o.start_char) words.push_back(*o.start_char);
    // Keras shifts words by nothing where index_from is 0.
    for (const int64_t w : t->x[i]) words.push_back(w + o.index_from);
    if (o.maxlen && static_cast<int64_t>(words.size()) >= *o.maxlen) continue;
    kept.x.push_back(std::move(words));
    kept.y.push_back(t->y[i]);
  }
  *t = std::move(kept);
}

void bound_words(const SequenceOptions& o, int64_t num_words, Lists* all) {
  for (auto& words : *all) {
    if (o.oov_char) {
      for (int64_t& w : words) {
        if (w < o.skip_top || w >= num_words) w = *o.oov_char;
      }
    } else {
      std::erase_if(
          words, [&](int64_t w) { return w < o.skip_top || w >= num_words; });
    }
  }
}

// The largest word; Keras leaves it out where num_words is not given.
int64_t words_in(const SequenceOptions& o, const Lists& a, const Lists& b) {
  if (o.num_words) return *o.num_words;
  int64_t most = 0;
  for (const Lists* all : {&a, &b}) {
    for (const auto& words : *all) {
      for (const int64_t w : words) most = std::max(most, w);
    }
  }
  return most;
}

void check_kept(const SequenceOptions& o, const Texts& t) {
  if (!t.x.empty()) return;
  throw errors::InvalidArgument(
      fmt::format("maxlen is {}: no text is shorter; expected a larger one",
                  o.maxlen.value_or(0)));
}

// A file of records: group, class, red, green, blue.
Arrays cifar100_file(const std::string& path, bool fine) {
  const Tensor file = io::read_file(path);
  const std::string_view bytes = io::scalar_text(file, "cifar100", Site{});
  constexpr size_t kRecord = 2 + kPicture;
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    throw errors::DataLoss(fmt::format(
        "\"{}\" has {} bytes; expected records of {}: is it CIFAR-100's binary "
        "version?",
        path, bytes.size(), kRecord));
  }
  const auto n = static_cast<int64_t>(bytes.size() / kRecord);
  Arrays a{data::make_batch(uint8, {n, kSide, kSide, 3}),
           data::make_batch(uint8, {n})};
  auto* x = reinterpret_cast<char*>(a.x.impl()->data());
  auto* y = reinterpret_cast<char*>(a.y.impl()->data());
  const char* from = bytes.data();
  for (int64_t i = 0; i < n; ++i, from += kRecord) {
    const auto label = static_cast<uint8_t>(from[fine ? 1 : 0]);
    if (label >= (fine ? 100 : 20)) {
      throw errors::InvalidArgument(fmt::format(
          "\"{}\": label {} of picture {}; is it CIFAR-100's binary version?",
          path, label, i));
    }
    *y++ = static_cast<char>(label);
    for (int p = 0; p < kSide * kSide; ++p) {
      for (int c = 0; c < 3; ++c) *x++ = from[2 + c * kSide * kSide + p];
    }
  }
  return a;
}

// Rows `order[begin]` ... of a numeric array.
Tensor rows_of(const NpyArray& a, const std::vector<int64_t>& order,
               size_t begin, size_t end) {
  if (a.shape.empty()) {
    throw errors::InvalidArgument("an array is no table of numbers");
  }
  Shape shape(a.shape);
  const size_t row =
      a.shape[0] == 0 ? 0 : a.bytes.size() / static_cast<size_t>(a.shape[0]);
  shape[0] = static_cast<int64_t>(end - begin);
  Tensor t = data::make_batch(a.dtype, shape);
  std::byte* to = t.impl()->data();
  for (size_t i = begin; i < end; ++i, to += row) {
    std::memcpy(to, a.bytes.data() + static_cast<size_t>(order[i]) * row, row);
  }
  return t;
}

void check_split(double test_split) {
  if (test_split >= 0 && test_split < 1) return;
  throw errors::InvalidArgument(fmt::format(
      "test_split is {}; expected 0 and more, below 1", test_split));
}

}  // namespace

namespace fashion_mnist {

ArrayData load_data(const FilesOptions& o, Site site) {
  return named_call("fashion_mnist::load_data", site, [&]() -> ArrayData {
    // The publisher gives MD5 digests.
    const auto file = [](const char* name, const char* md5) {
      return NamedFile{name, kKerasFolder + std::string(name), md5};
    };
    const auto paths = find_files(
        {file("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
         file("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
         file("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
         file("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310")},
        {.title = "Fashion-MNIST",
         .folder = "fashion-mnist",
         .only_folder = true,
         .data_dir = o.data_dir,
         .allow_download = o.allow_download});
    return {{bytes_of_idx(paths[0], 3), bytes_of_idx(paths[1], 1)},
            {bytes_of_idx(paths[2], 3), bytes_of_idx(paths[3], 1)}};
  });
}

}  // namespace fashion_mnist

namespace cifar100 {

ArrayData load_data(const LoadOptions& o, Site site) {
  return named_call("cifar100::load_data", site, [&]() -> ArrayData {
    if (o.label_mode != "fine" && o.label_mode != "coarse") {
      throw errors::InvalidArgument(fmt::format(
          "label_mode is \"{}\"; expected fine or coarse", o.label_mode));
    }
    const bool fine = o.label_mode == "fine";
    const auto paths = find_files({{"train.bin", "", ""}, {"test.bin", "", ""}},
                                  {.title = "CIFAR-100 (the unpacked "
                                            "https://www.cs.toronto.edu/~kriz/"
                                            "cifar-100-binary.tar.gz)",
                                   .folder = "cifar-100-binary",
                                   .only_folder = true,
                                   .data_dir = o.data_dir});
    return {cifar100_file(paths[0], fine), cifar100_file(paths[1], fine)};
  });
}

}  // namespace cifar100

namespace imdb {

SequenceData load_data(const SequenceOptions& o, Site site) {
  return named_call("imdb::load_data", site, [&]() -> SequenceData {
    const auto all =
        arrays_of(find_archive(kImdb, o.data_dir, o.allow_download));
    const Lists train_x = lists_of(all, "x_train");
    const Lists test_x = lists_of(all, "x_test");
    const auto orders =
        numpy_shuffles(o.seed, {static_cast<int64_t>(train_x.size()),
                                static_cast<int64_t>(test_x.size())});
    Texts train = shuffled(train_x, integers(array(all, "y_train")), orders[0]);
    Texts test = shuffled(test_x, integers(array(all, "y_test")), orders[1]);
    begin_texts(o, &train);
    begin_texts(o, &test);
    check_kept(o, train);
    check_kept(o, test);
    const int64_t words = words_in(o, train.x, test.x);
    bound_words(o, words, &train.x);
    bound_words(o, words, &test.x);
    return {{std::move(train.x), int64_tensor(train.y)},
            {std::move(test.x), int64_tensor(test.y)}};
  });
}

}  // namespace imdb

namespace reuters {

SequenceData load_data(const SequenceOptions& o, double test_split, Site site) {
  return named_call("reuters::load_data", site, [&]() -> SequenceData {
    check_split(test_split);
    const auto all =
        arrays_of(find_archive(kReuters, o.data_dir, o.allow_download));
    const Lists x = lists_of(all, "x");
    const auto orders =
        numpy_shuffles(o.seed, {static_cast<int64_t>(x.size())});
    Texts texts = shuffled(x, integers(array(all, "y")), orders[0]);
    begin_texts(o, &texts);
    check_kept(o, texts);
    bound_words(o, words_in(o, texts.x, {}), &texts.x);
    const auto cut = static_cast<std::ptrdiff_t>(
        static_cast<double>(texts.x.size()) * (1 - test_split));
    const auto part = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      return Sequences{
          Lists(texts.x.begin() + begin, texts.x.begin() + end),
          int64_tensor({texts.y.begin() + begin, texts.y.begin() + end})};
    };
    return {part(0, cut), part(cut, std::ssize(texts.x))};
  });
}

}  // namespace reuters

namespace california_housing {

ArrayData load_data(const LoadOptions& o, Site site) {
  return named_call("california_housing::load_data", site, [&]() -> ArrayData {
    check_split(o.test_split);
    if (o.version != "large" && o.version != "small") {
      throw errors::InvalidArgument(
          fmt::format("version is \"{}\"; expected large or small", o.version));
    }
    const auto all =
        arrays_of(find_archive(kHousing, o.data_dir, o.allow_download));
    const NpyArray& x = array(all, "x");
    const NpyArray& y = array(all, "y");
    if (x.shape.empty() || y.shape.empty() || x.shape[0] != y.shape[0]) {
      throw errors::InvalidArgument("x and y have different lengths");
    }
    const int64_t n =
        o.version == "small" ? std::min<int64_t>(600, x.shape[0]) : x.shape[0];
    const auto order = numpy_shuffles(o.seed, {n})[0];
    const auto cut =
        static_cast<size_t>(static_cast<double>(n) * (1 - o.test_split));
    return {{rows_of(x, order, 0, cut), rows_of(y, order, 0, cut)},
            {rows_of(x, order, cut, order.size()),
             rows_of(y, order, cut, order.size())}};
  });
}

}  // namespace california_housing
}  // namespace berth::keras::datasets

namespace berth::keras::utils {

Tensor pad_sequences(const std::vector<std::vector<int64_t>>& sequences,
                     const PadSequencesOptions& o, Site site) {
  return io::named_call("pad_sequences", site, [&] {
    const auto side = [](const std::string& s) {
      return s == "pre" || s == "post";
    };
    if (!side(o.padding) || !side(o.truncating) ||
        (o.dtype != int32 && o.dtype != int64) || o.maxlen.value_or(1) < 1) {
      throw errors::InvalidArgument(fmt::format(
          "padding \"{}\", truncating \"{}\", dtype {}, maxlen {}; expected "
          "pre or post, int32 or int64, and at least 1",
          o.padding, o.truncating, name_of(o.dtype), o.maxlen.value_or(-1)));
    }
    size_t longest = 0;
    for (const auto& s : sequences) longest = std::max(longest, s.size());
    const auto length = o.maxlen ? static_cast<size_t>(*o.maxlen) : longest;
    Tensor t = data::make_batch(
        o.dtype, {std::ssize(sequences), static_cast<int64_t>(length)});
    const auto put = [&](auto* to) {
      std::fill_n(to, sequences.size() * length,
                  static_cast<std::decay_t<decltype(*to)>>(o.value));
      for (const auto& s : sequences) {
        const size_t n = std::min(s.size(), length);
        const auto* from =
            s.data() + (o.truncating == "pre" ? s.size() - n : 0);
        auto* row = to + (o.padding == "pre" ? length - n : 0);
        for (size_t i = 0; i < n; ++i) {
          row[i] = static_cast<std::decay_t<decltype(*to)>>(from[i]);
        }
        to += length;
      }
    };
    if (o.dtype == int32) {
      put(reinterpret_cast<int32_t*>(t.impl()->data()));
    } else {
      put(reinterpret_cast<int64_t*>(t.impl()->data()));
    }
    return t;
  });
}

}  // namespace berth::keras::utils
