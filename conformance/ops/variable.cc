// Reading and assigning Variables.

#include "conformance/ops/families.h"

namespace berth::conformance {

void add_variable_cases(Cases& cases) {
  for (const Shape& shape : {Shape{3, 4}, Shape{}, Shape{0, 2}}) {
    const std::string label = shape.str();
    const Input variable = Input(shape).as_variable();
    cases.add("ReadVariableOp", label, {variable})
        .types(kNumberTypes)
        .close_to(0, 0);
    cases.add("AssignVariableOp", label, {variable, Input(shape)})
        .types(kNumberTypes)
        .close_to(0, 0);
    cases.add("AssignAddVariableOp", label, {variable, Input(shape)})
        .types(kNumberTypes);
    cases.add("AssignSubVariableOp", label, {variable, Input(shape)})
        .types(kNumberTypes);
  }
  // Other devices read the variable next.
  for (const char* op :
       {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"}) {
    cases.add(op, "shared", {Input({2501}).as_variable(), Input({2501})})
        .attr("shared", true)
        .types(kFloatingTypes);
  }
  cases
      .add("AssignVariableOp", "bool",
           {Input({5}).boolean().as_variable(), Input({5}).boolean()})
      .types(kBoolType);
}

}  // namespace berth::conformance
