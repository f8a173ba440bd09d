// A network from a TorchScript file (`torch.jit.trace` or `torch.jit.script`, saved as .pt).
#pragma once

#include <filesystem>
#include <memory>

#include "pumice/model/model.h"

namespace pumice {

// Parameters are the module's own, in its order, each once: a tensor shared by two layers is one
// entry, named after its first place. Refused with the reason: a module (or part of one) in
// training mode, one without parameters (frozen), parameters that are not all float32, an output
// that is not N×c.
class TorchScriptModel : public Model {
 public:
  static std::unique_ptr<TorchScriptModel> load(const std::filesystem::path& path);
  ~TorchScriptModel() override;

  Weights weights() const;  // those in the file
  const Metadata& metadata() const {
    return metadata_;
  }  // what save() was given, empty for foreign files
  std::shared_ptr<const WeightLayout> shared_layout() const { return layout_; }

  const WeightLayout& layout() const override { return *layout_; }
  std::vector<NamedTensor> buffers() const override;
  at::Tensor logits(const Weights& weights, const at::Tensor& inputs) const override;
  void save(const std::filesystem::path& path, const Weights& weights,
            const Metadata& metadata) const override;

 private:
  struct Implementation;  // keeps torch/script.h out of this header
  TorchScriptModel();

  std::unique_ptr<Implementation> implementation_;
  std::shared_ptr<const WeightLayout> layout_;
  Metadata metadata_;
};

// Of the files that save() of this model writes: ".pt" for TorchScript, else ".safetensors".
std::string file_extension(const Model& model);

}  // namespace pumice
