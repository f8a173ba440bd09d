#include "pumice/experiment/results_table.h"

#include <gtest/gtest.h>

namespace pumice {
namespace {

using nlohmann::json;

json readout(const std::string& id, double value, double original, std::vector<double> references) {
  return {{"id", id}, {"value", value}, {"original", original}, {"references", references}};
}

json run(double cohort_error, const std::string& verdict) {
  return {{"methods",
           {{"consistent",
             {{"audit",
               {{"overall", {{"verdict", verdict}}},
                {"readouts",
                 {readout("cohort_error", cohort_error, 0, {0.2, 0.4}),
                  readout("distance_cohort", 0.25, 0.65, {0.2, 0.22})}}}}}},
            {"newton", {{"summary", {{"converged", false}}}}}}}};
}

const json experiment{{"methods", {{{"label", "consistent"}}, {{"label", "newton"}}}},
                      {"runs", {run(0.2, "leaks"), run(0.4, "like retrained")}}};

TEST(ResultsTable, ShowsMeanAndDeviationOverRunsAndWhereThereIsNoResult) {
  EXPECT_EQ(results_table(experiment),
            "                    cohort err %   retain err %   test err %     attack         "
            "distance       verdict\n"
            "consistent          30.0 ± 14.1    -              -              -              "
            "0.250 ± 0.000  leaks 1, like retrained 1\n"
            "newton              -              -              -              -              "
            "-              no result\n"
            "retrained models    30.0 ± 11.5    -              -              -              "
            "0.210 ± 0.012  \n");
}

TEST(ResultsTable, ThreeLinesSayOriginalScrubbedRetrained) {
  EXPECT_EQ(three_lines(experiment, "consistent"),
            "Error on the cohort: original 0.0 ± 0.0 %, scrubbed 30.0 ± 14.1 %, retrained 30.0 ± "
            "11.5 %\n"
            "Distance to retrained models: original 0.650 ± 0.000, scrubbed 0.250 ± 0.000, "
            "retrained among themselves 0.210 ± 0.012\n"
            "Verdict on consistent: leaks 1, like retrained 1\n");
}

TEST(ResultsTable, ValuesThatAreNotFiniteAreLeftOutAndCounted) {
  const OverRuns all = over_runs({1.0, "infinite", 3.0});
  EXPECT_EQ(all.mean, 2);
  EXPECT_EQ(all.count, 2);
  EXPECT_EQ(all.left_out, 1);
  EXPECT_NEAR(all.deviation, std::sqrt(2.0), 1e-12);
}

}  // namespace
}  // namespace pumice
