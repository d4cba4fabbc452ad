// What AddressSanitizer does in programs that have it for kernels alone.

extern "C" __attribute__((visibility("default"))) const char*
__asan_default_options();

// What nobody destroys is no leak; the rest of the program is checked by
// others.
const char* __asan_default_options() { return "detect_leaks=0"; }
