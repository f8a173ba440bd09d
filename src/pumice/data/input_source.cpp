#include "pumice/data/input_source.h"

#include "pumice/core/error.h"

namespace pumice {

InputSource::InputSource(at::Tensor inputs) : images_(std::move(inputs)), as_they_are_(true) {
  if (images_.dim() < 2 || images_.size(0) < 1) {
    fail("inputs: shape ", images_.sizes(), ", must be N×… with N >= 1");
  }
}

InputSource::InputSource(at::Tensor images, Normalization normalization)
    : images_(std::move(images)), normalization_(std::move(normalization)), as_they_are_(false) {
  if (images_.dim() != 4 || images_.size(0) < 1) {
    fail("images: shape ", images_.sizes(), ", must be N×C×H×W with N >= 1");
  }
  made(images_.narrow(0, 0, 1));  // tells at once if the normalisation does not fit
}

at::Tensor InputSource::made(const at::Tensor& images) const {
  return as_they_are_ ? images : network_inputs(images, normalization_);
}

at::Tensor InputSource::at(const at::Tensor& positions) const {
  const at::Tensor chosen = images_.index_select(0, positions);
  // index_select() forgets the layout, which convolutions are slow without.
  if (as_they_are_ && images_.dim() == 4) {
    return chosen.contiguous(images_.suggest_memory_format());
  }
  return made(chosen);
}

at::Tensor InputSource::first(std::int64_t count) const {
  return made(images_.narrow(0, 0, count));
}

}  // namespace pumice
