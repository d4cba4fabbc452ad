// Reads and writes of variables.

#include <cstring>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "op/send_recv.h"

namespace berth::reference {

namespace {

void assign(const KernelCall& c) {
  const View& value = c.in[1];
  const size_t bytes = static_cast<size_t>(value.size()) * size_of(value.dtype);
  if (bytes > 0) std::memmove(c.in[0].data, value.data, bytes);
}

template <int kSign>
void assign_add(const KernelCall& c) {
  with_ring(c.in[1].dtype, [&]<class T>(T) {
    T* v = c.in[0].as<T>();
    const T* d = c.in[1].as<T>();
    for (int64_t i = 0, n = c.in[1].size(); i < n; ++i) {
      v[i] = static_cast<T>(kSign > 0 ? v[i] + d[i] : v[i] - d[i]);
    }
  });
}

// The two ends of an edge between tasks.
void send_to_task(const KernelCall& c) {
  rendezvous_table()
      .at(c.attr<int64_t>("link"))
      ->send(c.attr<int64_t>("edge"), c.attr<std::string>("task"), c.in[0]);
}

void receive_from_task(const KernelCall& c) {
  rendezvous_table()
      .at(c.attr<int64_t>("link"))
      ->receive(c.attr<int64_t>("edge"), c.attr<std::string>("task"), c.out[0]);
}

}  // namespace

void add_variable(KernelTable& t) {
  t.direct("_TaskSend", kEveryType, &send_to_task, "reference");
  t.direct("_TaskRecv", kEveryType, &receive_from_task, "reference");
  t.direct("AssignVariableOp", kEveryType, &assign, "reference");
  t.direct("AssignAddVariableOp", kRingTypes, &assign_add<1>, "reference");
  t.direct("AssignSubVariableOp", kRingTypes, &assign_add<-1>, "reference");
}

}  // namespace berth::reference
