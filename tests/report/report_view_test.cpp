#include "pumice/report/report_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "pumice/core/atomic_file.h"
#include "pumice/report/report_summary.h"
#include "refusal.h"
#include "report_records.h"
#include "temporary_folder.h"

namespace pumice::report {
namespace {

using testing::golden_path;
using testing::refusal;
using testing::stored;
using testing::TemporaryFolder;

// PUMICE_UPDATE_GOLDEN=1 writes what is there now; the difference is then read like any other.
void expect_golden(const Json& view, const std::string& name) {
  const std::string text = view.dump(1) + "\n";
  if (std::getenv("PUMICE_UPDATE_GOLDEN")) write_file_atomically(golden_path(name), text);
  EXPECT_TRUE(read_file(golden_path(name)) == text)
      << name << " differs; PUMICE_UPDATE_GOLDEN=1 report_tests rewrites it, then git diff";
}

bool mentions(const std::vector<std::string>& sentences, const std::string& words) {
  return std::any_of(sentences.begin(), sentences.end(), [&](const std::string& sentence) {
    return sentence.find(words) != std::string::npos;
  });
}

const Figure* find_figure(const ReportView& view, const std::string& id) {
  for (const ReportPart& part : view.parts) {
    for (const Figure& figure : part.figures) {
      if (figure.id == id) return &figure;
    }
  }
  return nullptr;
}

TEST(ReportView, OfAnExperimentIsTheStoredOne) {
  Json view = to_json(report_view({stored("experiment")}));
  // Long lists of drawings of the same kind: the first stands for all, their number is kept.
  for (Json& part : view["parts"]) {
    for (Json& figure : part["figures"]) {
      figure["drawing_count"] = figure["drawings"].size();
      figure["drawings"] = Json::array({figure["drawings"][0]});
      figure["drawings"][0]["table"]["rows"] = figure["drawings"][0]["table"]["rows"].size();
    }
    for (Json& table : part["tables"]) {
      if (table["folded"]) table["rows"] = table["rows"].size();
    }
  }
  expect_golden(view, "experiment.view.json");
}

TEST(ReportView, OfForgettingAndItsAuditIsTheStoredOne) {
  expect_golden(to_json(report_view({stored("forget"), stored("audit")})),
                "forget-audit.view.json");
}

TEST(ReportView, EveryPartOfTheRecordHasItsFigure) {
  const ReportView view = report_view({stored("experiment")});
  for (const char* id :
       {"readout-cohort_error", "tradeoff-white_box-retain_error",
        "tradeoff-black_box_cohort-test_error", "query-sets", "path", "projection", "line-1",
        "line-2", "surface", "roc", "entropies", "queries", "trapezium"}) {
    const Figure* figure = find_figure(view, std::string("part-1-") + id);
    ASSERT_TRUE(figure) << id;
    EXPECT_FALSE(figure->title.empty() || figure->caption.empty()) << id;
    for (const Drawing& drawing : figure->drawings) EXPECT_FALSE(drawing.table.rows.empty()) << id;
  }
}

TEST(ReportView, WhatARecordHasNotLeavesItsFigureOut) {
  ReportSource source = stored("experiment");
  for (Json& run : source.record.content["runs"]) {
    for (const char* key : {"landscape", "projection", "ablations"}) run.erase(key);
    for (auto& [name, method] : run["methods"].items()) {
      method.erase("tradeoff");
      method["audit"].erase("curves");
      method["summary"].erase("trapezium");
    }
  }
  const ReportView view = report_view({source});
  for (const Figure& figure : view.parts[0].figures) EXPECT_EQ(figure.kind, "bars") << figure.id;
  EXPECT_EQ(view.parts[0].figures.size(), 10U);
  EXPECT_EQ(view.parts[0].tables.size(), 2U);
}

TEST(ReportView, MeansAndDeviationsAreThoseOfTheRuns) {
  const ReportSource source = stored("experiment");
  std::vector<double> values;
  for (const Json& run : source.record.content["runs"]) {
    values.push_back(run["methods"]["consistent"]["audit"]["readouts"][0]["value"]);
  }
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / 3;
  for (const double value : values) squares += (value - mean) * (value - mean) / 2;
  const ReportView view = report_view({source});
  const Json& bars = find_figure(view, "part-1-readout-cohort_error")->drawings[0].data["bars"];
  const auto bar = std::find_if(bars.begin(), bars.end(),
                                [](const Json& each) { return each["label"] == "consistent"; });
  ASSERT_NE(bar, bars.end());
  EXPECT_NEAR((*bar)["value"].get<double>(), mean, 1e-12);
  EXPECT_NEAR((*bar)["error"][1].get<double>() - mean, std::sqrt(squares), 1e-12);
}

TEST(ReportView, InfiniteValuesAreShownWithTheirReason) {
  const ReportView view = report_view({stored("experiment")});
  const Drawing& bars = find_figure(view, "part-1-readout-white_box")->drawings[0];
  EXPECT_TRUE(mentions(bars.notes, "newton: infinite, because no noise was added"));
  const Drawing& tradeoff =
      find_figure(view, "part-1-tradeoff-white_box-retain_error")->drawings[0];
  EXPECT_TRUE(
      mentions(tradeoff.notes, "Noise 0 (fisher, ntk, consistent): infinite information, because"));
  EXPECT_EQ(tradeoff.table.rows[0][2], "infinite");
}

TEST(ReportView, WhatHasNoPlaceOnAnAxisIsNoted) {
  ReportSource source = stored("experiment");
  Json& run = source.record.content["runs"][0];
  run["landscape"]["surface"]["loss"][0][0] = "infinite";
  run["landscape"]["lines"][0]["cohort"][0] = "infinite";
  for (Json& each : source.record.content["runs"]) {
    each["methods"]["consistent"]["tradeoff"][2]["white_box"] = 0.0;
    each["methods"]["ntk"]["audit"]["curves"]["bounds_by_queries"]["nats"][0] = "infinite";
  }
  run["methods"]["ntk"]["audit"]["curves"]["path"]["positions"][1] = 0.15;
  const ReportView view = report_view({source});
  const auto notes = [&](const std::string& id, std::size_t drawing = 0) {
    return find_figure(view, "part-1-" + id)->drawings[drawing].notes;
  };
  EXPECT_TRUE(mentions(notes("surface"), "infinite or undefined at 1 places"));
  EXPECT_TRUE(mentions(notes("line-1"), "cohort: infinite or undefined at 1 of 21 positions"));
  EXPECT_TRUE(
      mentions(notes("tradeoff-white_box-test_error"), "(consistent): no information (zero)"));
  EXPECT_TRUE(mentions(notes("queries"), "ntk: infinite or undefined at 1 of 7 positions"));
  EXPECT_TRUE(mentions(notes("path", 3), "cohort: 2 runs were left out"));
}

TEST(ReportView, TheTrapeziumHasTheNumbersOfTheRun) {
  const ReportSource source = stored("experiment");
  const Json& summary = source.record.content["runs"][0]["methods"]["ntk"]["summary"];
  const ReportView view = report_view({source});
  const Json& data = find_figure(view, "part-1-trapezium")->drawings[0].data;
  const auto length = [](const Json& path) {
    const Json& points = path["points"];
    return std::hypot(points[1][0].get<double>() - points[0][0].get<double>(),
                      points[1][1].get<double>() - points[0][1].get<double>());
  };
  EXPECT_NEAR(length(data["paths"][0]), summary["direction_norm"].get<double>(), 1e-12);
  EXPECT_NEAR(length(data["paths"][1]), summary["shift_norm"].get<double>(), 1e-3);
  // The legs close the figure: their length is |e| only if |δ'| = |δ| + 2|k||e|.
  EXPECT_NEAR(length(data["paths"][2]), summary["trapezium"]["error_norm"].get<double>(), 1e-3);
}

TEST(ReportView, IdsAreUniqueWhateverIsPutTogether) {
  const ReportView view =
      report_view({stored("experiment"), stored("experiment"), stored("audit")});
  std::set<std::string> ids;
  std::size_t count = 0;
  for (const ReportPart& part : view.parts) {
    for (const Figure& figure : part.figures) count += ids.insert(figure.id).second ? 1 : 100;
    for (const ReportTable& table : part.tables) count += ids.insert(table.id).second ? 1 : 100;
  }
  EXPECT_EQ(ids.size(), count);
}

TEST(ReportView, ADamagedRecordIsRefusedByItsFileAndReason) {
  ReportSource source = stored("experiment");
  source.record.content.erase("runs");
  EXPECT_EQ(refusal([&] { report_view({source}); }),
            "experiment.json: is not as docs/records.md says, key 'runs' not found");
  source = stored("audit");
  source.record.content["readouts"][0]["value"] = "plenty";
  EXPECT_EQ(refusal([&] { report_view({source}); }),
            "audit.json: \"plenty\", must be a number or \"infinite\"");
  source = stored("audit");
  source.record.content["curves"]["path"]["cohort"].erase(0);
  EXPECT_EQ(refusal([&] { report_view({source}); }),
            "audit.json: curve: 10 values at 11 positions, must be as many");
}

TEST(ReportSummary, SaysWhatIsNotProved) {
  ReportSource forget = stored("forget");
  ReportSummary alone = report_summary({forget});
  EXPECT_TRUE(mentions(alone.not_proved, "No audit was made"));
  EXPECT_TRUE(mentions(alone.not_proved, "No noise was added to: ntk."));
  EXPECT_TRUE(mentions(alone.not_proved, "consistent, ntk: computed with a linear approximation"));
  EXPECT_TRUE(mentions(alone.not_proved, "warned (statistics): batch-norm statistics differ"));
  EXPECT_TRUE(mentions(alone.not_proved, "Other traces remain"));
  EXPECT_TRUE(alone.verdicts.empty());

  const ReportSummary both = report_summary({forget, stored("audit")});
  EXPECT_FALSE(mentions(both.not_proved, "No audit was made"));
  EXPECT_FALSE(mentions(both.not_proved, "is none of those"));
  EXPECT_TRUE(mentions(both.not_proved, "No audit of the model that was written by: ntk."));
  EXPECT_TRUE(mentions(both.done, "is the one that method consistent wrote"));
  forget.record.content["methods"][1]["model"] = "blake2b:other";
  EXPECT_TRUE(mentions(report_summary({forget, stored("audit")}).not_proved,
                       "The audited model (blake2b:5c1f00aa) is none of those"));
  forget.record.content["applicability"]["checks"][2]["advice"] = "refusal";
  EXPECT_TRUE(mentions(report_summary({forget}).not_proved,
                       "refused this model and was overruled (statistics)"));
  forget.record.content["methods"][0]["shift_norm"] = 0.0;
  EXPECT_TRUE(
      mentions(report_summary({forget}).done,
               "ntk left the model's weights where they were, without noise: nothing was removed"));
  forget.record.content["methods"][1]["noise"]["private"] = false;
  EXPECT_TRUE(mentions(report_summary({forget}).not_proved, "consistent came from a given seed"));
}

TEST(ReportSummary, OneReferenceOrNoneIsToldAsAGap) {
  ReportSource audit = stored("audit");
  EXPECT_FALSE(mentions(report_summary({audit}).not_proved, "retrained model to be compared with"));
  for (Json& readout : audit.record.content["readouts"]) readout["references"] = Json::array({0.3});
  EXPECT_TRUE(mentions(report_summary({audit}).not_proved, "a single retrained model"));
  for (Json& readout : audit.record.content["readouts"]) readout["references"] = Json::array();
  EXPECT_TRUE(
      mentions(report_summary({audit}).not_proved, "had no model trained without the examples"));
}

TEST(ReportSummary, TheWorstVerdictOfAllRunsCounts) {
  const ReportSummary summary = report_summary({stored("experiment")});
  ASSERT_EQ(summary.verdicts.size(), 7U);
  EXPECT_EQ(summary.verdicts[0].subject, "consistent");
  EXPECT_EQ(summary.verdicts[0].verdict, "leaks");
  ASSERT_EQ(summary.verdicts[0].counts.size(), 2U);
  EXPECT_EQ(summary.headline,
            "No method short of retraining gave a model like a retrained one in every run; most "
            "often, in 1 of 3 runs: "
            "consistent.");
  for (const char* word : {"like retrained", "leaks", "over-forgotten", "cannot tell"}) {
    EXPECT_FALSE(verdict_meaning(word).empty()) << word;
  }
}

TEST(ReportSources, OfAFolderAreItsRecordsAndTheRestIsNamed) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "b.json", read_file(golden_path("audit.json")));
  write_file_atomically(folder / "a.json", read_file(golden_path("forget.json")));
  write_file_atomically(folder / "cache.json", "{\"step\": 3}");
  write_file_atomically(folder / "notes.txt", "no");
  const ReportSources sources = read_sources({folder.path()});
  ASSERT_EQ(sources.records.size(), 2U);
  EXPECT_EQ(sources.records[0].file, "a.json");
  EXPECT_EQ(sources.skipped, std::vector<std::string>{"cache.json"});
}

TEST(ReportSources, ARecordThatWasCutOffIsNotSkipped) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.json", read_file(golden_path("forget.json")));
  const std::string whole = read_file(golden_path("audit.json"));
  write_file_atomically(folder / "b.json", whole.substr(0, whole.size() / 2));
  EXPECT_NE(refusal([&] { read_sources({folder.path()}); }).find("b.json: is no record"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice::report
