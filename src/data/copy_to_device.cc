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
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  Device& device() const { return device_; }

 private:
  Device& device_;
};

class CopyStream : public ElementStream {
 public:
  CopyStream(const CopyNode* node, const PassInfo& pass)
      : node_(node),
        device_(node->device()),
        source_(node->parent().open(pass)) {}

  bool next(Tensors* out) override {
    if (!source_->next(out)) return false;
    for (Tensor& t : *out) {
      if (t.dtype() != string_) t = berth::copy_to_device(t, device_);
    }
    return true;
  }
  void save(PassWriter& w) override {
    w.begin(*node_);
    source_->save(w);
  }
  void restore(PassReader& r) override {
    r.begin(*node_);
    source_->restore(r);
  }

 private:
  const CopyNode* node_;
  Device& device_;
  std::unique_ptr<ElementStream> source_;
};

std::unique_ptr<ElementStream> CopyNode::elements(const PassInfo& pass) const {
  return std::make_unique<CopyStream>(this, pass);
}

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
