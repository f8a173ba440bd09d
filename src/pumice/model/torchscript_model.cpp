#include "pumice/model/torchscript_model.h"

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"

namespace pumice {
namespace {

// One place of the module tree where a parameter lives.
struct Slot {
  torch::jit::Module owner;
  std::string attribute;
};

// Every parameter of `module` with its full name, in the module's order.
template <typename Visit>
void visit_parameters(const torch::jit::Module& module, const Visit& visit) {
  for (const auto& submodule : module.named_modules()) {
    for (const auto& parameter : submodule.value.named_parameters(/*recurse=*/false)) {
      const std::string prefix = submodule.name.empty() ? "" : submodule.name + ".";
      visit(prefix + parameter.name, Slot{submodule.value, parameter.name}, parameter.value);
    }
  }
}

std::string first_line(const std::string& message) {
  return message.substr(0, message.find('\n'));
}

constexpr const char* metadata_entry = "pumice.json";

}  // namespace

struct TorchScriptModel::Implementation {
  std::string file;
  torch::jit::Module module;
  std::vector<std::vector<Slot>> slots;                  // by entry of the layout
  std::vector<at::Tensor> own_tensors;                   // the values from the file
  std::vector<std::pair<Slot, at::Tensor>> own_buffers;  // floating-point ones
  std::mutex parameters;                                 // of the module, while it runs
};

TorchScriptModel::TorchScriptModel() : implementation_(std::make_unique<Implementation>()) {}
TorchScriptModel::~TorchScriptModel() = default;

std::unique_ptr<TorchScriptModel> TorchScriptModel::load(const std::filesystem::path& path) {
  const std::string file = path.string();
  read_file(path);  // a missing file gets our own sentence
  std::unique_ptr<TorchScriptModel> model(new TorchScriptModel());
  Implementation& self = *model->implementation_;
  self.file = file;
  torch::jit::ExtraFilesMap extra{{metadata_entry, ""}};
  try {
    self.module = torch::jit::load(file, at::kCPU, extra);
  } catch (const c10::Error& reason) {
    fail(file, ": not a TorchScript file (torch.jit.trace or script, then save), ",
         first_line(reason.what_without_backtrace()));
  }
  for (const auto& submodule : self.module.named_modules()) {
    // Frozen modules have no such attribute, and is_training() takes that for "yes".
    if (submodule.value.hasattr("training") && submodule.value.is_training()) {
      fail(file, ": module '", submodule.name,
           "' is in training mode, call model.eval() before saving");
    }
  }
  auto layout = std::make_shared<WeightLayout>();
  std::unordered_map<const void*, std::size_t> entry_of;  // tensor → entry, to find shared ones
  visit_parameters(self.module, [&](const std::string& name, Slot slot, const at::Tensor& tensor) {
    if (tensor.scalar_type() != at::kFloat) {
      fail(file, ": parameter '", name, "' has type ", tensor.scalar_type(), ", must be float32");
    }
    const auto [place, is_new] = entry_of.emplace(tensor.unsafeGetTensorImpl(), self.slots.size());
    if (is_new) {
      layout->add(name, tensor.sizes().vec());
      self.slots.emplace_back();
      self.own_tensors.push_back(tensor.detach());
    }
    self.slots[place->second].push_back(std::move(slot));
  });
  for (const auto& submodule : self.module.named_modules()) {
    for (const auto& buffer : submodule.value.named_buffers(/*recurse=*/false)) {
      if (!buffer.value.is_floating_point()) continue;
      self.own_buffers.emplace_back(Slot{submodule.value, buffer.name}, buffer.value);
    }
  }
  if (self.slots.empty()) {
    fail(file, ": has no parameters, was it frozen? Save it before torch.jit.freeze");
  }
  model->layout_ = std::move(layout);
  if (!extra[metadata_entry].empty()) {
    try {
      model->metadata_ = nlohmann::json::parse(extra[metadata_entry]).get<Metadata>();
    } catch (const nlohmann::json::exception&) {
      fail(file, ": its entry ", metadata_entry, " is damaged");
    }
  }
  return model;
}

Weights TorchScriptModel::weights() const {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : implementation_->own_tensors)
    parts.push_back(tensor.reshape({-1}));
  return {layout_, at::cat(parts)};
}

std::vector<NamedTensor> TorchScriptModel::buffers() const {
  std::vector<NamedTensor> buffers;
  for (const auto& buffer : implementation_->module.named_buffers()) {
    buffers.emplace_back(buffer.name, buffer.value);
  }
  return buffers;
}

at::Tensor TorchScriptModel::logits(const Weights& weights, const at::Tensor& inputs) const {
  Implementation& self = *implementation_;
  // The profiling executor would fuse and specialise the graph after the first calls: results would
  // depend on how often the model has run, and gradients could not be followed layer by layer. The
  // switch belongs to the thread.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  const std::lock_guard one_at_a_time(self.parameters);
  const auto put = [&](const std::vector<at::Tensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (Slot& slot : self.slots[i]) slot.owner.setattr(slot.attribute, tensors[i]);
    }
    // to() is free when the type is already right.
    for (auto& [slot, buffer] : self.own_buffers) {
      slot.owner.setattr(slot.attribute, buffer.to(tensors.front().scalar_type()));
    }
  };
  put(weights.tensors());
  torch::jit::IValue output;
  try {
    // In the default layout: view() after a convolution, as many models have it, refuses
    // channels-last.
    output = self.module.forward({inputs.contiguous()});
  } catch (const std::exception& reason) {
    put(self.own_tensors);
    // The interpreter's message is a traceback that ends in the cause.
    std::string message = reason.what();
    while (!message.empty() && message.back() == '\n') message.pop_back();
    fail(self.file, ": cannot run on inputs of shape ", inputs.sizes(), ", ",
         message.substr(message.rfind('\n') + 1));
  }
  // Give the module its own tensors back, so that it does not keep the caller's graph alive.
  put(self.own_tensors);
  if (!output.isTensor()) fail(self.file, ": its output is not a tensor, must be N×c logits");
  at::Tensor logits = output.toTensor();
  if (logits.dim() != 2 || logits.size(0) != inputs.size(0) || logits.size(1) < 2) {
    fail(self.file, ": its output has shape ", logits.sizes(), " for ", inputs.size(0),
         " inputs, must be N×c with c >= 2");
  }
  return logits;
}

void TorchScriptModel::save(const std::filesystem::path& path, const Weights& weights,
                            const Metadata& metadata) const {
  const torch::jit::Module copy = implementation_->module.deepcopy();
  const std::vector<at::Tensor> values = weights.tensors();
  // deepcopy keeps sharing, and visits in the same order: write into the copies in place.
  std::unordered_map<const void*, std::size_t> entry_of;
  at::NoGradGuard no_grad;
  visit_parameters(copy, [&](const std::string&, const Slot&, at::Tensor tensor) {
    const auto [place, is_new] = entry_of.emplace(tensor.unsafeGetTensorImpl(), entry_of.size());
    if (is_new) tensor.copy_(values.at(place->second).detach());
    tensor.requires_grad_();
  });
  AtomicFile file(path);
  const torch::jit::ExtraFilesMap extra{{metadata_entry, nlohmann::json(metadata).dump()}};
  try {
    // To a stream: a path would become the name of the archive's inner folder, and the same model
    // would not give the same bytes.
    std::ofstream out(file.temporary_path(), std::ios::binary);
    copy.save(out, extra);
    out.close();
    if (!out) fail(path.string(), ": cannot be written, is the disk full?");
  } catch (const c10::Error& reason) {
    fail(path.string(), ": cannot be written, ", first_line(reason.what_without_backtrace()));
  }
  file.commit();
}

std::string file_extension(const Model& model) {
  return dynamic_cast<const TorchScriptModel*>(&model) ? ".pt" : ".safetensors";
}

}  // namespace pumice
