#include <algorithm>
#include <cmath>
#include <iomanip>

#include "pumice/core/error.h"
#include "pumice/linalg/conjugate_gradients.h"

namespace pumice {

const char* to_text(ConjugateGradientsTermination termination) {
  switch (termination) {
    case ConjugateGradientsTermination::converged:
      return "converged";
    case ConjugateGradientsTermination::max_iterations:
      return "not converged: out of iterations";
    case ConjugateGradientsTermination::stagnated:
      return "not converged: at the limit of the numbers' accuracy";
    case ConjugateGradientsTermination::stopped:
      return "not converged: stopped";
    case ConjugateGradientsTermination::breakdown:
      return "not converged: broke down";
  }
  return "";
}

double ConjugateGradientsSummary::largest_relative_residual() const {
  double largest = 0;
  for (const ConjugateGradientsColumn& column : columns) {
    if (std::isnan(column.relative_residual)) return column.relative_residual;
    largest = std::max(largest, column.relative_residual);
  }
  return largest;
}

std::string ConjugateGradientsSummary::brief() const {
  std::string sentence = text(std::setprecision(3), to_text(termination), " after ", iterations,
                              iterations == 1 ? " iteration" : " iterations", " in ", seconds,
                              " s, relative residual ", largest_relative_residual());
  if (columns.size() > 1) {
    const auto good = std::count_if(columns.begin(), columns.end(), [](const auto& column) {
      return column.termination == ConjugateGradientsTermination::converged;
    });
    sentence += text(" at most, ", good, " of ", columns.size(), " columns converged");
  }
  for (const ConjugateGradientsColumn& column : columns) {
    if (column.explanation.empty()) continue;
    return text(sentence, " (", column.explanation, ")");
  }
  return sentence;
}

std::string ConjugateGradientsSummary::full() const {
  std::string lines =
      text("Conjugate gradients\n", "  ", to_text(termination), "\n", std::setprecision(6),
           "  iterations             ", iterations, "\n", "  columns                ",
           columns.size(), "\n", "  relative residual      ", largest_relative_residual(), "\n");
  std::optional<double> bound;
  for (const ConjugateGradientsColumn& column : columns) {
    if (!column.relative_error_bound) continue;
    bound = std::max(bound.value_or(0), *column.relative_error_bound);
  }
  if (bound) lines += text("  relative error at most ", *bound, "\n");
  lines += text("  operator applications  ", operator_applications, "\n",
                "  seconds                ", seconds, "\n");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ConjugateGradientsColumn& column = columns[i];
    if (column.termination == ConjugateGradientsTermination::converged) continue;
    lines += text("  column ", i, ": ", to_text(column.termination), " after ", column.iterations,
                  ", relative residual ", column.relative_residual,
                  column.explanation.empty() ? "" : "; ", column.explanation, "\n");
  }
  return lines;
}

}  // namespace pumice
