// The cases of eager.txt, asked of the function that eager execution asks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <ostream>

#include "berth/errors.h"
#include "conformance/place/case.h"
#include "graph/graph_text.h"
#include "op/choose_device.h"
#include "place/place_text.h"

namespace berth::conformance {

// Where a failing case stands.
void PrintTo(const PlaceCase* c, std::ostream* out) {
  *out << c->file << ".txt:" << c->line;
}

namespace {

DType dtype_named(const std::string& name) {
  for (int d = 1; d < kNumDTypes; ++d) {
    if (name == name_of(static_cast<DType>(d))) return static_cast<DType>(d);
  }
  ADD_FAILURE() << "no dtype " << name;
  return float32;
}

// One call of a case, with all it refers to.
class EagerCall {
 public:
  explicit EagerCall(const PlaceCase& c)
      : text_(parse_text(c.text)),
        options_(place_options(text_, devices_of_list(c.devices))) {
    for (const PlaceDevice& d : options_.devices) {
      names_.push_back(d.name.name());
    }
    for (const DeviceName& n : names_) pointers_.push_back(&n);
    const size_t open = c.call.find('('), close = c.call.find(')');
    call_.op = find_op(c.call.substr(0, open));
    read_inputs(c.call.substr(open + 1, close - open - 1));
    const std::vector<std::string> rest = words_of(c.call.substr(close + 1));
    if (rest.size() == 2) scope_ = DeviceName::parse(rest[1]);
    call_.dtype = kernel_dtype();
    call_.inputs = inputs_;
    call_.request = scope_ ? &*scope_ : nullptr;
    call_.devices = pointers_;
    call_.soft = c.soft_policy() != config::SoftPlacement::kError;
    call_.can_run = [this](int position) {
      const PlaceDevice& d = options_.devices[position];
      return call_.op->kind() != OpKind::kCompute ||
             d.runs(*call_.op, call_.dtype);
    };
  }

  // "GPU:1 request", with "ignored" after it when the scope was.
  std::string choose() const {
    const DeviceChoice choice = choose_device(call_);
    if (choice.position < 0) {
      const ChoiceFailure failure = failure_of(call_);
      if (failure.code == errors::Code::kUnimplemented) {
        throw errors::Unimplemented(failure.message);
      }
      throw errors::InvalidArgument(failure.message);
    }
    EXPECT_NE(reason_of(call_, choice), "");
    return fmt::format(
        "{} {}{}", short_name(options_.devices[choice.position].name.text()),
        id_of(choice.rule), choice.request_ignored ? " ignored" : "");
  }

 private:
  const OpDef* find_op(const std::string& name) const {
    for (const auto& op : text_.graph.declared_ops) {
      if (op->name() == name) return op.get();
    }
    return &op_named(name);
  }

  // "float32[4] at GPU:1, resource at CPU:0"
  void read_inputs(const std::string& list) {
    const std::vector<std::string> w = words_of(list);
    for (size_t i = 0; i + 2 < w.size(); i += 3) {
      ASSERT_EQ(w[i + 1], "at");
      const size_t bracket = std::min(w[i].find('['), w[i].size());
      ChoiceInput in;
      in.dtype = dtype_named(w[i].substr(0, bracket));
      in.elements = 1;
      for (size_t at = bracket; at + 2 < w[i].size();) {
        in.elements *= std::stoll(w[i].substr(at + 1));
        at = std::min(w[i].find(',', at + 1), w[i].size());
      }
      std::string device = w[i + 2];
      if (device.ends_with(",")) device.pop_back();
      for (size_t d = 0; d < options_.devices.size(); ++d) {
        if (short_name(options_.devices[d].name.text()) == device) {
          in.device = static_cast<int>(d);
        }
      }
      ASSERT_GE(in.device, 0) << device;
      inputs_.push_back(in);
    }
  }

  DType kernel_dtype() const {
    for (const ChoiceInput& in : inputs_) {
      if (in.dtype != resource) return in.dtype;
    }
    return float32;
  }

  GraphText text_;
  PlaceOptions options_;
  std::vector<DeviceName> names_;
  std::vector<const DeviceName*> pointers_;
  std::vector<ChoiceInput> inputs_;
  std::optional<DeviceName> scope_;
  DeviceCall call_;
};

class Eager : public testing::TestWithParam<const PlaceCase*> {};

TEST_P(Eager, FollowsTheRule) {
  const PlaceCase& c = *GetParam();
  std::string error, got;
  try {
    got = EagerCall(c).choose();
  } catch (const errors::InvalidArgument& e) {
    error = "InvalidArgument";
    got = e.what();
  } catch (const errors::Unimplemented& e) {
    error = "Unimplemented";
    got = e.what();
  }
  EXPECT_EQ(error, c.berth.error) << got;
  if (error.empty()) {
    EXPECT_EQ(got, c.berth.choice);
  }
  for (const std::string& word : c.berth.words) {
    EXPECT_NE(got.find(word), got.npos) << "no " << word << " in: " << got;
  }
}

std::vector<const PlaceCase*> eager_cases() {
  std::vector<const PlaceCase*> list;
  for (const PlaceCase& c : all_place_cases()) {
    if (c.kind == CaseKind::kEager) list.push_back(&c);
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Rules, Eager, testing::ValuesIn(eager_cases()),
                         [](const auto& info) {
                           return "line_" + std::to_string(info.param->line);
                         });

}  // namespace
}  // namespace berth::conformance
