#include "place/failure.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/request_text.h"
#include "op/kernel.h"

namespace berth {

namespace {

using ConstraintKind = PlaceConstraint::Kind;

class Failure {
 public:
  Failure(ConstraintSets& sets, int32_t element, const PlaceConflict& conflict)
      : s_(sets), conflict_(conflict), node_(s_.node_of(element)) {
    for (const PlaceConstraint& c : conflict.constraints) {
      if (c.kind == ConstraintKind::kRequest ||
          c.kind == ConstraintKind::kResource) {
        request_ = &c;
      } else if (c.kind == ConstraintKind::kKernels) {
        kernels_ = &c;
      } else {
        only_one_node_ = false;
      }
    }
    if (request_) only_one_node_ &= !kernels_ || same_node();
    if (kernels_ || request_) node_ = (kernels_ ? kernels_ : request_)->node;
  }

  [[noreturn]] void raise() {
    if (conflict_.constraints.size() == 1 && request_) {
      throw PlaceInvalid(no_device(), conflict_);
    }
    if (only_one_node_ && kernels_) throw PlaceNoKernel(no_kernel(), conflict_);
    const std::string text = contradiction();
    if (kernels_) throw PlaceNoKernel(text, conflict_);
    throw PlaceInvalid(text, conflict_);
  }

 private:
  // Advice that applies where soft placement is off.
  const char* or_soft() const {
    return s_.hard() ? ", or allow soft placement" : "";
  }

  bool same_node() const { return kernels_->node == request_->node; }

  std::string no_device() const {
    const DeviceName name = s_.devices().name(s_.request(node_));
    bool have_type = false;
    for (int32_t d = 0; d < s_.devices().size(); ++d) {
      have_type |= !name.type || s_.devices()[d].name.type == name.type;
    }
    return fmt::format(
        "{} was asked to run on \"{}\", but no such device exists; expected "
        "one of {}{}; ask for one of these{}",
        describe(s_.graph(), node_), request_->what, s_.devices().list(),
        have_type ? ""
                  : fmt::format(" (there is no {} at all)",
                                name.type.value_or("device")),
        or_soft());
  }

  std::string no_kernel() {
    const Node& n = s_.graph()[node_];
    const DeviceSet can = s_.kernels().of(s_.graph(), n).devices;
    std::string on = "any device", why = "nobody asked for one";
    if (request_) {
      const DeviceSet asked = s_.devices().mask(s_.request(node_));
      on = s_.devices().list(asked ? device_bit(asked.first()) : asked);
      why = fmt::format("asked for by \"{}\"", request_->what);
    } else if (!n.requested.empty()) {
      why = fmt::format("its request, \"{}\", does not matter",
                        n.requested.text());
    }
    if (can == 0) {
      return fmt::format(
          "{}: no kernel for {} on {} ({}); no device has one; listed are {}; "
          "register a kernel of {}, or give it a decomposition",
          describe(s_.graph(), node_), name_of(node_dtype(s_.graph(), n)), on,
          why, s_.devices().list(), n.op->name());
    }
    return fmt::format(
        "{}: no kernel for {} on {} ({}); these devices have one: {}; ask for "
        "\"{}\"{}",
        describe(s_.graph(), node_), name_of(node_dtype(s_.graph(), n)), on,
        why, s_.devices().list(can),
        request_text(s_.devices()[can.first()].name), or_soft());
  }

  std::string contradiction() const {
    return fmt::format(
        "{} cannot be placed: these constraints contradict each other:{}\n"
        "available devices: {}; {}",
        describe(s_.graph(), subject()), conflict_.str(), s_.devices().list(),
        suggestion());
  }

  // The message's subject: the node that connects, else one without a kernel.
  int32_t subject() const {
    for (const PlaceConstraint& c : conflict_.constraints) {
      if (c.binary()) return c.node;
    }
    return node_;
  }

  std::string suggestion() const {
    const auto& all = conflict_.constraints;
    const auto homes =
        std::count_if(all.begin(), all.end(), [](const PlaceConstraint& c) {
          return c.kind == ConstraintKind::kResource ||
                 c.kind == ConstraintKind::kVariable;
        });
    if (homes > 1) return "create both variables under the same device scope";
    const auto group =
        std::find_if(all.begin(), all.end(), [](const PlaceConstraint& c) {
          return c.kind == ConstraintKind::kGroup;
        });
    if (group != all.end()) {
      return fmt::format("take \"{}\" out of group \"{}\"",
                         s_.graph()[group->node].name, group->what);
    }
    if (request_ && kernels_) {
      return fmt::format(
          "ask for another device at \"{}\", or register a "
          "kernel of {}",
          s_.graph()[request_->node].name,
          s_.graph()[kernels_->node].op->name());
    }
    if (request_) {
      return fmt::format("take the request of \"{}\" away",
                         s_.graph()[request_->node].name);
    }
    if (kernels_) {
      return fmt::format("register a kernel of {}",
                         s_.graph()[kernels_->node].op->name());
    }
    return "change one of them";
  }

  ConstraintSets& s_;
  const PlaceConflict& conflict_;
  int32_t node_;
  const PlaceConstraint* request_ = nullptr;
  const PlaceConstraint* kernels_ = nullptr;
  bool only_one_node_ = true;
};

}  // namespace

void throw_conflict(ConstraintSets& sets, int32_t element,
                    const PlaceConflict& conflict) {
  Failure(sets, element, conflict).raise();
}

}  // namespace berth
