// Session: one task's state on the devices of this one. Internal to the module.
//
// Runs the commands of that task, message by message. One thread at a time.

#ifndef BERTH_REMOTE_SESSION_H_
#define BERTH_REMOTE_SESSION_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cluster/member.h"
#include "device/device.h"
#include "graph/graph.h"
#include "op/kernel.h"
#include "remote/mailbox.h"
#include "remote/message_codec.h"
#include "remote/protocol.h"

namespace berth::remote {

class SessionPart;

// A kernel that the task has bound.
struct SessionKernel {
  Device* device = nullptr;
  Graph graph;  // its last node is the op
  std::vector<SpecView> in;
  std::vector<OutSpec> out;
  Shape unsplit;
  bool has_unsplit = false;
  BoundKernel kernel;
  const Node& node() const { return graph.nodes.back(); }
};

class Session {
 public:
  Session(std::shared_ptr<cluster::Member> member, cluster::TaskId client,
          std::vector<Device*> devices);
  ~Session();

  // Runs a message's commands; returns the answer.
  cluster::Message run(std::string_view commands, std::vector<Tensor> carried);

  const std::vector<Device*>& devices() const { return devices_; }
  const std::shared_ptr<cluster::Member>& member() const { return member_; }
  const cluster::TaskId& client() const { return client_; }

  // The bytes at an address of the client. Throws errors::InvalidArgument for
  // addresses that are not in the session. Null for no bytes.
  std::byte* at(uint64_t address, size_t bytes, Device* device = nullptr);

 private:
  struct Segment {
    BlockRef block;
    size_t bytes = 0;
  };
  void step(Reader& r);
  // Tells tasks that wait for values of a skipped command.
  void skip(Reader& r);
  Tensor take_carried();

  void map(Reader& r);
  void unmap(Reader& r);
  void write(Reader& r);
  void read(Reader& r);
  void copy(Reader& r);
  void fill(Reader& r);
  void bind(Reader& r);
  void run_kernel(Reader& r);
  void send(Reader& r);
  void receive(Reader& r);
  void compile(Reader& r);
  void run_part(Reader& r);

  const std::shared_ptr<cluster::Member> member_;
  const cluster::TaskId client_;
  const std::vector<Device*> devices_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::map<uint64_t, Segment> segments_;  // by address
  std::unordered_map<uint64_t, std::shared_ptr<SessionKernel>> kernels_;
  std::unordered_map<uint64_t, std::unique_ptr<SessionPart>> parts_;
  bool failed_ = false;
  errors::Code code_ = errors::Code::kUnknown;  // of the failure
  std::string why_;
  // For the current message.
  std::vector<Tensor> carried_, answers_;
  size_t next_carried_ = 0;
};

// Calls fn as work of the device and waits for it.
void on_device(Device& device, const std::function<void(Stream&)>& fn);
// Copy to and from the memory of an idle device.
void copy_in(Device& device, void* target, const void* source, size_t bytes);
void copy_out(Device& device, void* target, const void* source, size_t bytes);

}  // namespace berth::remote

#endif  // BERTH_REMOTE_SESSION_H_
