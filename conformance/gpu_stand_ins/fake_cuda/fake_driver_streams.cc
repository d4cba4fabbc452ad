// Streams, graphs, events, and the code that runs on streams.

#include <elf.h>
#include <pthread.h>

#include "conformance/gpu_stand_ins/fake_cuda/fake_state.h"

using namespace berth::cuda::fake;

namespace {

// The file in memory has the length in its header.
size_t elf_bytes(const void* image) {
  const auto* head = static_cast<const Elf64_Ehdr*>(image);
  if (std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return 0;
  const size_t sections =
      head->e_shoff + size_t{head->e_shnum} * head->e_shentsize;
  const size_t parts =
      head->e_phoff + size_t{head->e_phnum} * head->e_phentsize;
  return std::max(sections, parts);
}

}  // namespace

FAKE cuStreamCreate(CUstream* stream, unsigned) {
  Call c("cuStreamCreate");
  if (c.fails()) return c.error;
  *stream = made<CUstream_st>(c.s);
  c.s.streams.insert(*stream);
  return CUDA_SUCCESS;
}

FAKE cuStreamDestroy(CUstream stream) {
  Call c("cuStreamDestroy");
  if (capturing == stream) capturing = nullptr;
  if (!c.fails()) c.s.streams.erase(stream);
  return destroy(c, stream);
}

FAKE cuStreamSynchronize(CUstream stream) {
  Holds holds;
  {
    Call c("cuStreamSynchronize");
    if (c.refused() || c.wrong(stream)) return c.error;
    holds = stream->holds;
  }
  await_holds(holds);
  return CUDA_SUCCESS;
}

FAKE cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  Call c("cuStreamWaitEvent");
  if (c.fails() || c.wrong(stream)) return c.error;
  // An event of another context is allowed.
  if (!c.s.objects.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& h : event->holds) {
    if (h->held) stream->holds.push_back(h);
  }
  return CUDA_SUCCESS;
}

FAKE cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  Call c("cuStreamBeginCapture");
  if (c.fails() || c.wrong(stream)) return c.error;
  if (stream->captured || capturing != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    return CUDA_ERROR_INVALID_VALUE;  // other modes are not modelled
  }
  stream->captured = std::make_unique<CUgraph_st>();
  stream->captured->context = current;
  stream->broken = false;
  capturing = stream;
  return CUDA_SUCCESS;
}

FAKE cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  Call c("cuStreamEndCapture");
  *graph = nullptr;
  if (c.error == CUDA_ERROR_INVALID_CONTEXT || c.wrong(stream)) return c.error;
  if (!stream->captured) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream != capturing) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  // The capture ends even if the call fails.
  capturing = nullptr;
  std::unique_ptr<CUgraph_st> captured = std::move(stream->captured);
  if (c.fails()) return c.error;
  if (stream->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = captured.release();
  c.s.objects.insert(*graph);
  return CUDA_SUCCESS;
}

FAKE cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  Call c("cuGraphInstantiate");
  if (c.refused() || c.wrong(graph)) return c.error;
  *exec = made<CUgraphExec_st>(c.s);
  (*exec)->commands = graph->commands;
  return CUDA_SUCCESS;
}

FAKE cuGraphExecUpdate(CUgraphExec exec, CUgraph graph,
                       CUgraphExecUpdateResultInfo* info) {
  Call c("cuGraphExecUpdate");
  if (c.refused() || c.wrong(exec) || c.wrong(graph)) return c.error;
  const bool same = std::equal(
      exec->commands.begin(), exec->commands.end(), graph->commands.begin(),
      graph->commands.end(),
      [](const Command& a, const Command& b) { return a.kind == b.kind; });
  info->result = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                      : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (!same) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  exec->commands = graph->commands;
  return CUDA_SUCCESS;
}

FAKE cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  Call c("cuGraphLaunch");
  if (c.fails() || c.wrong(exec) || c.wrong(stream)) return c.error;
  if (stream->captured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (const Command& command : exec->commands) {
    // A command that was valid when captured no longer is.
    if (command.run() != CUDA_SUCCESS) {
      return current->lasting = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  }
  return CUDA_SUCCESS;
}

FAKE cuGraphExecDestroy(CUgraphExec exec) {
  Call c("cuGraphExecDestroy");
  return destroy(c, exec);
}

FAKE cuGraphDestroy(CUgraph graph) {
  Call c("cuGraphDestroy");
  return destroy(c, graph);
}

FAKE cuEventCreate(CUevent* event, unsigned flags) {
  Call c("cuEventCreate");
  if (c.fails()) return c.error;
  *event = made<CUevent_st>(c.s);
  (*event)->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  return CUDA_SUCCESS;
}

FAKE cuEventDestroy(CUevent event) {
  Call c("cuEventDestroy");
  return destroy(c, event);
}

FAKE cuEventRecord(CUevent event, CUstream stream) {
  long pause = 0;
  {
    Call c("cuEventRecord");
    if (c.fails() || c.wrong(stream) || c.wrong(event)) return c.error;
    if (stream->captured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!event->timed) {
      char name[16] = "";
      pthread_getname_np(pthread_self(), name, sizeof name);
      c.s.recorded[current->device] += name[0];
      pause = c.s.pause;
    }
    event->left = c.s.later;
    event->holds = stream->holds;
    event->at_ms = c.s.clock_ms += 0.5;
  }
  if (pause > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause));
  return CUDA_SUCCESS;
}

FAKE cuEventQuery(CUevent event) {
  Call c("cuEventQuery");
  if (c.refused() || c.wrong(event)) return c.error;
  if (is_held(event->holds)) return CUDA_ERROR_NOT_READY;
  return event->left-- > 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

FAKE cuEventSynchronize(CUevent event) {
  Holds holds;
  {
    Call c("cuEventSynchronize");
    if (c.refused() || c.wrong(event)) return c.error;
    event->left = 0;
    holds = event->holds;
  }
  await_holds(holds);
  return CUDA_SUCCESS;
}

FAKE cuEventElapsedTime(float* ms, CUevent begin, CUevent end) {
  Call c("cuEventElapsedTime");
  if (c.fails() || c.wrong(begin) || c.wrong(end)) return c.error;
  *ms = static_cast<float>(end->at_ms - begin->at_ms);
  return CUDA_SUCCESS;
}

FAKE cuModuleLoadData(CUmodule* module, const void* image) {
  Call c("cuModuleLoadData");
  if (c.refused()) return c.error;
  const size_t bytes = elf_bytes(image);
  if (bytes == 0) return CUDA_ERROR_INVALID_IMAGE;
  *module = made<CUmod_st>(c.s);
  (*module)->image.assign(static_cast<const char*>(image), bytes);
  return CUDA_SUCCESS;
}

FAKE cuModuleUnload(CUmodule module) {
  Call c("cuModuleUnload");
  if (c.refused()) return c.error;
  return destroy(c, module);
}

FAKE cuModuleGetFunction(CUfunction* function, CUmodule module,
                         const char* name) {
  Call c("cuModuleGetFunction");
  if (c.refused() || c.wrong(module)) return c.error;
  // The section that holds its code.
  const std::string section = std::string(".text.") + name + '\0';
  if (module->image.find(section) == std::string::npos) {
    return CUDA_ERROR_NOT_FOUND;
  }
  c.s.functions.push_back(std::make_unique<CUfunc_st>());
  *function = c.s.functions.back().get();
  (*function)->context = current;
  return CUDA_SUCCESS;
}

FAKE cuFuncLoad(CUfunction function) {
  Call c("cuFuncLoad");
  if (c.refused()) return c.error;
  function->loaded = true;
  return CUDA_SUCCESS;
}

FAKE cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z,
                    unsigned items, unsigned, unsigned, unsigned,
                    CUstream stream, void**, void**) {
  Call c("cuLaunchKernel");
  if (c.fails() || c.wrong(stream)) return c.error;
  if (function->context != current) return CUDA_ERROR_INVALID_HANDLE;
  if (x == 0 || x > 0x7fffffff || y == 0 || y > 65535 || z == 0 || z > 65535 ||
      items == 0 || items > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Loading waits, which no capture may.
  if (!function->loaded && c.refused()) return c.error;
  function->loaded = true;
  return append(stream, function, [] { return CUDA_SUCCESS; });
}
