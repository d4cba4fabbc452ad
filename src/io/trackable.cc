// Objects of a checkpoint that are not models: variables, numbers, texts,
// functions, the random state.

#include <fmt/format.h>

#include <charconv>

#include "berth/data.h"
#include "berth/errors.h"
#include "berth/train.h"
#include "ops/random_key.h"

namespace berth::train {

bool Tracked::restore_later(const std::string&, const Tensor&) { return false; }

namespace {

class TrackedVariables final : public Tracked {
 public:
  explicit TrackedVariables(std::vector<NamedVariable> list)
      : list_(std::move(list)) {}
  std::string kind() const override { return "Variable"; }
  std::vector<NamedVariable> variables() const override { return list_; }

 private:
  const std::vector<NamedVariable> list_;
};

// Something that a text says all of.
class TrackedText final : public Tracked {
 public:
  using Get = std::function<std::string()>;
  using Set = std::function<void(const std::string&)>;
  TrackedText(const char* kind, Get get, Set set)
      : kind_(kind), get_(std::move(get)), set_(std::move(set)) {}
  std::string kind() const override { return kind_; }
  ObjectState state() const override { return {{}, get_()}; }
  void set_state(const ObjectState& s) override { set_(s.text); }

 private:
  const char* const kind_;
  const Get get_;
  const Set set_;
};

template <class T>
T parsed(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [to, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc() && to == end) return value;
  throw errors::DataLoss(fmt::format(
      "the checkpoint says \"{}\" where a number belongs; take another one",
      text.substr(0, 40)));
}

template <class T>
std::shared_ptr<Tracked> tracked_number(const char* kind, T& value) {
  // The shortest text that gives the same bits.
  return std::make_shared<TrackedText>(
      kind, [&value] { return fmt::format("{}", value); },
      [&value](const std::string& text) { value = parsed<T>(text); });
}

class TrackedIterator final : public Tracked {
 public:
  explicit TrackedIterator(data::Iterator& it) : it_(it) {}
  std::string kind() const override { return "Iterator"; }
  ObjectState state() const override {
    data::IteratorState s = it_.save();
    ObjectState state{{}, std::move(s.text)};
    for (size_t i = 0; i < s.tensors.size(); ++i) {
      state.tensors[std::to_string(i)] = std::move(s.tensors[i]);
    }
    return state;
  }
  void set_state(const ObjectState& state) override {
    data::IteratorState s{state.text, {}};
    while (true) {
      const auto it = state.tensors.find(std::to_string(s.tensors.size()));
      if (it == state.tensors.end()) break;
      s.tensors.push_back(it->second);
    }
    it_.restore(s);
  }

 private:
  data::Iterator& it_;
};

std::vector<NamedVariable> numbered(const std::vector<Variable>& variables) {
  std::vector<NamedVariable> list;
  for (size_t i = 0; i < variables.size(); ++i) {
    list.push_back({std::to_string(i), variables[i]});
  }
  return list;
}

}  // namespace

Trackable::Trackable(std::shared_ptr<Tracked> tracked)
    : tracked_(std::move(tracked)) {
  if (tracked_ == nullptr) {
    throw errors::InvalidArgument(
        "a Trackable was made of a null pointer; expected an object");
  }
}
Trackable::Trackable(const Variable& v)
    : tracked_(std::make_shared<TrackedVariables>(
          std::vector<NamedVariable>{{"", v}})) {}
Trackable::Trackable(const std::vector<Variable>& list)
    : tracked_(std::make_shared<TrackedVariables>(numbered(list))) {}
Trackable::Trackable(int& v) : tracked_(tracked_number("number", v)) {}
Trackable::Trackable(int64_t& v) : tracked_(tracked_number("number", v)) {}
Trackable::Trackable(double& v) : tracked_(tracked_number("number", v)) {}
Trackable::Trackable(bool& v)
    : tracked_(std::make_shared<TrackedText>(
          "bool", [&v] { return v ? "1" : "0"; },
          [&v](const std::string& text) { v = parsed<int>(text) != 0; })) {}
Trackable::Trackable(std::string& v)
    : tracked_(std::make_shared<TrackedText>(
          "text", [&v] { return v; },
          [&v](const std::string& text) { v = text; })) {}

Trackable::Trackable(data::Iterator& it)
    : tracked_(std::make_shared<TrackedIterator>(it)) {}

std::shared_ptr<Tracked> Trackable::of_function(
    std::function<std::string()> state,
    std::function<void(const std::string&)> set_state) {
  return std::make_shared<TrackedText>("Function", std::move(state),
                                       std::move(set_state));
}

Trackable random_state() {
  return Trackable(std::make_shared<TrackedText>(
      "random state",
      [] {
        const RandomState s = berth::random_state();
        return fmt::format("{} {}", s.seed, s.next_id);
      },
      [](const std::string& text) {
        const size_t space = std::min(text.find(' '), text.size());
        RandomState s = berth::random_state();
        s.seed = parsed<int64_t>(text.substr(0, space));
        s.next_id =
            parsed<int64_t>(text.substr(std::min(space + 1, text.size())));
        set_random_state(s);
      }));
}

}  // namespace berth::train
