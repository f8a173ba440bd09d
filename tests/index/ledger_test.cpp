#include "pumice/index/ledger.h"

#include <gtest/gtest.h>

#include "pumice/index/release_bounds.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::refusal;
using Json = Ledger::Json;
using Kind = ReleaseBound::Kind;

Ledger three_entries() {
  Ledger ledger;
  ledger.append("build", {{"examples", 24}, {"scale", 0.1}});
  ledger.append("request", {{"request", 1}, {"forgotten", 2}, {"noise", nullptr}});
  ledger.append("request", {{"request", 2}, {"forgotten", 1}, {"share_forgotten", 1.0 / 3}});
  return ledger;
}

TEST(Ledger, EveryEntryCarriesTheDigestOfTheOneBefore) {
  const Ledger ledger = three_entries();
  const Ledger again("ledger", ledger.text());
  EXPECT_EQ(again.text(), ledger.text());
  ASSERT_EQ(again.entries().size(), 3U);
  EXPECT_EQ(again.entries()[0]["previous"], "none");
  EXPECT_EQ(again.entries()[2]["previous"], again.entries()[1]["digest"]);
  EXPECT_EQ(again.head(), again.entries()[2]["digest"]);
  EXPECT_TRUE(again.contains(again.entries()[1]["digest"]));
  EXPECT_EQ(again.last_with("scale")->at("kind"), "build");
}

TEST(Ledger, AnyFlippedBitIsFoundInItsLine) {
  const std::string text = three_entries().text();
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 7)));
    const std::string sentence = refusal([&] { Ledger("ledger", changed); });
    EXPECT_EQ(sentence.rfind("ledger:" + std::to_string(line) + ":", 0), 0U)
        << "byte " << i << ": " << sentence;
    line += text[i] == '\n';
  }
}

TEST(Ledger, LinesThatAreMissingMovedOrCutOffAreFound) {
  const Ledger ledger = three_entries();
  const auto line = [&](std::size_t i) { return ledger.entries()[i].dump() + "\n"; };
  EXPECT_EQ(refusal([&] { Ledger("l", line(0) + line(2)); }),
            "l:2: damaged, it does not follow the line before it");
  EXPECT_EQ(refusal([&] { Ledger("l", line(0) + line(2) + line(1)); }),
            "l:2: damaged, it does not follow the line before it");
  EXPECT_EQ(refusal([&] { Ledger("l", line(0) + line(1).substr(0, 40)); }),
            "l:2: cut off, must end with the line");
}

Json request(int number, const Json& noise) {
  return {{"request", number},
          {"retained", 24 - number},
          {"released", "model " + std::to_string(number)},
          {"noise", noise}};
}
const Json noise{{"scale", 1e-9}, {"shape", "paper"}, {"private", true}};

Record audit_of(int number, double white_box, double black_box) {
  return {.kind = "audit",
          .content = {{"model", "model " + std::to_string(number)},
                      {"examples", 24},
                      {"cohort_size", number},
                      {"references", {"r1", "r2"}},
                      {"noise", {{"scale", 1e-9}, {"shape", "paper"}, {"mean_known", true}}},
                      {"readouts",
                       {{{"id", "white_box"}, {"value", white_box}},
                        {{"id", "black_box_cohort"}, {"value", black_box}}}}}};
}

void audited(Ledger& ledger, int number, double white_box, double black_box) {
  ledger.append("bound",
                bound_entry(ledger, audit_of(number, white_box, black_box), "digest", number));
}

TEST(ReleaseBounds, BoundsOfSuccessiveReleasesAddUpAndARefreshEndsTheSumOfThoseForgottenBefore) {
  Ledger ledger;
  ledger.append("build", {});
  for (int number = 1; number <= 3; ++number) {
    ledger.append("request", request(number, noise));
    if (number == 2) ledger.append("refresh", {});
    audited(ledger, number, 10 * number, 0.5 * number);
  }
  const ReleaseBounds bounds = release_bounds(ledger);
  EXPECT_EQ(bounds.white_box.nats, 60);
  EXPECT_EQ(bounds.black_box.nats, 3);
  EXPECT_EQ(bounds.white_box.kind, Kind::finite);
  ASSERT_EQ(bounds.releases.size(), 3U);
  EXPECT_EQ(bounds.releases[0].white_box_since.nats, 30);  // releases 1 and 2
  EXPECT_EQ(bounds.releases[1].white_box_since.nats, 20);
  EXPECT_EQ(bounds.releases[2].white_box_since.nats, 30);
  EXPECT_EQ(bounds.releases[2].point, 1);
}

TEST(ReleaseBounds, TheLargestAuditOfAReleaseCounts) {
  Ledger ledger;
  ledger.append("request", request(1, noise));
  audited(ledger, 1, 5, 1);
  audited(ledger, 1, 4, 2);
  EXPECT_EQ(release_bounds(ledger).white_box.nats, 5);
  EXPECT_EQ(release_bounds(ledger).black_box.nats, 2);
}

TEST(ReleaseBounds, WithoutNoiseOrAuditThereIsNoSumAndTheReasonIsGiven) {
  Ledger ledger;
  ledger.append("request", request(1, noise));
  ledger.append("request", request(2, noise));
  audited(ledger, 1, 5, 1);
  EXPECT_EQ(release_bounds(ledger).white_box.text(), "unknown (release 2 was not audited)");
  EXPECT_EQ(release_bounds(ledger).releases[0].white_box.text(), "5 nats");
  ledger.append("request", request(3, nullptr));
  EXPECT_EQ(release_bounds(ledger).white_box.text(), "infinite (release 3 has no noise)");
  Json seeded = noise;
  seeded["private"] = false;
  Ledger other;
  other.append("request", request(1, seeded));
  audited(other, 1, 5, 1);
  EXPECT_EQ(release_bounds(other).white_box.text(),
            "infinite (release 1 has noise that can be repeated)");
}

TEST(ReleaseBounds, AnAuditOfSomethingElseIsRefused) {
  Ledger ledger;
  ledger.append("request", request(1, noise));
  ledger.append("request", request(2, noise));
  const auto sentence = [&](const std::function<void(Record&)>& change,
                            std::optional<std::int64_t> number = {}) {
    Record audit = audit_of(2, 5, 1);
    change(audit);
    return refusal([&] { bound_entry(ledger, audit, "digest", number); });
  };
  EXPECT_EQ(sentence([](Record&) {}, 2), "accepted");
  EXPECT_NE(sentence([](Record& audit) { audit.kind = "forget"; }).find("kind 'forget'"),
            std::string::npos);
  EXPECT_NE(sentence([](Record& audit) { audit.content["model"] = "other"; }).find("no release"),
            std::string::npos);
  EXPECT_NE(sentence([](Record&) {}, 1).find("the release of request 2, not of 1"),
            std::string::npos);
  EXPECT_NE(sentence([](Record& audit) {
              audit.content["cohort_size"] = 1;
            }).find("trained on 23 examples, must be the 22"),
            std::string::npos);
  EXPECT_NE(sentence([](Record& audit) {
              audit.content["noise"]["scale"] = 1e-8;
            }).find("made for noise 1e-08 (paper), the release has 1e-09 (paper)"),
            std::string::npos);
  EXPECT_NE(sentence([](Record& audit) { audit.content["readouts"].clear(); }).find("no bound"),
            std::string::npos);
  EXPECT_NE(sentence([](Record& audit) {
              audit.content["references"] = nlohmann::json::array();
            }).find("no retrained model"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
