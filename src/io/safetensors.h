// Tensors in safetensors files: written whole or not at all, read straight to
// where they belong.
//
// Every dtype that holds numbers, and text. complex128 and text, which the
// format has not, are stored as F64 [..., 2] and as U8, with a note in the
// metadata ("berth.dtype:NAME"). "berth.crc32c" has the checksum
// (io/checksum.h) of each tensor, 8 hexadecimal digits in the order of the
// data; files without it are read unchecked.

#ifndef BERTH_IO_SAFETENSORS_H_
#define BERTH_IO_SAFETENSORS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "berth/tensor.h"
#include "io/safetensors_header.h"

namespace berth::io {

// A tensor to be written. The snapshot of a variable (Variable::value()) is
// read in pieces while others may write the variable.
struct TensorToWrite {
  std::string name;
  Tensor value;
  // Its bytes, when they were copied before; kept by the caller.
  const std::byte* copied = nullptr;
};

// Writes a file. Messages begin with `subject`. Throws InvalidArgument for
// names, and what AtomicFile throws; a file of that name is then as before.
// Returns its size.
uint64_t write_safetensors(const std::string& path,
                           std::vector<TensorToWrite> tensors,
                           std::map<std::string, std::string> metadata,
                           const std::string& subject);

// Bytes of a tensor as they are written; text is packed.
size_t stored_bytes(const Tensor& t);
// Copies bytes of a tensor of numbers to the host, piece by piece.
void copy_pieces(const Tensor& t, std::byte* target);

class SafetensorsFile {
 public:
  // Reads the header. Throws NotFound, PermissionDenied, DataLoss.
  SafetensorsFile(const std::string& path, std::string subject);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;

  const std::string& path() const;
  uint64_t file_bytes() const;
  const std::map<std::string, std::string>& metadata() const;

  struct Info {
    std::string name;
    DType dtype = DType::kInvalid;  // kInvalid: one that Berth has not
    std::string type;               // as in the file
    Shape shape;
  };
  // In the order of their bytes.
  const std::vector<Info>& tensors() const;
  // Returns its place, -1 when there is none of that name.
  int find(const std::string& name) const;

  // Reads the bytes of tensor i of numbers to `target`, which has room for
  // them; what is large by several threads. Thread-safe. Throws DataLoss when
  // they are not what was written.
  void read(int i, std::byte* target) const;
  // Reads tensor i to the host. Also throws Unimplemented for a dtype that
  // Berth has not.
  Tensor tensor(int i) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::io

#endif  // BERTH_IO_SAFETENSORS_H_
