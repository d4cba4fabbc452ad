// The OpenCL plug-in on PoCL: what the engine adds to a launch, and what a warm
// step asks for. --model launch|step.

#include "bench_common.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "opencl_calls.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kLaunches = 2000;

// Waits for what /GPU:0 was given.
void wait_for_gpu() {
  static Device& gpu = DeviceManager::get().lookup(DeviceName::parse("/GPU:0"));
  Stream& stream = gpu.compute_stream();
  stream.synchronize(stream.record());
}

void check(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  std::fprintf(stderr, "bench_opencl: %s: %d\n", what, error);
  std::exit(1);
}

// A chain of launches by nothing but the driver's calls.
class Bare {
 public:
  Bare() {
    cl_platform_id platform = nullptr;
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr),
          "clGetDeviceIDs");
    cl_int e = 0;
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &e);
    check(e, "clCreateContext");
    queue_ = clCreateCommandQueue(context_, device_, 0, &e);
    check(e, "clCreateCommandQueue");
    const char* text =
        "__kernel __attribute__((reqd_work_group_size(256, 1, 1)))\n"
        "void add(__global const char* x, ulong x_at,\n"
        "         __global const char* a, ulong a_at,\n"
        "         __global char* y, ulong y_at, const long n) {\n"
        "  const long i = get_global_id(0);\n"
        "  if (i < n) {\n"
        "    ((__global float*)(y + y_at))[i] =\n"
        "        ((__global const float*)(x + x_at))[i] +\n"
        "        ((__global const float*)(a + a_at))[i];\n"
        "  }\n"
        "}\n";
    const cl_program program =
        clCreateProgramWithSource(context_, 1, &text, nullptr, &e);
    check(e, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device_, "", nullptr, nullptr),
          "clBuildProgram");
    kernel_ = clCreateKernel(program, "add", &e);
    check(e, "clCreateKernel");
    const cl_long n = 4;
    const cl_ulong offset = 0;
    for (cl_uint i = 0; i < 3; ++i) {
      const cl_mem m =
          clCreateBuffer(context_, CL_MEM_READ_WRITE, 64, nullptr, &e);
      check(e, "clCreateBuffer");
      clSetKernelArg(kernel_, 2 * i, sizeof(m), &m);
      clSetKernelArg(kernel_, 2 * i + 1, sizeof(offset), &offset);
    }
    clSetKernelArg(kernel_, 6, sizeof(n), &n);
  }

  void run() {
    const size_t size = 256;
    for (int i = 0; i < kLaunches; ++i) {
      clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &size, &size, 0,
                             nullptr, nullptr);
    }
    clFinish(queue_);
  }

 private:
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_kernel kernel_ = nullptr;
};

// In turns, so that both meet the same moods of the machine.
template <class A, class B>
std::pair<Timing, Timing> in_turns(A&& a, B&& b, double seconds) {
  constexpr int kTurns = 20;
  Timing first, second;
  for (int i = 0; i < kTurns; ++i) {
    const Timing x = measure(a, seconds / kTurns / 2);
    const Timing y = measure(b, seconds / kTurns / 2);
    if (i == 0 || x.best < first.best) first = x;
    if (i == 0 || y.best < second.best) second = y;
  }
  return {first, second};
}

void bench_launch(const Args& args) {
  const auto on = device("/GPU:0");
  auto chain = function(
      [](const Tensor& x, const Tensor& a) {
        Tensor y = x;
        for (int i = 0; i < kLaunches; ++i) y = y + a;
        return y;
      },
      {.name = "chain", .slices = 1, .optimize = false});
  const Tensor x = constant({1.f, 2.f, 3.f, 4.f});
  const Tensor a = constant({.5f, .5f, .5f, .5f});
  Bare bare;
  const auto [ours, theirs] = in_turns(
      [&] {
        chain(x, a);
        wait_for_gpu();
      },
      [&] { bare.run(); }, args.seconds);
  Line("opencl_launch", 1)
      .timing(ours, "us", 1e6 / kLaunches)
      .add("bare_us", theirs.best * 1e6 / kLaunches)
      .add("over_bare", ours.best / theirs.best)
      .print();
}

void bench_step(const Args& args) {
  const auto net = make_step_model("mlp");
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return (*net)(x, y); },
               {.name = "mlp_step"});
  for (int i = 0; i < 20; ++i) step(net->images(i), net->labels(i));
  wait_for_gpu();
  const long built = g_programs_built, before = t_allocations;
  constexpr int kSteps = 50;
  for (int i = 0; i < kSteps; ++i) step(net->images(i), net->labels(i));
  const long allocated = t_allocations - before;
  const long compiled = g_programs_built - built;
  int i = 0;
  const Timing t = measure(
      [&] {
        step(net->images(i), net->labels(i));
        wait_for_gpu();
        ++i;
      },
      args.seconds);
  Line("opencl_step", 1)
      .timing(t, "us", 1e6)
      .add("warm_allocations", allocated)
      .add("warm_compilations", compiled)
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  setenv("BERTH_OPENCL", "all", 0);
  const Args args = parse_args(argc, argv);
  if (config::list_physical_devices("GPU").empty()) {
    return skip("opencl", 1, "no OpenCL device (pocl-opencl-icd)");
  }
  if (args.model == "launch") bench_launch(args);
  if (args.model == "step") bench_step(args);
}
