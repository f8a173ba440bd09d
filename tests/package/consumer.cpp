// What a user of the library writes first.
#include <iostream>

#include "pumice/model/zoo.h"

int main() {
  const pumice::Network network(
      {.name = "resnet18", .width = 0.4, .input_channels = 3, .classes = 5});
  const pumice::Weights weights = pumice::fresh_weights(network, 1);
  const at::Tensor logits = network.logits(weights, at::zeros({2, 3, 32, 32}));
  std::cout << network.layout().total() << " weights, logits " << logits.sizes() << "\n";
  return network.layout().total() == 1787741 && logits.size(1) == 5 ? 0 : 1;
}
