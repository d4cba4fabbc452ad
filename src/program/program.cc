#include "program/program.h"

#include "base/where.h"

namespace berth {

void raise_at(const PlanOp& op, const errors::Error& e) {
  errors::raise(e.code(), e.what() + where_text(op.name.c_str(), op.site));
}

}  // namespace berth
