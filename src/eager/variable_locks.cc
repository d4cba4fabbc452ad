#include "eager/variable_locks.h"

#include <fmt/format.h>

#include <algorithm>

#include "tensor/shards.h"
#include "tensor/tensor_impl.h"

namespace berth {

VariableLocks::VariableLocks(const OpDef& op, std::span<const Tensor* const> in)
    : op_(op) {
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorImpl& t = *in[i]->impl();
    VariableState* state = nullptr;
    Access access = Access::kValue;
    if (t.kind == TensorKind::kVariable) {
      state = t.variable;
      access = op.input(static_cast<int>(i)).access;
    } else if (t.block) {
      state = borrowed_from(t.block);
    }
    if (state == nullptr) continue;
    auto it = std::find_if(entries_.begin(), entries_.end(),
                           [&](const Entry& e) { return e.state == state; });
    const bool needs_value =
        access == Access::kReadsVariable || access == Access::kWritesVariable;
    if (it == entries_.end()) {
      entries_.push_back({state, writes(access), needs_value});
    } else {
      it->write |= writes(access);
      it->needs_value |= needs_value;
    }
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) {
              return a.state->serial < b.state->serial;
            });
  lock();
  try {
    for (const Entry& e : entries_) {
      if (e.needs_value) check_not_torn(*e.state);
      if (!e.write) continue;
      prepare_write(*e.state);
      mark_written(*e.state);
    }
  } catch (...) {
    unlock();
    throw;
  }
}

// What is read has what its shards have.
void VariableLocks::lock() {
  const auto behind = [](const Entry& e) {
    return e.needs_value && e.state->behind && !e.state->torn;
  };
  for (bool again = true; again;) {
    for (const Entry& e : entries_) {
      if (behind(e)) catch_up(*e.state);
    }
    for (const Entry& e : entries_) {
      if (e.write) {
        e.state->mutex.lock();
      } else {
        e.state->mutex.lock_shared();
      }
    }
    again = std::any_of(entries_.begin(), entries_.end(), behind);
    if (again) unlock();
  }
}

void VariableLocks::unlock() {
  for (const Entry& e : entries_) {
    if (e.write) {
      e.state->mutex.unlock();
    } else {
      e.state->mutex.unlock_shared();
    }
  }
}

void VariableLocks::tear(const char* why) {
  written([&](VariableState& v) {
    mark_torn(v, fmt::format("{} failed ({})", op_.name(), why));
  });
}

}  // namespace berth
