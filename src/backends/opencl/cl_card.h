// ClCard: an OpenCL device as a Card, and related functions.

#ifndef BERTH_BACKENDS_OPENCL_CL_CARD_H_
#define BERTH_BACKENDS_OPENCL_CL_CARD_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/card.h"
#include "backends/opencl/cl_error.h"
#include "backends/opencl/cl_memory.h"
#include "backends/opencl/cl_products.h"

namespace berth::opencl {

class ClCard : public gpu::Card {
 public:
  // `context` holds all cards of the platform and lives as long as they do.
  ClCard(cl_context context, cl_device_id device, int peers);

  std::unique_ptr<gpu::Kernel> product(const gpu::MatrixProduct& product,
                                       size_t* scratch_bytes) override;
  std::unique_ptr<gpu::Queue> make_queue() override;
  std::unique_ptr<MemorySource> memory_source() override {
    return cl_memory_source(*memory_);
  }
  std::unique_ptr<MemorySource> pinned_source() override;
  bool reaches(const gpu::Card& other) const override;

  cl_device_id device() const { return device_; }
  cl_context context() const { return context_; }
  // Returns the memory that holds an address: this card's or that of another
  // card of its context.
  Place place_of(const void* address) const;

 protected:
  std::unique_ptr<gpu::Module> compile(const std::string& text) override;

 private:
  bool uses_clblast() const;
  friend void join_cards(std::vector<std::unique_ptr<ClCard>>& cards);
  const cl_context context_;
  const cl_device_id device_;
  Products products_ = Products::kAuto;
  bool is_processor_ = false, has_f16_ = false, orders_kernels_ = false;
  std::unique_ptr<ClMemory> memory_;
  std::vector<const ClMemory*> memories_;  // of the context's cards
};

// Tells the cards of one context about each other's memory.
void join_cards(std::vector<std::unique_ptr<ClCard>>& cards);

// Returns a text of the driver, for example CL_DEVICE_NAME.
std::string device_text(cl_device_id device, cl_device_info what);

// Returns the first 255 bytes of a text of the platform.
std::string platform_text(cl_platform_id platform, cl_platform_info what);

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_CL_CARD_H_
