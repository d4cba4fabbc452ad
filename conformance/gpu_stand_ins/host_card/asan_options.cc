// AddressSanitizer's options in programs that use it for kernels alone.

extern "C" __attribute__((visibility("default"))) const char*
__asan_default_options();

// Objects that are never destroyed are not leaks; other builds check the rest
// of the program.
const char* __asan_default_options() { return "detect_leaks=0"; }
