// Dataset::copy_to_device and prefetch_to_device.

#include "base/where.h"
#include "berth/errors.h"
#include "data/pass_state.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

// Starts the copies of each element, and hands it on without waiting for them.
class CopyNode : public Transform {
 public:
  CopyNode(const Dataset& parent, Device& device, Site site)
      : Transform("copy_to_device", site, parent), device_(device) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }

 private:
  class Stream : public TransformStream<CopyNode> {
   public:
    using TransformStream::TransformStream;
    bool next(Tensors* out) override {
      if (!source_->next(out)) return false;
      for (Tensor& t : *out) {
        if (t.dtype() != string_) t = berth::copy_to_device(t, node_.device_);
      }
      return true;
    }
    void state(PassState& s) override {
      s.begin(node_);
      s(source_);
    }
  };

  Device& device_;
};

}  // namespace

Dataset Dataset::copy_to_device(const std::string& device, Site site) const {
  const std::string where = call_text("copy_to_device", site);
  try {
    const DeviceManager& devices = DeviceManager::get("copy_to_device", site);
    return make_dataset<CopyNode>(
        *this, devices.lookup(DeviceName::parse(device)), site);
  } catch (const errors::InvalidArgument& e) {
    refuse(where, e.what());
  }
}

Dataset Dataset::prefetch_to_device(const std::string& device,
                                    int64_t buffer_size, Site site) const {
  return copy_to_device(device, site).prefetch(buffer_size, site);
}

}  // namespace berth::data
