// Network inputs that are made when they are asked for: images stay as they are stored.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "pumice/data/normalization.h"

namespace pumice {

// N examples. uint8 images take a quarter of the memory of what a network reads; of one batch the
// difference does not matter, of all examples it does. Copies share the images.
class InputSource {
 public:
  // Inputs as they are, N×….  Implicit: a tensor is a source.
  InputSource(at::Tensor inputs);  // NOLINT(google-explicit-constructor)
  // network_inputs(images, normalization), a batch at a time. Throws Error if the channels do not
  // match.
  InputSource(at::Tensor images, Normalization normalization);

  std::int64_t size() const { return images_.size(0); }  // N
  // The examples at these positions (int64), in this order: n×…, dense in memory; images in
  // channels-last layout.
  at::Tensor at(const at::Tensor& positions) const;
  at::Tensor first(std::int64_t count) const;
  // All of them at once: 4 bytes a value. For what needs them together, the dense kernel.
  at::Tensor all() const { return first(size()); }

 private:
  at::Tensor made(const at::Tensor& images) const;

  at::Tensor images_;
  Normalization normalization_;
  bool as_they_are_;
};

}  // namespace pumice
