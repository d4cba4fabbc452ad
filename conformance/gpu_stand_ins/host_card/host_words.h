// Defines the dialect's words for a C++ compiler (kernels/dialect.cl includes
// this): kernels become functions of the processor, for sanitizers. Items of a
// group are called one after another; those that meet at a BARRIER are fibers
// (item_runner.h). Includes nothing, since each kernel is compiled separately.

#ifndef BERTH_BACKENDS_GPU_HOST_HOST_WORDS_H_
#define BERTH_BACKENDS_GPU_HOST_HOST_WORDS_H_

// State that the runner shows to the item it calls; host_code.h has the same.
struct HostItem {
  int id;                     // in the group
  int items;                  // in the group
  long long group[3];         // along the axes
  long long groups;           // along the first axis
  long long groups_y;         // along the second
  unsigned long long serial;  // number of this run of a group
  void (*barrier)(int place);
  // Used where races are watched (race_watch.h).
  void (*touch)(const void* p, unsigned bytes, int writes);
  void (*see_local)(const void* begin, unsigned bytes, const char* name);
};

extern "C" {
__attribute__((visibility("default"))) HostItem host_item;

#define HOST_FUNCTION(name) \
  double name(double);      \
  float name##f(float);
#define HOST_FUNCTION2(name)   \
  double name(double, double); \
  float name##f(float, float);
HOST_FUNCTION(sin)
HOST_FUNCTION(cos)
HOST_FUNCTION(tan)
HOST_FUNCTION(asin)
HOST_FUNCTION(acos)
HOST_FUNCTION(atan)
HOST_FUNCTION(sinh)
HOST_FUNCTION(cosh)
HOST_FUNCTION(tanh)
HOST_FUNCTION(asinh)
HOST_FUNCTION(acosh)
HOST_FUNCTION(atanh)
HOST_FUNCTION(exp)
HOST_FUNCTION(expm1)
HOST_FUNCTION(log)
HOST_FUNCTION(log1p)
HOST_FUNCTION(erf)
HOST_FUNCTION(erfc)
HOST_FUNCTION(lgamma)
HOST_FUNCTION(ceil)
HOST_FUNCTION2(atan2)
HOST_FUNCTION2(fmod)
HOST_FUNCTION2(hypot)
HOST_FUNCTION2(pow)
}

#define FN static
#define GLOBAL
#define LOCAL
#define CONSTANT static const
#define KERNEL(size, name)               \
  enum { HOST_ITEMS_OF(name) = (size) }; \
  static void name
#define HOST_ITEMS_OF(name) HOST_PASTE(name)
#define HOST_PASTE(name) name##_host_items

// A group's memory holds leftovers of others: NaN, or -1.
#define LOCAL_ARRAY(type, name, n)                \
  static type name[n];                            \
  static unsigned long long name##_host_serial;   \
  if (name##_host_serial != host_item.serial) {   \
    name##_host_serial = host_item.serial;        \
    host_make_garbage(name, sizeof(name), #name); \
  }

#if HOST_WATCHES_RACES
#define HOST_UNWATCHED __attribute__((no_sanitize_thread, noinline))
// The compiler's instrumentation calls these at each access.
#define HOST_TOUCH(function, bytes, writes)          \
  extern "C" HOST_UNWATCHED void function(void* p) { \
    host_item.touch(p, bytes, writes);               \
  }
#define HOST_TOUCHES(bytes)                \
  HOST_TOUCH(__tsan_read##bytes, bytes, 0) \
  HOST_TOUCH(__tsan_write##bytes, bytes, 1)
#define HOST_TOUCHES_ANYWHERE(bytes)                 \
  HOST_TOUCH(__tsan_unaligned_read##bytes, bytes, 0) \
  HOST_TOUCH(__tsan_unaligned_write##bytes, bytes, 1)
HOST_TOUCHES(1)
HOST_TOUCHES(2)
HOST_TOUCHES(4)
HOST_TOUCHES(8)
HOST_TOUCHES(16)
HOST_TOUCHES_ANYWHERE(2)
HOST_TOUCHES_ANYWHERE(4)
HOST_TOUCHES_ANYWHERE(8)
HOST_TOUCHES_ANYWHERE(16)
extern "C" HOST_UNWATCHED void __tsan_read_range(void* p, long bytes) {
  host_item.touch(p, (unsigned)bytes, 0);
}
extern "C" HOST_UNWATCHED void __tsan_write_range(void* p, long bytes) {
  host_item.touch(p, (unsigned)bytes, 1);
}
extern "C" void __tsan_init() {}
#else
#define HOST_UNWATCHED
#endif

HOST_UNWATCHED static void host_make_garbage(void* p, unsigned long bytes,
                                             const char* name) {
  __builtin_memset(p, 0xff, bytes);
  host_item.see_local(p, (unsigned)bytes, name);
}

// Each BARRIER of the text gets its own number.
#define BARRIER() host_item.barrier(__COUNTER__)
#define LID host_item.id
#define GROUP host_item.group[0]
#define GROUP_Y host_item.group[1]
#define GROUP_Z host_item.group[2]
#define GROUPS host_item.groups
#define ITEM (host_item.group[0] * host_item.items + host_item.id)
#define AS_I32(x) __builtin_bit_cast(i32, (f32)(x))
#define AS_U32(x) __builtin_bit_cast(u32, (f32)(x))
#define AS_F32(x) __builtin_bit_cast(f32, (u32)(x))
#define AS_I64(x) __builtin_bit_cast(i64, (f64)(x))
#define AS_F64(x) __builtin_bit_cast(f64, (u64)(x))
#define F32_MADD(a, b, c) __builtin_fmaf(a, b, c)
#define F64_MADD(a, b, c) __builtin_fma(a, b, c)
#define F32_SQRT(x) __builtin_sqrtf(x)
#define F64_SQRT(x) __builtin_sqrt(x)
#define F32_FLOOR(x) __builtin_floorf(x)
#define F64_FLOOR(x) __builtin_floor(x)
#define F32_RINT(x) __builtin_rintf(x)
#define F64_RINT(x) __builtin_rint(x)
#define MUL_HI_U32(a, b) ((u32)(((u64)(u32)(a) * (u32)(b)) >> 32))
#define MUL_HI_U64(a, b) ((u64)(((unsigned __int128)(u64)(a) * (u64)(b)) >> 64))
// One item runs at a time, so these are atomic.
#define ATOMIC_CAS(p, expected, value) \
  host_compare_and_swap((int*)(p), expected, value)
HOST_UNWATCHED static int host_compare_and_swap(int* p, int expected,
                                                int value) {
  const int old = *p;
  if (old == expected) *p = value;
  return old;
}

// Describes a kernel of the program; host_code.h finds it by this.
struct HostEntry {
  int items;  // in a group
  int num_args;
  const unsigned* arg_bytes;        // 0: an address
  void (*call)(void* const* args);  // each points to an argument
};

template <class T>
struct HostBytes {
  static constexpr unsigned value = sizeof(T);
};
template <class T>
struct HostBytes<T*> {
  static constexpr unsigned value = 0;
};

template <int... I>
struct HostIndices {};

template <auto function>
struct HostKernel;
template <class... P, void (*function)(P...)>
struct HostKernel<function> {
  static constexpr int num_args = sizeof...(P);
  static constexpr unsigned bytes[sizeof...(P) + 1] = {HostBytes<P>::value...};
  template <int... I>
  static void call_with(void* const* args, HostIndices<I...>) {
    function(*static_cast<P*>(args[I])...);
  }
  static void call(void* const* args) {
    call_with(args, HostIndices<__integer_pack(num_args)...>());
  }
};

// Comes after the text and names the kernel of this library.
#define HOST_ENTRY(name)                                \
  extern "C" __attribute__((visibility("default")))     \
  const HostEntry host_entry = {                        \
      HOST_ITEMS_OF(name), HostKernel<&name>::num_args, \
      HostKernel<&name>::bytes, &HostKernel<&name>::call};

#endif  // BERTH_BACKENDS_GPU_HOST_HOST_WORDS_H_
