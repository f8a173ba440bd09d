#include <gtest/gtest.h>

#include <algorithm>

#include "contracts/linear_operator_contract.h"
#include "linalg/known_matrices.h"
#include "pumice/linalg/dense_operator.h"
#include "pumice/linalg/shifted_operator.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::broken_promises;
using testing::hilbert;
using testing::ill_conditioned;
using testing::laplacian;
using testing::refusal;

using Sentences = std::vector<std::string>;
const Sentences none;

bool any_starts_with(const Sentences& sentences, const std::string& start) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& sentence) { return sentence.starts_with(start); });
}

TEST(DenseOperator, KeepsTheContract) {
  for (const at::Tensor& matrix :
       {laplacian(13), hilbert(6), ill_conditioned(17, 3), at::full({1, 1}, 2.5, at::kDouble)}) {
    EXPECT_EQ(broken_promises(DenseOperator(matrix), matrix, 1e-13), none);
    EXPECT_EQ(broken_promises(DenseOperator(matrix.to(at::kFloat)), matrix, 1e-6), none);
  }
}

TEST(ShiftedOperator, KeepsTheContractAndAddsItsShiftToTheDiagonal) {
  const at::Tensor matrix = ill_conditioned(17, 3);
  const DenseOperator dense(matrix);
  const ShiftedOperator shifted(dense, 0.25);
  const at::Tensor expected = matrix + 0.25 * at::eye(17, at::kDouble);
  EXPECT_EQ(broken_promises(shifted, expected, 1e-13), none);
  EXPECT_EQ(broken_promises(ShiftedOperator(shifted, 0), expected, 1e-13), none);
}

TEST(ShiftedOperator, ShiftsThatAreNoRidgeAreRefused) {
  const DenseOperator dense(laplacian(3));
  EXPECT_EQ(refusal([&] { ShiftedOperator(dense, -0.5); }), "shift: -0.5, must be finite and >= 0");
  EXPECT_EQ(refusal([&] { ShiftedOperator(dense, std::nan("")); }),
            "shift: nan, must be finite and >= 0");
}

TEST(DenseOperator, MatricesThatAreNotSymmetricAreRefusedWithTheElement) {
  at::Tensor matrix = laplacian(4);
  EXPECT_EQ(refusal([&] { DenseOperator(matrix.narrow(0, 0, 3)); }),
            "matrix: shape [3, 4], must be n×n with n >= 1");
  EXPECT_EQ(refusal([&] { DenseOperator(matrix.to(at::kInt)); }),
            "matrix: type Int, must be float64 or float32");
  matrix[1][3] = 0.5;
  EXPECT_EQ(refusal([&] { DenseOperator{matrix}; }),
            "matrix: element (1, 3) = 0.5, its mirror image = 0, must be equal within 1e-10 of the "
            "largest element, 2");
  matrix[3][0] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal([&] { DenseOperator{matrix}; }),
            "matrix: element (3, 0) is inf, must be finite");
}

TEST(DenseOperator, AsymmetryIsFoundBeyondTheFirstBlockOfRows) {
  at::Tensor matrix = at::eye(1500, at::kFloat);
  matrix[1400][1300] = 1e-6;
  EXPECT_EQ(refusal([&] { DenseOperator{matrix}; }), "accepted");
  matrix[1400][1300] = 1e-3;
  EXPECT_EQ(
      refusal([&] { DenseOperator{matrix}; }),
      "matrix: element (1300, 1400) = 0, its mirror image = 0.001, must be equal within 1e-05 "
      "of the largest element, 1");
}

TEST(DenseOperator, OperandsOfAnotherShapeOrTypeAreRefused) {
  const DenseOperator dense(laplacian(4));
  EXPECT_EQ(refusal([&] { dense.apply(at::zeros({5}, at::kDouble)); }),
            "operand: shape [5], must be [4] or [4, k]");
  EXPECT_EQ(refusal([&] { dense.apply(at::zeros({4}, at::kFloat)); }),
            "operand: type Float, must be Double as the operator's");
}

TEST(DenseOperator, ItsDiagonalIsACopy) {
  const DenseOperator dense(laplacian(4));
  dense.diagonal().zero_();
  EXPECT_TRUE(at::equal(dense.diagonal(), at::full({4}, 2.0, at::kDouble)));
}

// Breaks one promise at a time.
class Faulty : public LinearOperator {
 public:
  enum class Fault { none, asymmetric, wrong_diagonal, restless, writes_operand, accepts_anything };
  explicit Faulty(Fault fault) : fault_(fault) {}

  std::int64_t size() const override { return 5; }
  at::Tensor apply(const at::Tensor& x) const override {
    if (fault_ == Fault::accepts_anything && x.size(0) != 5) return x;
    if (fault_ == Fault::accepts_anything && x.dim() > 2) return x;
    check_operand(x, 5);
    at::Tensor matrix = laplacian(5);
    if (fault_ == Fault::asymmetric) matrix[0][4] = 0.01;
    if (fault_ == Fault::restless) matrix[0][0] += 1e-15 * ++calls_;
    at::Tensor product = matrix.matmul(x);
    if (fault_ == Fault::writes_operand) x.mul_(2);
    return product;
  }
  at::Tensor diagonal() const override {
    return at::full({5}, fault_ == Fault::wrong_diagonal ? 2.001 : 2.0, at::kDouble);
  }

 private:
  Fault fault_;
  mutable int calls_ = 0;
};

TEST(LinearOperatorContract, FindsEachBrokenPromise) {
  const at::Tensor matrix = laplacian(5);
  const auto faults = [&](Faulty::Fault fault) {
    return broken_promises(Faulty(fault), matrix, 1e-12);
  };
  EXPECT_EQ(faults(Faulty::Fault::none), none);
  EXPECT_TRUE(any_starts_with(faults(Faulty::Fault::asymmetric), "the identity is turned"));
  EXPECT_TRUE(any_starts_with(faults(Faulty::Fault::asymmetric), "<Ax,y> = "));
  EXPECT_EQ(faults(Faulty::Fault::wrong_diagonal),
            Sentences{"diagonal() is the diagonal of the matrix"});
  EXPECT_TRUE(any_starts_with(faults(Faulty::Fault::restless), "apply() gives the same twice"));
  EXPECT_TRUE(any_starts_with(faults(Faulty::Fault::writes_operand), "apply() leaves its operand"));
  EXPECT_EQ(faults(Faulty::Fault::accepts_anything),
            (Sentences{"a longer vector is refused", "a third dimension is refused"}));
  EXPECT_TRUE(any_starts_with(broken_promises(Faulty(Faulty::Fault::none), -matrix, 1e-12),
                              "columns are multiplied by the matrix"));
}

TEST(LinearOperatorContract, FindsANegativeOperator) {
  const Sentences broken = broken_promises(DenseOperator(-laplacian(5)), -laplacian(5), 1e-12);
  EXPECT_EQ(broken.size(), 1);
  EXPECT_TRUE(any_starts_with(broken, "xᵀAx = -"));
}

}  // namespace
}  // namespace pumice
