// Fields to and from configs, with errors that name the field.

#include "keras/config/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/where.h"
#include "berth/errors.h"

namespace berth::keras {

Fields::Fields(Config* out) : out_(out) {}
Fields::Fields(Config in, std::string class_name, Site site)
    : in_(std::move(in)), class_name_(std::move(class_name)), site_(site) {
  if (in_.kind() == Config::Kind::kObject) return;
  throw errors::InvalidArgument(fmt::format(
      "the config of {}{}: found {}; expected an object of fields", class_name_,
      where_text(nullptr, site_), in_.str().substr(0, 60)));
}

std::optional<Config> Fields::get(const char* name) {
  asked_.insert(name);
  if (!in_.contains(name)) return std::nullopt;
  Config value = in_.at(name);
  if (value.kind() == Config::Kind::kNull) return std::nullopt;
  return value;
}
void Fields::put(const char* name, const Config& value) {
  out_->set(name, value);
}

void Fields::fail(const char* name, const Config& found,
                  const std::string& expected) const {
  const std::string text = found.str();
  throw errors::InvalidArgument(
      fmt::format("the config of {}{}: \"{}\" is {}{}; expected {}",
                  class_name_, where_text(nullptr, site_), name,
                  text.substr(0, 60), text.size() > 60 ? "..." : "", expected));
}

void Fields::check_there(const char* name) const {
  if (in_.contains(name)) return;
  throw errors::InvalidArgument(
      fmt::format("the config of {}{}: there is no field \"{}\"; expected it",
                  class_name_, where_text(nullptr, site_), name));
}

namespace {

bool says_nothing(const Config& v) {
  switch (v.kind()) {
    case Config::Kind::kNull:
      return true;
    case Config::Kind::kBool:
      return !v.as_bool();
    case Config::Kind::kList:
      return v.as_list().empty();
    case Config::Kind::kObject:
      return v.names().empty();
    default:
      return false;
  }
}

// Fields that Keras writes into every config, or that mean here what they mean
// by default there.
bool usual(const std::string& name, const Config& v) {
  if (name == "name" || name == "trainable" || name == "build_config") {
    return true;
  }
  if (name == "dtype") {
    const std::string text = v.str();
    return text.find("float32") != std::string::npos ||
           text.find("mixed_") != std::string::npos;
  }
  if (name == "ema_momentum" || name == "renorm_momentum") return true;
  if (name == "attention_axes") return v == Config(std::vector<int64_t>{1});
  return name == "data_format" && v == Config("channels_last");
}

}  // namespace

void Fields::done() const {
  for (const std::string& name : in_.names()) {
    if (asked_.count(name)) continue;
    const Config v = in_.at(name);
    if (says_nothing(v) || usual(name, v)) continue;
    fail(name.c_str(), v, "no such field: this class has none of that name");
  }
}

template <class Read>
void Fields::read(const char* name, const Read& read) {
  const std::optional<Config> v = get(name);
  if (!v) return;
  try {
    read(*v);
  } catch (const errors::InvalidArgument& e) {
    const std::string what = e.what();
    const size_t comma = what.find("expected ");
    fail(name, *v, comma == std::string::npos ? what : what.substr(comma + 9));
  }
}

void Fields::operator()(const char* name, bool& v) {
  if (!reading()) return put(name, v);
  read(name, [&](const Config& c) { v = c.as_bool(); });
}
void Fields::operator()(const char* name, int& v) {
  int64_t wide = v;
  (*this)(name, wide);
  if (wide != static_cast<int>(wide)) fail(name, wide, "at most 31 bits");
  v = static_cast<int>(wide);
}
void Fields::operator()(const char* name, int64_t& v) {
  if (!reading()) return put(name, v);
  read(name, [&](const Config& c) { v = c.as_int(); });
}
void Fields::operator()(const char* name, double& v) {
  if (!reading()) return put(name, v);
  read(name, [&](const Config& c) { v = c.as_double(); });
}
void Fields::operator()(const char* name, std::string& v) {
  if (!reading()) return put(name, v);
  read(name, [&](const Config& c) { v = c.as_string(); });
}

void Fields::operator()(const char* name, DType& v) {
  if (!reading()) return put(name, name_of(v));
  read(name, [&](const Config& c) {
    const std::string text = c.as_string();
    for (int i = 0; i < kNumDTypes; ++i) {
      if (text == name_of(static_cast<DType>(i))) {
        v = static_cast<DType>(i);
        return;
      }
    }
    throw errors::InvalidArgument("expected the name of a dtype");
  });
}

void Fields::operator()(const char* name, Shape& v) {
  if (!reading()) {
    std::vector<Config> dims;
    for (int64_t d : v) dims.push_back(d < 0 ? Config(nullptr) : Config(d));
    return put(name, dims);
  }
  read(name, [&](const Config& c) {
    Shape shape;
    for (const Config& d : c.as_list()) {
      if (shape.rank() == kMaxRank) {
        throw errors::InvalidArgument("expected at most 8 dimensions");
      }
      const int64_t dim =
          d.kind() == Config::Kind::kNull ? kUnknownDim : d.as_int();
      if (dim < kUnknownDim || dim > INT32_MAX * int64_t{1024}) {
        throw errors::InvalidArgument("expected dimensions of 0 or more");
      }
      shape.insert(shape.rank(), dim);
    }
    v = shape;
  });
}

void Fields::operator()(const char* name, std::vector<int64_t>& v) {
  if (!reading()) return put(name, v);
  read(name, [&](const Config& c) {
    std::vector<int64_t> list;
    for (const Config& e : c.as_list()) list.push_back(e.as_int());
    v = list;
  });
}
void Fields::operator()(const char* name, std::vector<double>& v) {
  if (!reading()) return put(name, std::vector<Config>(v.begin(), v.end()));
  read(name, [&](const Config& c) {
    std::vector<double> list;
    // Keras takes one without a list, and writes tensors as objects.
    const bool tensor = c.contains("config") && c.contains("class_name") &&
                        c.at("class_name") == Config("__tensor__");
    const Config all = tensor ? c.at("config").at("value") : c;
    if (all.kind() != Config::Kind::kList) {
      v = {all.as_double()};
      return;
    }
    for (const Config& e : all.as_list()) list.push_back(e.as_double());
    v = list;
  });
}
void Fields::operator()(const char* name, std::vector<std::string>& v) {
  if (!reading()) return put(name, v);
  read(name, [&](const Config& c) {
    std::vector<std::string> list;
    for (const Config& e : c.as_list()) list.push_back(e.as_string());
    v = list;
  });
}

namespace {

// A number, or a list of two.
std::pair<int64_t, int64_t> pair_of(const Config& c) {
  if (c.kind() == Config::Kind::kInt) return {c.as_int(), c.as_int()};
  const std::vector<Config> list = c.as_list();
  if (list.size() != 2) {
    throw errors::InvalidArgument("expected a number or a list of two");
  }
  return {list[0].as_int(), list[1].as_int()};
}

Config config_of(const Margin& m) {
  return std::vector<int64_t>{m.before, m.after};
}

}  // namespace

void Fields::operator()(const char* name, Size2D& v) {
  if (!reading()) return put(name, std::vector<int64_t>{v.h, v.w});
  read(name, [&](const Config& c) {
    const auto [h, w] = pair_of(c);
    v = {h, w};
  });
}
void Fields::operator()(const char* name, Margin& v) {
  if (!reading()) return put(name, config_of(v));
  read(name, [&](const Config& c) {
    const auto [before, after] = pair_of(c);
    v = {before, after};
  });
}
void Fields::operator()(const char* name, std::vector<Margin>& v) {
  if (!reading()) {
    std::vector<Config> list;
    for (const Margin& m : v) list.push_back(config_of(m));
    return put(name, list);
  }
  read(name, [&](const Config& c) {
    const size_t axes = v.size();
    v.clear();
    if (c.kind() == Config::Kind::kInt) {
      v.assign(axes, Margin(c.as_int()));
      return;
    }
    for (const Config& e : c.as_list()) {
      const auto [before, after] = pair_of(e);
      v.push_back({before, after});
    }
    if (v.size() != axes) {
      throw errors::InvalidArgument(
          fmt::format("expected {} pairs of numbers", axes));
    }
  });
}

void Fields::operator()(const char* name, Initializer& v) {
  if (!reading()) return put(name, initializers::serialize(v));
  if (const auto c = get(name)) v = initializers::deserialize(*c);
}
void Fields::operator()(const char* name, std::vector<Layer>& v) {
  if (!reading()) {
    std::vector<Config> list;
    for (const Layer& l : v) list.push_back(layers::serialize(l));
    return put(name, list);
  }
  const auto c = get(name);
  if (!c) return;
  v.clear();
  if (c->kind() != Config::Kind::kList) fail(name, *c, "a list of layers");
  for (const Config& e : c->as_list()) {
    v.push_back(layers::deserialize(e, site_));
  }
}
void Fields::operator()(const char* name, std::optional<Layer>& v) {
  if (!reading()) return put(name, v ? layers::serialize(*v) : Config(nullptr));
  if (const auto c = get(name)) v = layers::deserialize(*c, site_);
}

void Fields::text_or_null(const char* name, std::string& v) {
  if (!reading()) return put(name, v.empty() ? Config(nullptr) : Config(v));
  if (in_.contains(name) && in_.at(name).kind() == Config::Kind::kNull) {
    v.clear();
  }
  (*this)(name, v);
}

void Fields::activation(const char* name, std::string& v) {
  if (!reading()) return put(name, v.empty() ? std::string("linear") : v);
  if (in_.contains(name) && in_.at(name).kind() == Config::Kind::kNull) {
    v.clear();
  }
  (*this)(name, v);
}

void Fields::one(const char* name, int64_t& v) {
  if (!reading()) return put(name, std::vector<int64_t>{v});
  read(name, [&](const Config& c) {
    if (c.kind() == Config::Kind::kInt) {
      v = c.as_int();
      return;
    }
    const std::vector<Config> list = c.as_list();
    if (list.size() != 1) {
      throw errors::InvalidArgument("expected a number or a list of one");
    }
    v = list[0].as_int();
  });
}
void Fields::one(const char* name, std::optional<int64_t>& v) {
  if (!reading() && !v) return put(name, nullptr);
  if (reading() && !get(name)) return;
  int64_t value = v.value_or(0);
  one(name, value);
  v = value;
}

void Fields::fixed(const char* name, const Config& value) {
  if (!reading()) return put(name, value);
  const auto c = get(name);
  if (!c || *c == value) return;
  // Keras writes some axes as lists.
  const bool one =
      c->kind() == Config::Kind::kList && c->as_list() == std::vector{value};
  if (!one) fail(name, *c, value.str() + ": this version knows no other");
}

}  // namespace berth::keras
