// A fake libcudart.so.13: it is there, no more.

extern "C" __attribute__((visibility("default"))) int cudaRuntimeGetVersion(
    int* version) {
  *version = 13000;
  return 0;
}
