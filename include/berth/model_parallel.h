// Split layers: variables that are divided along an axis over devices, and the
// ops that use them (tensor parallelism; keras.distribution.ModelParallel,
// tf.experimental.dtensor).
//
//   distribute::LayoutMap layouts(distribute::Mesh({{"model", 2}},
//                                                  {"/GPU:0", "/GPU:1"}));
//   layouts["up/kernel"] = {"", "model"};    // columns
//   layouts["down/kernel"] = {"model", ""};  // rows
//   distribute::ModelParallel split(layouts);
//
// Options are written by name, in the order of their struct.

#ifndef BERTH_MODEL_PARALLEL_H_
#define BERTH_MODEL_PARALLEL_H_

#include <string>
#include <utility>
#include <vector>

#include "berth/distribute.h"
#include "berth/site.h"

namespace berth::distribute {

struct MeshAxis {
  std::string name;
  int size = 0;
};

// Devices in a grid with named axes (tf.experimental.dtensor.Mesh).
class Mesh {
 public:
  // The last axis is the one along which devices follow each other. Throws
  // errors::InvalidArgument unless there are as many devices as places, and
  // each axis has a name of its own and at least one place.
  Mesh(std::vector<MeshAxis> axes, std::vector<std::string> devices,
       Site site = Site::here());

  const std::vector<MeshAxis>& axes() const { return axes_; }
  const std::vector<std::string>& devices() const { return devices_; }
  // Places along an axis; 0: there is none of this name.
  int dim_size(const std::string& name) const;

 private:
  std::vector<MeshAxis> axes_;
  std::vector<std::string> devices_;
};

// For each axis of a variable the axis of the mesh that divides it; "": whole
// (tf.experimental.dtensor.Layout without its mesh).
using AxisNames = std::vector<std::string>;

// Which variables are divided, and how (keras.distribution.LayoutMap).
class LayoutMap {
 public:
  explicit LayoutMap(Mesh mesh) : mesh_(std::move(mesh)) {}

  // The layout of variables whose name is `key` or, where no key is the name,
  // matches the regular expression `key` (ECMAScript) as a whole.
  AxisNames& operator[](const std::string& key);
  const std::vector<std::pair<std::string, AxisNames>>& entries() const {
    return entries_;
  }
  const Mesh& mesh() const { return mesh_; }

 private:
  Mesh mesh_;
  std::vector<std::pair<std::string, AxisNames>> entries_;
};

struct ModelParallelOptions {
  // The axis of the mesh along which batches are divided, as over the replicas
  // of a MirroredStrategy; "": none. No layout has it.
  std::string batch_dim_name = "";
  // How much of each layer a device has, in whole numbers; they must divide the
  // axes that are divided. Equal by default; not Auto.
  Shares shares = {};
};

// Variables of the layout map are divided; ops that use them run in parts, one
// on each device, by the split rules alone, and sums and gathers are added
// where a value is needed whole. All else is computed whole. Optimizers keep
// what they have of a variable in its layout. fit, evaluate and predict give
// the results of one device to rounding; what the user holds is the whole
// variable, in host memory, so that it is read, assigned and saved as any
// other.
struct ModelParallel : Strategy {
  // Throws errors::InvalidArgument for devices that do not exist, layouts with
  // names that the mesh lacks, more than one divided axis in a layout, a mesh
  // with several devices along more than one axis besides that of batches, keys
  // that are not regular expressions, and shares that are not whole numbers.
  explicit ModelParallel(LayoutMap layout_map,
                         ModelParallelOptions options = {},
                         Site site = Site::here());
};

}  // namespace berth::distribute

#endif  // BERTH_MODEL_PARALLEL_H_
