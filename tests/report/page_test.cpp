#include "pumice/report/page.h"

#include <gtest/gtest.h>

#include "report_records.h"

namespace pumice::report {
namespace {

using testing::stored;

std::size_t count(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++found;
  return found;
}

TEST(Page, TextFromRecordsCannotBecomeMarkup) {
  const std::string evil =
      "</script><script>alert(1)</script><img src=x onerror='alert(\"2\")'> {{script}} & co";
  ReportSource experiment = stored("experiment");
  experiment.file = evil;
  Json& content = experiment.record.content;
  const std::size_t scripts = count(page(report_view({experiment}), "pumice"), "<script");
  content["title"] = evil;
  content["protocol"] = evil;
  content["methods"][3]["label"] = evil;
  content["methods"][4]["description"] = "\"><b onmouseover=alert(3)>";
  content["runs"][0]["methods"]["ntk"]["audit"]["overall"]["sentence"] = evil;
  for (Json& run : content["runs"]) {
    run["methods"]["original"]["audit"]["readouts"][0]["name"] = evil;
    run["methods"]["original"]["audit"]["readouts"][0]["definition"] = evil;
  }
  const std::string html = page(report_view({experiment}), "pumice");
  EXPECT_EQ(count(html, "<script"), scripts);
  EXPECT_EQ(count(html, "</script>"), scripts);
  EXPECT_EQ(count(html, "<img"), 0U);
  EXPECT_EQ(count(html, "<b onmouseover"), 0U);
  EXPECT_EQ(count(html, embedded::page_js), 1U);
  EXPECT_GT(count(html, "&lt;/script&gt;&lt;script&gt;alert(1)"), 3U);
  EXPECT_GT(count(html, "\\u003c/script>"), 1U);
}

TEST(Page, EscapesWhatHtmlGivesAMeaning) {
  EXPECT_EQ(escaped("a<b>&\"c\"'d'"), "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
  EXPECT_EQ(escaped_json(Json{{"a", "</script>"}}), "{\"a\":\"\\u003c/script>\"}");
  EXPECT_EQ(Json::parse(escaped_json(Json("<!--"))), "<!--");
}

TEST(Page, AsksForNothingAndStaysSmall) {
  const std::string html =
      page(report_view({stored("experiment"), stored("audit"), stored("forget")}), "pumice");
  EXPECT_LT(html.size(), 1500000U);
  EXPECT_EQ(count(html, "<link"), 1U);  // the empty icon, so that browsers look for none
  EXPECT_EQ(count(html, " src="), 0U);
  EXPECT_EQ(count(html, "@import"), 0U);
  EXPECT_EQ(count(html, "url(http"), 0U);
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(html.find("Mike Bostock"), std::string::npos);  // D3's licence asks for it
}

}  // namespace
}  // namespace pumice::report
