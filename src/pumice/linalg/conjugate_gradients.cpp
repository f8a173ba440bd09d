#include "pumice/linalg/conjugate_gradients.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <limits>

#include "pumice/core/error.h"
#include "pumice/linalg/column_dots.h"

namespace pumice {
namespace {

using Termination = ConjugateGradientsTermination;
using Column = ConjugateGradientsColumn;
using Positions = std::vector<std::int64_t>;

constexpr double tolerated_drift = 0.5;  // of the recursive residual, in parts of the true one
constexpr int tolerated_restarts = 3;    // in a row that do not halve the residual

at::Tensor as_tensor(const Positions& positions) {
  return at::tensor(positions, at::kLong);
}

bool is_positive(double value) {
  return std::isfinite(value) && value > 0;
}

// A column that is still worked on.
struct Active {
  std::int64_t column = 0;
  double rz = 0;                                                   // rᵀz of the current direction
  bool restart = true;                                             // the next direction is z alone
  double best_residual = std::numeric_limits<double>::infinity();  // of the restarts
  int vain_restarts = 0;
};

class Solve {
 public:
  Solve(const LinearOperator& matrix, const at::Tensor& b, const ConjugateGradientsOptions& options)
      : matrix_(matrix),
        options_(options),
        vector_input_(b.dim() == 1),
        b_(vector_input_ ? b.detach().unsqueeze(1) : b.detach()),
        b_norms_(norms_of(b_)),
        solution_(at::zeros_like(b_, at::MemoryFormat::Contiguous)),
        start_(std::chrono::steady_clock::now()) {
    summary_.columns.resize(b_.size(1));
  }

  ConjugateGradientsResult run() {
    begin();
    Termination end = Termination::max_iterations;
    while (!active_.empty() && iteration_ < options_.max_iterations) {
      turn();
      if (active_.empty()) break;
      step();
      if (active_.empty()) break;
      verify();
      if (!report()) {
        end = Termination::stopped;
        break;
      }
    }
    retire([&](std::size_t) { return true; }, end);
    measure_unconverged();
    return finish();
  }

 private:
  // x, r and the columns to work on. Those with b = 0 keep the solution 0.
  void begin() {
    for (std::int64_t column = 0; column < b_.size(1); ++column) {
      const double norm = b_norms_[column];
      if (norm == 0 && (b_.select(1, column) == 0).all().item<bool>()) {
        record(column, 0, 0);
      } else if (!std::isnormal(norm * norm)) {
        fail("right-hand side: norm of column ", column, " is ", norm,
             ", its square must be in the range of float64; scale the problem");
      } else {
        active_.push_back({.column = column});
      }
    }
    if (active_.empty()) return;
    const at::Tensor columns = as_tensor(active_columns());
    if (options_.initial_guess) {
      const at::Tensor guess = options_.initial_guess->detach();
      x_ = (vector_input_ ? guess.unsqueeze(1) : guess).index_select(1, columns);
      r_ = true_residual(x_, active_columns());
    } else {
      r_ = b_.index_select(1, columns);
      x_ = at::zeros_like(r_);
    }
    retire_converged(all_positions(), r_);
  }

  // The next direction: p ← z + βp.
  void turn() {
    const at::Tensor z = options_.preconditioner ? applied(*options_.preconditioner, r_) : r_;
    const std::vector<double> rz = dots_of(r_, z);
    std::vector<double> beta(active_.size());
    for (std::size_t i = 0; i < active_.size(); ++i) {
      beta[i] = active_[i].restart ? 0 : rz[i] / active_[i].rz;
      active_[i].rz = rz[i];
      active_[i].restart = false;
      if (!is_positive(rz[i])) explain(i, "rᵀMr", rz[i], "the preconditioner");
    }
    p_ = p_.defined() ? p_.mul_(row(beta)).add_(z) : z.clone();
    retire([&](std::size_t i) { return !is_positive(rz[i]); }, Termination::breakdown);
  }

  // Along p to the minimum: x and r. A column without a minimum there stays where it is.
  void step() {
    at::Tensor product = applied(matrix_, p_);
    summary_.operator_applications += p_.size(1);
    const std::vector<double> curvature = dots_of(p_, product);
    for (std::size_t i = 0; i < active_.size(); ++i) {
      if (!is_positive(curvature[i])) explain(i, "pᵀAp", curvature[i], "the operator");
    }
    const Positions sound =
        retire([&](std::size_t i) { return !is_positive(curvature[i]); }, Termination::breakdown);
    if (sound.empty()) return;
    if (sound.size() < curvature.size()) product = product.index_select(1, as_tensor(sound));
    std::vector<double> alpha(sound.size());
    for (std::size_t i = 0; i < sound.size(); ++i) alpha[i] = active_[i].rz / curvature[sound[i]];
    x_.addcmul_(p_, row(alpha));
    r_.addcmul_(product, row(alpha), -1);
    ++iteration_;
  }

  // Recomputes the residual of the columns that seem to have converged, or of all if it is time.
  void verify() {
    const std::vector<double> norms = norms_of(r_);
    const std::vector<double> energies = energy(all_positions(), r_);
    const bool all = iteration_ % options_.residual_recompute_every == 0;
    Positions suspects;
    std::vector<bool> claims;  // of having converged
    residual_estimate_ = 0;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      residual_estimate_ = std::max(residual_estimate_, norms[i] / b_norms_[active_[i].column]);
      const bool claim = meets_tolerances(active_[i].column, norms[i], energies[i]);
      if (!all && !claim) continue;
      suspects.push_back(static_cast<std::int64_t>(i));
      claims.push_back(claim);
    }
    if (suspects.empty()) return;
    const at::Tensor residual =
        true_residual(x_.index_select(1, as_tensor(suspects)), columns_at(suspects));
    correct_recursion(suspects, claims, residual);
    retire_converged(suspects, residual);
    retire([&](std::size_t i) { return active_[i].vain_restarts >= tolerated_restarts; },
           Termination::stagnated);
  }

  // `residual` is b − A x of the columns at `positions`. It takes the place of the recursive one
  // where that has drifted away, or claims convergence.
  void correct_recursion(const Positions& positions, const std::vector<bool>& claims,
                         const at::Tensor& residual) {
    const std::vector<double> norms = norms_of(residual);
    const std::vector<double> drifts =
        norms_of(residual - r_.index_select(1, as_tensor(positions)));
    for (std::size_t j = 0; j < positions.size(); ++j) {
      const bool drifted = !(drifts[j] <= tolerated_drift * norms[j]);  // true for NaN
      if (!drifted && !claims[j]) continue;
      r_.select(1, positions[j]).copy_(residual.select(1, static_cast<std::int64_t>(j)));
      if (!drifted) continue;
      Active& active = active_[positions[j]];
      active.restart = true;
      if (norms[j] <= active.best_residual / 2) {
        active.best_residual = norms[j];
        active.vain_restarts = 0;
      } else {
        ++active.vain_restarts;
      }
    }
  }

  bool report() {
    if (!options_.on_iteration) return true;
    return options_.on_iteration({.iteration = iteration_,
                                  .active_columns = static_cast<std::int64_t>(active_.size()),
                                  .relative_residual = residual_estimate_,
                                  .operator_applications = summary_.operator_applications,
                                  .seconds = seconds(),
                                  .solution = [this] { return current_solution(); }});
  }

  at::Tensor current_solution() const {
    at::Tensor all = solution_.clone();
    if (!active_.empty()) all.index_copy_(1, as_tensor(active_columns()), x_);
    return vector_input_ ? all.squeeze(1) : all;
  }

  // `residual` is b − A x of the columns at `positions`. Those that meet the tolerances are done.
  void retire_converged(const Positions& positions, const at::Tensor& residual) {
    const std::vector<double> norms = norms_of(residual);
    const std::vector<double> energies = energy(positions, residual);
    std::vector<bool> done(active_.size(), false);
    for (std::size_t j = 0; j < positions.size(); ++j) {
      const std::int64_t column = active_[positions[j]].column;
      if (!meets_tolerances(column, norms[j], energies[j])) continue;
      record(column, norms[j], energies[j]);
      done[positions[j]] = true;
    }
    retire([&](std::size_t i) { return done[i]; }, Termination::converged);
  }

  // Freezes the columns for which `ends(position)` holds; returns the positions of the others.
  template <typename Condition>
  Positions retire(const Condition& ends, Termination termination) {
    Positions leaving, staying;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      (ends(i) ? leaving : staying).push_back(static_cast<std::int64_t>(i));
    }
    if (leaving.empty()) return staying;
    solution_.index_copy_(1, as_tensor(columns_at(leaving)),
                          x_.index_select(1, as_tensor(leaving)));
    for (const std::int64_t i : leaving) {
      summary_.columns[active_[i].column].termination = termination;
      summary_.columns[active_[i].column].iterations = iteration_;
    }
    std::vector<Active> rest;
    for (const std::int64_t i : staying) rest.push_back(active_[i]);
    active_ = std::move(rest);
    for (at::Tensor* state : {&x_, &r_, &p_}) {
      if (state->defined()) *state = state->index_select(1, as_tensor(staying));
    }
    return staying;
  }

  // What did not converge gets a true residual too, and may turn out to be good enough.
  void measure_unconverged() {
    Positions columns;
    for (std::size_t i = 0; i < summary_.columns.size(); ++i) {
      if (summary_.columns[i].termination != Termination::converged) {
        columns.push_back(static_cast<std::int64_t>(i));
      }
    }
    if (columns.empty()) return;
    const at::Tensor x = solution_.index_select(1, as_tensor(columns));
    const at::Tensor residual = true_residual(x, columns);
    const std::vector<double> norms = norms_of(residual);
    const std::vector<double> energies =
        dots_of(x, b_.index_select(1, as_tensor(columns)) - residual);
    for (std::size_t j = 0; j < columns.size(); ++j) {
      record(columns[j], norms[j], energies[j]);
      if (meets_tolerances(columns[j], norms[j], energies[j])) {
        summary_.columns[columns[j]].termination = Termination::converged;
        summary_.columns[columns[j]].explanation.clear();
      }
    }
  }

  ConjugateGradientsResult finish() {
    for (const Column& column : summary_.columns) {
      summary_.termination = std::max(summary_.termination, column.termination);
      summary_.iterations = std::max(summary_.iterations, column.iterations);
    }
    summary_.seconds = seconds();
    return {vector_input_ ? solution_.squeeze(1) : solution_, summary_};
  }

  // |x|_A² = xᵀ(b − r) of the columns at `positions`, whose residual is `residual`.
  std::vector<double> energy(const Positions& positions, const at::Tensor& residual) const {
    if (!options_.smallest_eigenvalue) return std::vector<double>(positions.size());
    return dots_of(x_.index_select(1, as_tensor(positions)),
                   b_.index_select(1, as_tensor(columns_at(positions))) - residual);
  }

  bool meets_tolerances(std::int64_t column, double residual, double energy) const {
    if (!std::isfinite(residual)) return false;
    if (options_.relative_tolerance && residual > *options_.relative_tolerance * b_norms_[column]) {
      return false;
    }
    if (!options_.error_tolerance) return true;
    return residual / std::sqrt(*options_.smallest_eigenvalue) <=
           *options_.error_tolerance * std::sqrt(std::max(0.0, energy));
  }

  // The residual and the bounds that follow from it.
  void record(std::int64_t column, double residual, double energy) {
    Column& summary = summary_.columns[column];
    summary.relative_residual = residual == 0 ? 0 : residual / b_norms_[column];
    if (!options_.smallest_eigenvalue) return;
    const double bound = residual / std::sqrt(*options_.smallest_eigenvalue);
    summary.error_bound = bound;
    summary.relative_error_bound = residual == 0 ? 0 : bound / std::sqrt(std::max(0.0, energy));
  }

  void explain(std::size_t position, const char* what, double value, const char* whose) {
    summary_.columns[active_[position].column].explanation =
        text(std::setprecision(3), what, " = ", value, " after ", iteration_, " iterations: ",
             std::isfinite(value) ? text(whose, " is not positive definite") : "not finite");
  }

  at::Tensor true_residual(const at::Tensor& x, const Positions& columns) {
    summary_.operator_applications += x.size(1);
    return b_.index_select(1, as_tensor(columns)) - applied(matrix_, x);
  }

  std::vector<double> dots_of(const at::Tensor& x, const at::Tensor& y) const {
    return agreed(column_dots(x, y));
  }
  std::vector<double> norms_of(const at::Tensor& x) const { return agreed(column_norms(x)); }
  std::vector<double> agreed(const std::vector<double>& own) const {
    if (!options_.agreed) return own;
    const at::Tensor all = options_.agreed(at::tensor(own, at::kDouble)).contiguous();
    return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
  }

  static at::Tensor applied(const LinearOperator& matrix, const at::Tensor& x) {
    at::Tensor result = matrix.apply(x).detach();
    if (result.sizes() != x.sizes() || result.scalar_type() != x.scalar_type()) {
      fail("operator: turns shape ", x.sizes(), " of type ", x.scalar_type(), " into ",
           result.sizes(), " of type ", result.scalar_type(), ", must keep both");
    }
    return result;
  }

  // One factor for each column, to be multiplied with n×k.
  at::Tensor row(const std::vector<double>& factors) const {
    return at::tensor(factors, at::kDouble).to(b_.scalar_type());
  }

  Positions all_positions() const {
    Positions positions(active_.size());
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int64_t>(i);
    return positions;
  }
  Positions columns_at(const Positions& positions) const {
    Positions columns;
    for (const std::int64_t position : positions) columns.push_back(active_[position].column);
    return columns;
  }
  Positions active_columns() const { return columns_at(all_positions()); }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  const LinearOperator& matrix_;
  const ConjugateGradientsOptions& options_;
  bool vector_input_;
  at::Tensor b_;  // n×k, as all that follow
  std::vector<double> b_norms_;
  at::Tensor solution_;
  std::chrono::steady_clock::time_point start_;
  ConjugateGradientsSummary summary_;
  std::int64_t iteration_ = 0;
  double residual_estimate_ = 0;

  std::vector<Active> active_;
  at::Tensor x_, r_, p_;  // a column for each of active_, in its order
};

}  // namespace

ConjugateGradientsResult conjugate_gradients(const LinearOperator& matrix, const at::Tensor& b,
                                             const ConjugateGradientsOptions& options) {
  check(options, matrix, b);
  return Solve(matrix, b, options).run();
}

}  // namespace pumice
