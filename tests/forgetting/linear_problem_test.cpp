#include "pumice/forgetting/linear_problem.h"

#include <gtest/gtest.h>

#include "contracts/linear_operator_contract.h"
#include "forgetting_tasks.h"
#include "pumice/linearization/gauss_newton_operator.h"
#include "refusal.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small requests

LinearProblem problem_of(const SmallRequest& request, LinearProblemOptions options = {}) {
  return {*request.model, request.weights, request.inputs(),  request.data.labels,
          request.start,  request.loss,    std::move(options)};
}

at::Tensor rows_of(const std::vector<std::int64_t>& examples, std::int64_t classes) {
  std::vector<std::int64_t> rows;
  for (const std::int64_t example : examples) {
    for (std::int64_t c = 0; c < classes; ++c) rows.push_back(example * classes + c);
  }
  return at::tensor(rows, at::kLong);
}

TEST(LinearProblem, DenseAndMatrixFreeSolutionsAgree) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  const LinearProblem problem = problem_of(request, {.relative_tolerance = 1e-11});
  for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
    for (const bool displaced : {true, false}) {
      LinearModel model{.curvature = curvature, .decay = 0.1, .displaced = displaced};
      const auto dense = problem.direction(request.split.cohort, request.split.retain, model);
      model.solver = Solver::matrix_free;
      const auto matrix_free = problem.direction(request.split.cohort, request.split.retain, model);
      EXPECT_TRUE(dense.report.converged && matrix_free.report.converged);
      EXPECT_LT(relative_distance(matrix_free.value, dense.value), 1e-7);
      EXPECT_LT(relative_distance(matrix_free.all.value, dense.all.value), 1e-8);
      EXPECT_LT(relative_distance(matrix_free.retain.value, dense.retain.value), 1e-8);
      EXPECT_GT(*matrix_free.report.iterations, 0);
    }
  }
}

// One Gauss-Newton step on each objective, with dense matrices in weight space.
TEST(LinearProblem, TheSoftmaxDirectionIsTheDifferenceOfTwoGaussNewtonSteps) {
  const SmallRequest request = curved_request({1, 2, 20});
  const LinearProblem problem = problem_of(request);
  const auto direction = problem.direction(request.split.cohort, request.split.retain,
                                           {.curvature = Curvature::softmax, .decay = 0.1});
  const at::Tensor jacobian = dense_jacobian(*request.model, request.weights, request.inputs());
  const at::Tensor logits = request.model->logits(request.weights, request.inputs()).detach();
  const at::Tensor shares = logits.softmax(1);
  const at::Tensor u = request.weights.flat - request.start;
  const auto gauss_newton = [&](const std::vector<std::int64_t>& part) {
    at::Tensor matrix = at::zeros({u.numel(), u.numel()}, at::kDouble);
    at::Tensor gradient = at::zeros_like(u);
    for (const std::int64_t i : part) {
      const at::Tensor own = jacobian.narrow(0, 3 * i, 3);
      const at::Tensor hessian = at::diag(shares[i]) - at::outer(shares[i], shares[i]);
      at::Tensor residual = shares[i].clone();
      residual[request.data.labels[i].item<std::int64_t>()] -= 1;
      matrix += own.t().mm(hessian).mm(own);
      gradient += own.t().mv(residual);
    }
    const double ridge = 0.1 * static_cast<double>(part.size());
    matrix.diagonal().add_(ridge);
    return std::pair{matrix, gradient + ridge * u};
  };
  const auto [a_all, g_all] = gauss_newton(everything(24));
  const auto [a_retain, g_retain] = gauss_newton(request.split.retain);
  const at::Tensor step_all = -at::linalg_solve(a_all, g_all.unsqueeze(1)).squeeze(1);
  const at::Tensor step_retain = -at::linalg_solve(a_retain, g_retain.unsqueeze(1)).squeeze(1);
  EXPECT_LT(relative_distance(direction.value, step_retain - step_all), 1e-8);
  EXPECT_LT(relative_distance(direction.retain.value, step_retain + u), 1e-9);

  // The right-hand side that knows only the cohort: A_r Δ = J_fᵀ(r_f + H_f J_f step) + Nf·λ·(u +
  // step).
  at::Tensor b = 0.1 * static_cast<double>(request.split.cohort.size()) * (u + step_all);
  for (const std::int64_t i : request.split.cohort) {
    const at::Tensor own = jacobian.narrow(0, 3 * i, 3);
    const at::Tensor hessian = at::diag(shares[i]) - at::outer(shares[i], shares[i]);
    at::Tensor residual = shares[i].clone();
    residual[request.data.labels[i].item<std::int64_t>()] -= 1;
    b += own.t().mv(residual + hessian.mv(own.mv(step_all)));
  }
  EXPECT_LT(relative_distance(a_retain.mv(direction.value), b), 1e-8);
}

// With one common ridge the paper's closed form is P J_fᵀ M V; its printed V has a wrong sign.
TEST(LinearProblem, ThePapersClosedFormHoldsWithTheCorrectedSignAndNotWithThePrintedOne) {
  const SmallRequest request = linear_request({2, 5, 9, 17});
  const at::Tensor jacobian = dense_jacobian(*request.model, request.weights, request.inputs());
  const at::Tensor f0 =
      request.model->logits({request.weights.layout, request.start}, request.inputs()).detach();
  const at::Tensor y = at::one_hot(request.data.labels, 3).to(at::kDouble);
  const double ridge = 1.7;
  const at::Tensor f_rows = rows_of(request.split.cohort, 3);
  const at::Tensor r_rows = rows_of(request.split.retain, 3);
  const at::Tensor j_f = jacobian.index_select(0, f_rows), j_r = jacobian.index_select(0, r_rows);
  const auto ridged = [&](const at::Tensor& matrix) {
    return matrix + ridge * at::eye(matrix.size(0), at::kDouble);
  };
  const at::Tensor rr = ridged(j_r.mm(j_r.t())), ff = ridged(j_f.mm(j_f.t())), rf = j_r.mm(j_f.t());
  const at::Tensor r0_f = (f0 - y).reshape({-1}).index_select(0, f_rows);
  const at::Tensor r0_r = (f0 - y).reshape({-1}).index_select(0, r_rows);
  const auto solve = [](const at::Tensor& a, const at::Tensor& b) {
    return b.dim() == 1 ? at::linalg_solve(a, b.unsqueeze(1)).squeeze(1) : at::linalg_solve(a, b);
  };
  const at::Tensor m = at::linalg_inv(ff - rf.t().mm(solve(rr, rf)));
  const auto closed_form = [&](double sign) {
    const at::Tensor v = r0_f - sign * rf.t().mv(solve(rr, r0_r));
    const at::Tensor pulled = j_f.t().mv(m.mv(v));
    return pulled - j_r.t().mv(solve(rr, j_r.mv(pulled)));
  };
  const at::Tensor all = ridged(jacobian.mm(jacobian.t()));
  const at::Tensor difference =
      -j_r.t().mv(solve(rr, r0_r)) + jacobian.t().mv(solve(all, (f0 - y).reshape({-1})));
  EXPECT_LT(relative_distance(closed_form(1), difference), 1e-9);
  EXPECT_GT(relative_distance(closed_form(-1), difference), 0.1);
  // The library's solves are those: wlin with the ridge |S|λ, so λ differs between the two parts.
  const LinearProblem problem(*request.model, {request.weights.layout, request.start},
                              request.inputs(), request.data.labels, request.start, Loss::squared);
  const auto part = [&](const std::vector<std::int64_t>& examples) {
    return problem
        .wlin(examples, {.decay = ridge / static_cast<double>(examples.size()), .displaced = false})
        .value;
  };
  EXPECT_LT(relative_distance(part(request.split.retain) - part(everything(24)), difference), 1e-9);
}

TEST(LinearProblem, TheGaussNewtonOperatorEqualsItsDenseForm) {
  const SmallRequest request = curved_request({0});
  const ExampleStream stream(*request.model, request.weights, request.inputs());
  const at::Tensor jacobian = dense_jacobian(*request.model, request.weights, request.inputs());
  const LogitCurvature softmax = logit_curvature(Loss::cross_entropy, Curvature::softmax);
  const at::Tensor root = softmax.root(stream.logits(everything(24)));
  const at::Tensor rows =
      root.transpose(1, 2).bmm(jacobian.view({24, 3, -1})).reshape({-1, jacobian.size(1)});
  const std::vector<std::string> none;
  at::Tensor dense = rows.t().mm(rows);
  dense.diagonal().add_(0.3);
  EXPECT_EQ(
      broken_promises(GaussNewtonOperator(stream, everything(24), softmax, 0.3), dense, 1e-10),
      none);
  at::Tensor plain = jacobian.t().mm(jacobian);
  plain.diagonal().add_(0.3);
  EXPECT_EQ(broken_promises(GaussNewtonOperator(stream, everything(24), {}, 0.3), plain, 1e-10),
            none);
}

TEST(LinearProblem, TrainingOnNothingLeavesTheCentre) {
  const SmallRequest request = curved_request(everything(24));
  const LinearProblem problem = problem_of(request);
  for (const Solver solver : {Solver::dense, Solver::matrix_free}) {
    const auto direction =
        problem.direction(request.split.cohort, {}, {.decay = 0.1, .solver = solver});
    EXPECT_EQ(direction.retain.value.norm().item<double>(), 0);
    EXPECT_LT(relative_distance(direction.value, -direction.all.value), 1e-9);
  }
}

TEST(LinearProblem, WhatDoesNotFitIsRefused) {
  const SmallRequest request = curved_request({0});
  EXPECT_NE(refusal([&] {
              LinearProblem(*request.model, request.weights, request.inputs(), request.data.labels,
                            at::zeros({3}), request.loss);
            }).find("centre of the decay: 3 values"),
            std::string::npos);
  const LinearProblem problem = problem_of(request);
  EXPECT_EQ(refusal([&] {
              problem.wlin({0, 1}, {.decay = 0});
            }),
            "weight decay: 0, must be > 0 for a solve with a ridge");
}

}  // namespace
}  // namespace pumice
