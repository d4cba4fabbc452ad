// debugging: files for TensorBoard's debugger
// (tf.debugging.experimental.enable_dump_debug_info).
//
// Options are written by name, in the order of their struct (berth.h).
// Thread-safe.

#ifndef BERTH_DEBUGGING_DUMP_H_
#define BERTH_DEBUGGING_DUMP_H_

#include <cstdint>
#include <string>

namespace berth::debugging {

struct DumpOptions {
  // "NO_TENSOR": which ops ran; "CURT_HEALTH": whether a result has a NaN or an
  // infinity; "CONCISE_HEALTH": how many; "FULL_HEALTH": also how many are
  // negative, zero, positive; "SHAPE"; "FULL_TENSOR": the values.
  std::string tensor_debug_mode = "NO_TENSOR";
  int64_t circular_buffer_size = 1000;  // the last calls; 0: all
  std::string op_regex = "";            // of ops that are looked into; "": all
};
// From now on writes every op to files in `dump_root`. Functions run op by op
// meanwhile, except compiled steps of strategies, which are not written: slow.
// Throws errors::InvalidArgument for another mode, and what io::make_folder()
// throws.
void enable_dump_debug_info(const std::string& dump_root,
                            const DumpOptions& options = {});
// Writes the calls that the ring has.
void flush_dump_debug_info();
// Does so, and ends it. A process that ends does it, too.
void disable_dump_debug_info();

}  // namespace berth::debugging

#endif  // BERTH_DEBUGGING_DUMP_H_
