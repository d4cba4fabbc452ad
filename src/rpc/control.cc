#include "rpc/control.h"

#include "rpc/bytes.h"

namespace berth::rpc {

std::string encode(const Frame& f) {
  ByteWriter w;
  w.number<uint8_t>(static_cast<uint8_t>(f.type));
  w.number<uint64_t>(f.generation);
  w.task(f.task);
  w.number<uint64_t>(f.id);
  w.number<int32_t>(f.code);
  w.number<int64_t>(f.step);
  w.number<double>(f.value);
  w.number<uint8_t>(f.flag ? 1 : 0);
  w.text(f.name);
  w.text(f.text);
  w.number<uint32_t>(static_cast<uint32_t>(f.tasks.size()));
  for (const TaskEntry& t : f.tasks) {
    w.task(t.task);
    w.text(t.address);
    w.text(t.host);
    w.text(t.process);
    w.number<uint64_t>(t.incarnation);
  }
  return w.take();
}

Frame parse_frame(std::string_view bytes) {
  ByteReader r(bytes);
  Frame f;
  const auto type = r.number<uint8_t>();
  if (type == 0 || type > static_cast<uint8_t>(kLastFrame)) {
    throw errors::DataLoss("a frame of the cluster is of no known type: " +
                           std::to_string(type));
  }
  f.type = static_cast<FrameType>(type);
  f.generation = r.number<uint64_t>();
  f.task = r.task();
  f.id = r.number<uint64_t>();
  f.code = r.number<int32_t>();
  f.step = r.number<int64_t>();
  f.value = r.number<double>();
  f.flag = r.number<uint8_t>() != 0;
  f.name = r.text(64 << 10);
  f.text = r.text(kMostFrameBytes);
  const auto count = r.number<uint32_t>();
  constexpr size_t kLeast = 4 + 4 + 3 * 4 + 8;  // bytes of an entry
  if (count > r.left() / kLeast) {
    throw errors::DataLoss("a frame of the cluster lists " +
                           std::to_string(count) + " tasks, more than fit");
  }
  f.tasks.resize(count);
  for (TaskEntry& t : f.tasks) {
    t.task = r.task();
    t.address = r.text(512);
    t.host = r.text(256);
    t.process = r.text(512);
    t.incarnation = r.number<uint64_t>();
  }
  r.end();
  return f;
}

}  // namespace berth::rpc
