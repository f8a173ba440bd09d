#include "pumice/report/page.h"

#include <sodium.h>

#include <array>
#include <map>
#include <set>

#include "pumice/core/error.h"
#include "pumice/report/report_summary.h"

namespace pumice::report {
namespace {

struct VerdictSign {
  const char* sign;
  const char* css;
};
// Shapes as well as colours, so that nobody needs the colours.
VerdictSign sign_of(const std::string& verdict) {
  if (verdict == "like retrained") return {"●", "alike"};
  if (verdict == "leaks") return {"▲", "leaks"};
  if (verdict == "over-forgotten") return {"▼", "over"};
  return {"○", "unknown"};
}

std::string sign_html(const VerdictCount& each, bool with_count) {
  const VerdictSign sign = sign_of(each.verdict);
  return text("<span class=\"sign ", sign.css, "\" title=\"", escaped(each.verdict), "\">",
              sign.sign, "<span class=\"spoken\"> ", escaped(each.verdict), "</span>",
              with_count ? text(" ", each.count) : "", "</span>");
}

constexpr std::size_t narrow_columns = 5;  // and fewer: not set across the whole page

// Definitions come up on hover, focus and touch; the list at the end has them all for print.
std::string term_html(const std::string& name, const std::string& definition) {
  if (definition.empty()) return escaped(name);
  return text("<button type=\"button\" class=\"term\" data-definition=\"", escaped(definition),
              "\">", escaped(name), "</button>");
}

std::string cell_html(const ReportCell& cell, const std::string& content, bool head) {
  const char* tag = head ? "th" : "td";
  std::string out = text("<", tag, head ? " scope=\"row\"" : "",
                         cell.number ? " class=\"number\"" : "", ">", content);
  if (!cell.verdicts.empty()) {
    const bool one_run = cell.verdicts.size() == 1 && cell.verdicts[0].count == 1;
    out += "<span class=\"signs\">";
    for (const VerdictCount& each : cell.verdicts) out += sign_html(each, !one_run);
    if (one_run) out += " " + escaped(cell.verdicts[0].verdict);
    out += "</span>";
  }
  if (!cell.detail.empty()) out += text("<small>", escaped(cell.detail), "</small>");
  return out + text("</", tag, ">");
}

std::string table_html(const ReportTable& table) {
  std::string out =
      text("<p class=\"caption\">", escaped(table.caption),
           "</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
           escaped(table.title), "\"><table id=\"", escaped(table.id), "\"><thead><tr>");
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const bool number =
        !table.rows.empty() && i < table.rows[0].cells.size() && table.rows[0].cells[i].number;
    out += text("<th scope=\"col\"", number ? " class=\"number\"" : "", ">",
                term_html(table.columns[i].title, table.columns[i].definition), "</th>");
  }
  out += "</tr></thead><tbody>\n";
  std::string group;
  for (const ReportRow& row : table.rows) {
    if (!row.group.empty() && row.group != group) {
      group = row.group;
      out += text("<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"", table.columns.size(),
                  "\"><span>", escaped(group), "</span></th></tr>\n");
    }
    out += "<tr>";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const ReportCell& cell = row.cells[i];
      out += cell_html(cell, i == 0 ? term_html(cell.text, row.definition) : escaped(cell.text),
                       i == 0);
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  if (table.folded) {
    return text("<details class=\"folded\"><summary>", escaped(table.title), "</summary>\n", out,
                "</details>\n");
  }
  return text("<div class=\"table", table.columns.size() <= narrow_columns ? " narrow" : "",
              "\"><h3>", escaped(table.title), "</h3>\n", out, "</div>\n");
}

std::string figure_html(const Figure& figure) {
  return text("<figure id=\"", escaped(figure.id), "\" data-kind=\"", escaped(figure.kind),
              "\"><h4>", escaped(figure.title),
              "</h4><div class=\"choice\"></div><div class=\"drawing\"></div><figcaption>",
              escaped(figure.caption),
              "</figcaption><ul class=\"notes\"></ul><div class=\"tools\"></div></figure>\n");
}

std::string list_html(const std::string& title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return {};
  std::string out = text("<div class=\"answer\"><h3>", title, "</h3><ul>");
  for (const std::string& sentence : sentences) out += text("<li>", escaped(sentence), "</li>");
  return out + "</ul></div>\n";
}

std::string one_verdict_html(const SubjectVerdict& verdict) {
  const VerdictSign sign = sign_of(verdict.verdict);
  return text("<div class=\"verdict ", sign.css, "\"><p class=\"subject\">",
              escaped(verdict.subject), "</p><p class=\"word\"><span class=\"sign ", sign.css,
              "\" aria-hidden=\"true\">", sign.sign, "</span> ", escaped(verdict.verdict),
              "</p><p>", escaped(verdict.meaning), "</p><p class=\"why\">",
              escaped(verdict.sentence), "</p></div>\n");
}

std::string verdicts_html(const ReportSummary& summary) {
  const std::vector<SubjectVerdict>& verdicts = summary.verdicts;
  if (verdicts.empty()) return {};
  if (verdicts.size() == 1) return "<h3>Verdict</h3>" + one_verdict_html(verdicts.front());
  std::string out = "<h3>Verdicts</h3>";
  if (!summary.headline.empty())
    out += text("<p class=\"headline\">", escaped(summary.headline), "</p>");
  out +=
      "<p class=\"caption\">For each: the worst verdict of all runs, and how often each was "
      "given.</p><ul class=\"verdicts\">\n";
  std::set<std::string> words;
  for (const SubjectVerdict& each : verdicts) {
    words.insert(each.verdict);
    out += text("<li><span class=\"subject\">", escaped(each.subject),
                "</span><span class=\"word\">", sign_html({each.verdict, 1}, false), " ",
                escaped(each.verdict), "</span><span class=\"counts\">");
    int runs = 0;
    for (const VerdictCount& count : each.counts) runs += count.count;
    for (const VerdictCount& count : each.counts) {
      if (runs > 1) {
        out += text("<span>", escaped(count.verdict), " in ", count.count, " of ", runs,
                    " runs</span>");
      }
      words.insert(count.verdict);
    }
    out += text("</span><details><summary>why</summary><p class=\"why\">", escaped(each.sentence),
                "</p></details></li>\n");
  }
  out += "</ul><dl class=\"words\">";
  for (const std::string& word : words) {
    out += text("<dt>", sign_html({word, 1}, false), " ", escaped(word), "</dt><dd>",
                escaped(verdict_meaning(word)), "</dd>");
  }
  return out + "</dl>\n";
}

std::string repeat_html(const std::vector<RepeatItem>& items) {
  std::string out = "<h3>How to repeat it</h3><dl class=\"repeat\">\n";
  for (const RepeatItem& item : items) {
    out += text("<dt>", escaped(item.name), "</dt><dd>", item.block ? "<pre tabindex=\"0\">" : "",
                escaped(item.value), item.block ? "</pre>" : "", "</dd>\n");
  }
  return out + "</dl>\n";
}

// A single part has the title of the whole page already.
std::string heading_of(const ReportPart& part, const ReportView& view) {
  return view.parts.size() == 1 ? "Results" : part.title;
}

std::string part_html(const ReportPart& part, const std::string& heading) {
  std::string out = text("<section id=\"", part.id, "\"><h2>", escaped(heading),
                         "</h2><p class=\"caption\">From the ", escaped(part.kind), " record ",
                         escaped(part.file), ".</p>\n");
  for (const ReportTable& table : part.tables) out += table_html(table);
  if (!part.figures.empty()) {
    out +=
        "<h3>Figures</h3><noscript><p>Figures are drawn by the page's script, which is switched "
        "off.</p></noscript>"
        "<div class=\"figures\">\n";
    for (const Figure& figure : part.figures) out += figure_html(figure);
    out += "</div>\n";
  }
  return out + repeat_html(part.repeat) + "</section>\n";
}

std::string definitions_html(const std::vector<Definition>& definitions) {
  if (definitions.empty()) return {};
  std::string out = "<section id=\"definitions\"><h2>Definitions</h2><dl class=\"definitions\">\n";
  for (const Definition& each : definitions) {
    out += text(
        "<dt>", escaped(each.name), "</dt><dd>", escaped(each.text),
        each.unit.empty()
            ? ""
            : text(" Unit: ", escaped(each.unit == "share" ? "share, shown in %" : each.unit), "."),
        each.direction.empty() ? "" : text(" Good: ", escaped(each.direction), "."), "</dd>\n");
  }
  return out + "</dl></section>\n";
}

std::string body_html(const ReportView& view, const std::string& made_by) {
  std::string out = text("<header><p class=\"eyebrow\">Pumice report</p><h1>", escaped(view.title),
                         "</h1><nav aria-label=\"Contents\"><a href=\"#summary\">Summary</a>");
  for (const ReportPart& part : view.parts) {
    out += text("<a href=\"#", part.id, "\">", escaped(heading_of(part, view)), "</a>");
  }
  if (!view.definitions.empty()) out += "<a href=\"#definitions\">Definitions</a>";
  out +=
      text("</nav></header>\n<main><section id=\"summary\"><h2>Summary</h2>\n",
           list_html("What was asked", view.summary.asked),
           list_html("What was done", view.summary.done), "<div class=\"answer\">",
           verdicts_html(view.summary), "</div>", list_html("What was found", view.summary.found),
           list_html("What is not proved", view.summary.not_proved), "</section>\n");
  for (const ReportPart& part : view.parts) out += part_html(part, heading_of(part, view));
  return out + definitions_html(view.definitions) +
         text("</main>\n<footer>Made by ", escaped(made_by),
              ". This file asks for nothing from any network.</footer>\n");
}

// 'sha256-…' of a script, as a content security policy names it.
std::string script_hash(const std::string& script) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(script.data()),
                     script.size());
  std::array<char,
             sodium_base64_ENCODED_LEN(crypto_hash_sha256_BYTES, sodium_base64_VARIANT_ORIGINAL)>
      out{};
  sodium_bin2base64(out.data(), out.size(), hash.data(), hash.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  return text("'sha256-", out.data(), "'");
}

// One pass: what is put in is never looked at again, whatever a record says.
std::string filled(const std::string& form, const std::map<std::string, std::string>& values) {
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = form.find("{{", at);
    if (open == std::string::npos) return out + form.substr(at);
    const std::size_t close = form.find("}}", open);
    out += form.substr(at, open - at) + values.at(form.substr(open + 2, close - open - 2));
    at = close + 2;
  }
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escaped_json(const Json& json) {
  std::string out;
  for (const char c : json.dump()) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string page(const ReportView& view, const std::string& made_by) {
  Json figures = Json::array();
  for (const ReportPart& part : view.parts) {
    for (const Figure& figure : part.figures) figures.push_back(to_json(figure));
  }
  const std::string script = embedded::page_js;
  return filled(embedded::page_html, {{"title", escaped(view.title)},
                                      {"script_hash", script_hash(script)},
                                      {"style", embedded::page_css},
                                      {"body", body_html(view, made_by)},
                                      {"figures", escaped_json(figures)},
                                      {"script", script}});
}

}  // namespace pumice::report
