// One run of an experiment, a seed and a cohort: what its steps share, loaded when first needed.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pumice/data/split.h"
#include "pumice/evaluation/audit.h"
#include "pumice/experiment/experiment_setup.h"
#include "pumice/experiment/noise_tradeoff.h"

namespace pumice {

using StepProgress = std::function<void(const std::string& what, double share)>;

class RunContext {
 public:
  // `cohort` counts from 1. Nothing is computed or read yet. All three must outlive this object.
  RunContext(const ExperimentSetup& setup, const SeedData& data, std::int64_t cohort);

  const ExperimentSetup& setup() const { return setup_; }
  const Protocol& protocol() const { return setup_.protocol(); }
  const SeedData& data() const { return data_; }
  std::int64_t cohort() const { return cohort_; }
  const std::vector<std::string>& cohort_ids() const { return cohort_ids_; }
  const Split& split() const { return split_; }
  const TrainingOptions& recipe() const { return recipe_; }  // of w(D)
  std::string title() const;                                 // "seed 1", "seed 1, cohort 2"

  // A training of this run: on D, or without the cohort; reference 0 has the seeds of w(D).
  struct TrainingPlan {
    std::string title;
    TrainingOptions recipe;
    bool with_cohort = true;
    bool keep_epochs = false;
  };
  TrainingPlan original_plan() const;
  TrainingPlan reference_plan(std::int64_t index) const;
  // The method `retrain`: one more retrained model, in an order that no reference has, so that it
  // is judged by others than itself.
  TrainingPlan retrain_plan() const;
  TrainingPlan shadow_plan(bool with_cohort, std::int64_t index) const;
  StepKey key(const TrainingPlan& plan) const;
  StepKey scrub_key(const MethodProtocol& method) const;
  std::vector<std::string> reference_digests() const;  // of their keys

  // What finished steps left behind. Each is read once and kept until release().
  const ExperimentSetup::SeedStart& start();
  Model& model() { return *start().start.model; }
  const Weights& trained(const TrainingPlan& plan);
  std::vector<Weights> references();
  const ForgettingTask& task();
  SharedProblems& shared();
  // None if the method came to no result.
  struct Release {
    Weights sample;
    WeightDistribution distribution;
  };
  std::optional<Release> release_of(const MethodProtocol& method);
  // References with the noise of `noise`, for bounds; shared by all methods with the same one.
  Audit& audit(const NoiseOptions& noise);
  const TradeoffSide& reference_side(const TradeoffOptions& options);
  TradeoffOptions tradeoff_options(const MethodProtocol& method) const;

  void set_progress(StepProgress progress) { progress_ = std::move(progress); }
  void tell(const std::string& what, double share) const {
    if (progress_) progress_(what, share);
  }
  void release();  // gives everything back that was read or computed

 private:
  bool paths_are_drawn() const;  // of this seed's trainings: their epochs are kept
  AuditedModel noisy(const Weights& weights, const NoiseOptions& noise);

  const ExperimentSetup& setup_;
  const SeedData& data_;
  std::int64_t cohort_;
  std::vector<std::string> cohort_ids_;
  Split split_;
  TrainingOptions recipe_;
  StepProgress progress_;

  struct KeptAudit {
    AuditTask task;
    std::unique_ptr<Audit> audit;
  };
  std::optional<ExperimentSetup::SeedStart> start_;
  std::map<std::string, Weights> trained_;
  std::optional<ForgettingTask> task_;
  std::unique_ptr<SharedProblems> shared_;
  std::map<std::string, at::Tensor> fisher_;                  // by digest of the weights
  std::map<std::string, std::unique_ptr<KeptAudit>> audits_;  // by noise
  std::shared_ptr<KnownReadouts> known_readouts_ = std::make_shared<KnownReadouts>();
  std::map<std::string, TradeoffSide> reference_sides_;
};

// What a key says about noise, and about a method.
nlohmann::json identity(const NoiseOptions& noise);
nlohmann::json identity(const MethodProtocol& method);

}  // namespace pumice
