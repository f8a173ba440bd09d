#include "pumice/model/model.h"

#include "pumice/core/digest.h"

namespace pumice {

std::string digest(const Model& model, const Weights& weights) {
  Digest whole;
  whole.add_text(digest(weights));
  for (const auto& [name, tensor] : model.buffers()) {
    const at::Tensor values = tensor.detach().contiguous();
    whole.add_text(name);
    whole.add_bytes(values.data_ptr(), values.nbytes());
  }
  return whole.label();
}

}  // namespace pumice
