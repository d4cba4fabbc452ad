// parse_example, parse_sequence_example and their single forms.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "berth/io.h"
#include "data/row_source.h"
#include "io/example_wire.h"
#include "io/text_input.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::io {
namespace {

using Names = std::unordered_map<std::string_view, size_t>;

// A feature that is collected over the messages of a batch.
struct Collected {
  std::string name;
  Feature spec;
  DType dtype = float32;
  FeatureKind kind = FeatureKind::kFloat;
  int64_t width = 1;      // elements of a value of fixed shape
  FeatureValues values;   // of all messages
  FeatureValues padding;  // one value, or `width` of a default
  bool has_default = false;
  std::vector<int64_t> lengths;  // per message, or per step
  std::vector<int64_t> steps;    // per message, of sequences
};

DType dtype_of_feature(const Feature& f) {
  return std::visit([](const auto& spec) { return spec.dtype; }, f);
}

FeatureKind kind_of(DType dtype) {
  if (dtype == float32) return FeatureKind::kFloat;
  if (dtype == int64) return FeatureKind::kInt64;
  return dtype == string_ ? FeatureKind::kBytes : FeatureKind::kNone;
}

// Adds the elements of `t`.
void add_values(const Tensor& t, FeatureKind kind, FeatureValues* to) {
  if (kind == FeatureKind::kFloat) {
    const auto v = t.to_vector<float>();
    to->floats.insert(to->floats.end(), v.begin(), v.end());
  } else if (kind == FeatureKind::kInt64) {
    const auto v = t.to_vector<int64_t>();
    to->ints.insert(to->ints.end(), v.begin(), v.end());
  } else {
    for (const std::string& s : strings_of(t)) to->texts.add(s);
  }
}

void add_zero(FeatureKind kind, FeatureValues* to) {
  if (kind == FeatureKind::kFloat) to->floats.push_back(0);
  if (kind == FeatureKind::kInt64) to->ints.push_back(0);
  if (kind == FeatureKind::kBytes) to->texts.add("");
}

// Sets what missing values become: `t` is a scalar or has the feature's shape.
void set_padding(const std::optional<Tensor>& t, bool whole, Collected* c) {
  if (!t) return add_zero(c->kind, &c->padding);
  check_values(*t, c->name);
  const int64_t n = t->num_elements();
  if ((t->dtype() != c->dtype) || (n != 1 && (!whole || n != c->width))) {
    throw errors::InvalidArgument(fmt::format(
        "feature \"{}\": the default is {}; expected {} of {} elements",
        c->name, t->spec().str(), name_of(c->dtype), whole ? c->width : 1));
  }
  c->has_default = true;
  const int64_t times = whole && n == 1 ? c->width : 1;
  for (int64_t i = 0; i < times; ++i) add_values(*t, c->kind, &c->padding);
}

int64_t width_of(const Shape& shape, const std::string& name) {
  int64_t n = 1;
  bool bad = false;
  for (int i = 0; i < shape.rank(); ++i) {
    bad |= shape[i] < 0 ||
           __builtin_mul_overflow(n, std::max<int64_t>(shape[i], 0), &n) ||
           n > kMostElements;
  }
  if (!bad) return n;
  throw errors::InvalidArgument(
      fmt::format("feature \"{}\": the shape is {}; expected known dimensions",
                  name, shape.str()));
}

Collected collected(const std::string& name, const Feature& f) {
  Collected c{.name = name, .spec = f, .dtype = dtype_of_feature(f)};
  c.kind = kind_of(c.dtype);
  if (c.kind == FeatureKind::kNone) {
    throw errors::InvalidArgument(fmt::format(
        "feature \"{}\" is to be {}; expected float32, int64 or string_: cast "
        "it afterwards",
        name, name_of(c.dtype)));
  }
  if (const auto* fixed = std::get_if<FixedLenFeature>(&f)) {
    c.width = width_of(fixed->shape, name);
    set_padding(fixed->default_value, true, &c);
  } else if (const auto* list = std::get_if<FixedLenSequenceFeature>(&f)) {
    c.width = width_of(list->shape, name);
    set_padding(list->default_value, false, &c);
  } else if (const auto* var = std::get_if<VarLenFeature>(&f)) {
    set_padding(var->padding_value, false, &c);
  }
  return c;
}

void append(const FeatureValues& from, FeatureKind kind, FeatureValues* to) {
  if (kind == FeatureKind::kFloat) {
    to->floats.insert(to->floats.end(), from.floats.begin(), from.floats.end());
  } else if (kind == FeatureKind::kInt64) {
    to->ints.insert(to->ints.end(), from.ints.begin(), from.ints.end());
  } else {
    to->texts.add_all(from.texts);
  }
}

// The features of one batch; `sequence`: of feature lists.
class Batch {
 public:
  Batch(const FeatureSpec& spec, bool sequence) : sequence_(sequence) {
    for (const auto& [name, feature] : spec) {
      all_.push_back(collected(name, feature));
      if (sequence && std::holds_alternative<FixedLenFeature>(feature)) {
        throw errors::InvalidArgument(fmt::format(
            "feature \"{}\" of a sequence is FixedLenFeature; expected "
            "FixedLenSequenceFeature, whose shape is that of a step",
            name));
      }
    }
    for (size_t i = 0; i < all_.size(); ++i) {
      if (!names_.emplace(all_[i].name, i).second) {
        throw errors::InvalidArgument(fmt::format(
            "feature \"{}\" is listed twice; expected once", all_[i].name));
      }
    }
    found_.resize(all_.size());
  }

  void start(int64_t message) {
    message_ = message;
    std::ranges::fill(found_, std::nullopt);
  }
  void found(std::string_view name, std::string_view bytes) {
    const auto at = names_.find(name);
    if (at != names_.end()) found_[at->second] = bytes;
  }
  void finish() {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (sequence_) {
        add_steps(&all_[i], found_[i]);
      } else {
        add_one(&all_[i], found_[i]);
      }
    }
  }
  ParsedFeatures result(int64_t batch, bool single) const;

 private:
  [[noreturn]] void bad(const Collected& c, const std::string& problem) const {
    throw errors::InvalidArgument(fmt::format("message {}, feature \"{}\" {}",
                                              message_, c.name, problem));
  }
  // Reads the values of a Feature; -1 when it has none.
  int64_t read(Collected* c, std::optional<std::string_view> bytes) {
    if (!bytes) return -1;
    const size_t before = c->values.count(c->kind);
    FeatureKind kind;
    if (!read_feature(*bytes, c->kind, &kind, &c->values)) {
      bad(*c, "has bytes that are no tf.train.Feature");
    }
    if (kind == FeatureKind::kNone) return -1;
    if (kind != c->kind) {
      bad(*c, fmt::format("holds {}; expected {}", kind_name(kind),
                          kind_name(c->kind)));
    }
    return static_cast<int64_t>(c->values.count(c->kind) - before);
  }
  void add_one(Collected* c, std::optional<std::string_view> bytes);
  void add_steps(Collected* c, std::optional<std::string_view> bytes);

  bool sequence_;
  std::vector<Collected> all_;
  Names names_;  // into all_
  std::vector<std::optional<std::string_view>> found_;
  int64_t message_ = 0;
};

void Batch::add_one(Collected* c, std::optional<std::string_view> bytes) {
  const int64_t n = read(c, bytes);
  if (std::holds_alternative<FixedLenFeature>(c->spec)) {
    if (n < 0 && c->has_default) return append(c->padding, c->kind, &c->values);
    if (n < 0) bad(*c, "is missing; expected it, or give it a default_value");
    if (n != c->width) {
      bad(*c, fmt::format("has {} values; expected {}", n, c->width));
    }
    return;
  }
  if (const auto* list = std::get_if<FixedLenSequenceFeature>(&c->spec)) {
    if (n < 0 && !list->allow_missing) {
      bad(*c, "is missing; expected it, or .allow_missing = true");
    }
    const int64_t width = std::max<int64_t>(c->width, 1);
    if (n > 0 && n % width != 0) {
      bad(*c,
          fmt::format("has {} values; expected a multiple of {}", n, c->width));
    }
    c->lengths.push_back(std::max<int64_t>(n, 0) / width);
    return;
  }
  c->lengths.push_back(std::max<int64_t>(n, 0));
}

void Batch::add_steps(Collected* c, std::optional<std::string_view> bytes) {
  const auto* fixed = std::get_if<FixedLenSequenceFeature>(&c->spec);
  if (!bytes && fixed != nullptr && !fixed->allow_missing) {
    bad(*c, "is missing; expected it, or .allow_missing = true");
  }
  int64_t steps = 0;
  const bool ok =
      !bytes || walk_feature_list(*bytes, [&](std::string_view feature) {
        const int64_t n = std::max<int64_t>(read(c, feature), 0);
        if (fixed != nullptr && n != c->width) {
          bad(*c, fmt::format("has {} values at step {}; expected {}", n, steps,
                              c->width));
        }
        if (fixed == nullptr) c->lengths.push_back(n);
        ++steps;
      });
  if (!ok) bad(*c, "has bytes that are no tf.train.FeatureList");
  c->steps.push_back(steps);
  if (fixed != nullptr) c->lengths.push_back(steps);
}

Tensor int64_tensor(const std::vector<int64_t>& values, const Shape& shape) {
  Tensor t = data::make_batch(int64, shape);
  if (!values.empty()) {
    std::memcpy(t.impl()->data(), values.data(), 8 * values.size());
  }
  return t;
}

template <class T>
Tensor filled(const std::vector<T>& from, const std::vector<T>& pad,
              const std::vector<int64_t>& rows, int64_t longest, DType dtype,
              const Shape& shape) {
  Tensor t = data::make_batch(dtype, shape);
  T* to = reinterpret_cast<T*>(t.impl()->data());
  const T* next = from.data();
  for (const int64_t n : rows) {
    to = std::copy(next, next + n, to);
    to = std::fill_n(to, longest - n, pad[0]);
    next += n;
  }
  return t;
}

// Rows of `rows[i]` values each, padded to `longest`.
Tensor padded(const Collected& c, const std::vector<int64_t>& rows,
              int64_t longest, const Shape& shape) {
  if (c.kind == FeatureKind::kFloat) {
    return filled(c.values.floats, c.padding.floats, rows, longest, float32,
                  shape);
  }
  if (c.kind == FeatureKind::kInt64) {
    return filled(c.values.ints, c.padding.ints, rows, longest, int64, shape);
  }
  TextColumn all;
  size_t next = 0;
  for (const int64_t n : rows) {
    for (int64_t i = 0; i < n; ++i) all.add(c.values.texts.at(next++));
    for (int64_t i = n; i < longest; ++i) all.add(c.padding.texts.at(0));
  }
  return all.tensor(shape);
}

// All values as they came.
Tensor flat(const Collected& c, const Shape& shape) {
  if (c.kind == FeatureKind::kBytes) return c.values.texts.tensor(shape);
  const auto n = static_cast<int64_t>(c.values.count(c.kind));
  if (c.kind == FeatureKind::kFloat) {
    return filled(c.values.floats, {0}, {n}, n, float32, shape);
  }
  return filled(c.values.ints, {0}, {n}, n, int64, shape);
}

int64_t longest_of(const std::vector<int64_t>& v) {
  return v.empty() ? 0 : *std::ranges::max_element(v);
}

void check_size(const Collected& c, const Shape& shape) {
  int64_t n = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (__builtin_mul_overflow(n, shape[i], &n) || n > int64_t{1} << 32) {
      throw errors::ResourceExhausted(fmt::format(
          "feature \"{}\" padded to {} would have more than 2^32 elements; use "
          "RaggedFeature, or smaller batches",
          c.name, shape.str()));
    }
  }
}

Tensor splits_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> splits{0};
  for (int64_t n : lengths) splits.push_back(splits.back() + n);
  return int64_tensor(splits, {static_cast<int64_t>(splits.size())});
}

// VarLen of sequences: steps of all messages with those that are not there.
Tensor padded_steps(const Collected& c, int64_t batch, bool single,
                    Tensor* lengths) {
  const int64_t time = longest_of(c.steps), longest = longest_of(c.lengths);
  std::vector<int64_t> rows;
  size_t next = 0;
  for (const int64_t steps : c.steps) {
    for (int64_t t = 0; t < time; ++t) {
      rows.push_back(t < steps ? c.lengths[next++] : 0);
    }
  }
  Shape shape{batch, time, longest};
  Shape of_lengths{batch, time};
  if (single) {
    shape.erase(0);
    of_lengths.erase(0);
  }
  check_size(c, shape);
  *lengths = int64_tensor(rows, of_lengths);
  return padded(c, rows, longest, shape);
}

ParsedFeatures Batch::result(int64_t batch, bool single) const {
  ParsedFeatures out;
  for (const Collected& c : all_) {
    const auto of_batch = [&](Shape shape) {
      if (!single) shape.insert(0, batch);
      return shape;
    };
    if (const auto* fixed = std::get_if<FixedLenFeature>(&c.spec)) {
      out.values[c.name] = flat(c, of_batch(fixed->shape));
      continue;
    }
    if (std::holds_alternative<RaggedFeature>(c.spec)) {
      const auto n = static_cast<int64_t>(c.values.count(c.kind));
      out.values[c.name] = flat(c, {n});
      out.row_splits[c.name] = splits_of(c.lengths);
      if (sequence_) {
        out.lengths[c.name] = int64_tensor(c.steps, of_batch({}));
      }
      continue;
    }
    if (sequence_ && std::holds_alternative<VarLenFeature>(c.spec)) {
      out.values[c.name] = padded_steps(c, batch, single, &out.lengths[c.name]);
      continue;
    }
    const auto* list = std::get_if<FixedLenSequenceFeature>(&c.spec);
    const int64_t longest = longest_of(c.lengths);
    Shape shape = list == nullptr ? Shape{} : list->shape;
    shape.insert(0, longest);
    shape = of_batch(shape);
    check_size(c, shape);
    std::vector<int64_t> rows = c.lengths;
    for (int64_t& n : rows) n *= c.width;
    out.values[c.name] = padded(c, rows, longest * c.width, shape);
    out.lengths[c.name] = int64_tensor(c.lengths, of_batch({}));
  }
  return out;
}

ParsedSequence parse_all(const char* function, const Tensor& serialized,
                         const FeatureSpec& context, const FeatureSpec* lists,
                         bool single, Site site) {
  return named_call(function, site, [&] {
    const auto messages = texts_of(serialized, "serialized", Site{});
    if (single ? messages.size() != 1 : serialized.rank() != 1) {
      throw errors::InvalidArgument(
          fmt::format("serialized is {}; expected {}", serialized.spec().str(),
                      single ? "one scalar string" : "strings [batch]"));
    }
    Batch features(context, false);
    Batch steps(lists == nullptr ? FeatureSpec{} : *lists, true);
    const OnFeature on_context = [&](auto name, auto bytes) {
      features.found(name, bytes);
    };
    const OnFeature on_list = [&](auto name, auto bytes) {
      steps.found(name, bytes);
    };
    for (size_t i = 0; i < messages.size(); ++i) {
      features.start(static_cast<int64_t>(i));
      steps.start(static_cast<int64_t>(i));
      const bool ok = lists == nullptr ? walk_example(messages[i], on_context)
                                       : walk_sequence_example(
                                             messages[i], on_context, on_list);
      if (!ok) {
        throw errors::InvalidArgument(fmt::format(
            "message {} of {} bytes is no tf.train.{}", i, messages[i].size(),
            lists == nullptr ? "Example" : "SequenceExample"));
      }
      features.finish();
      steps.finish();
    }
    const auto batch = static_cast<int64_t>(messages.size());
    return ParsedSequence{features.result(batch, single),
                          steps.result(batch, single)};
  });
}

}  // namespace

const Tensor& ParsedFeatures::operator[](const std::string& name) const {
  const auto at = values.find(name);
  if (at != values.end()) return at->second;
  std::vector<std::string> names;
  for (const auto& [known, t] : values) names.push_back(known);
  throw errors::NotFound(
      fmt::format("no feature \"{}\" was parsed; expected one of {}", name,
                  fmt::join(names, ", ")));
}

ParsedFeatures parse_example(const Tensor& serialized,
                             const FeatureSpec& features, Site site) {
  return parse_all("parse_example", serialized, features, nullptr, false, site)
      .context;
}

ParsedFeatures parse_single_example(const Tensor& serialized,
                                    const FeatureSpec& features, Site site) {
  return parse_all("parse_single_example", serialized, features, nullptr, true,
                   site)
      .context;
}

ParsedSequence parse_sequence_example(const Tensor& serialized,
                                      const FeatureSpec& context_features,
                                      const FeatureSpec& sequence_features,
                                      Site site) {
  return parse_all("parse_sequence_example", serialized, context_features,
                   &sequence_features, false, site);
}

ParsedSequence parse_single_sequence_example(
    const Tensor& serialized, const FeatureSpec& context_features,
    const FeatureSpec& sequence_features, Site site) {
  return parse_all("parse_single_sequence_example", serialized,
                   context_features, &sequence_features, true, site);
}

}  // namespace berth::io
