#include "pumice/cli/audit_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "pumice/core/error.h"

namespace pumice::cli {
namespace {

std::string formatted(const char* format, double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

// Shares in per cent, everything else as it is.
std::string number(const Readout& readout, double value) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return "infinite";
  if (readout.unit == "share") return formatted("%.1f %%", 100 * value);
  return formatted("%.3g", value);
}

std::string value_text(const Readout& readout) {
  const bool censored = readout.interval && std::isinf(readout.interval->high) &&
                        readout.interval->low == readout.value;
  return (censored ? "> " : "") + number(readout, readout.value);
}

std::string interval_text(const Readout& readout) {
  if (!readout.interval || std::isinf(readout.interval->high)) return "";
  const double scale = readout.unit == "share" ? 100 : 1;
  const char* format = readout.unit == "share" ? "%.1f" : "%.3g";
  return text("[", formatted(format, scale * readout.interval->low), ", ",
              formatted(format, scale * readout.interval->high), "]");
}

std::string references_text(const JudgedReadout& judged) {
  if (judged.references.empty()) return "-";
  const auto [low, high] = std::minmax_element(judged.references.begin(), judged.references.end());
  if (*low == *high || std::isnan(*low + *high)) return number(judged.readout, *low);
  return text(number(judged.readout, *low), " … ", number(judged.readout, *high));
}

// Columns count characters, not bytes: "…" has three bytes.
std::string padded(const std::string& content, std::size_t width, bool right = false) {
  const auto characters =
      static_cast<std::size_t>(std::count_if(content.begin(), content.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
      }));
  const std::string space(width > characters ? width - characters : 1, ' ');
  return right ? space + content : content + space;
}

std::string line(const std::string& name, const std::string& value, const std::string& interval,
                 const std::string& original, const std::string& references,
                 const std::string& verdict) {
  return padded(name, 46) + padded(value, 10, true) + "  " + padded(interval, 16) +
         padded(original, 10, true) + "  " + padded(references, 20) + verdict + "\n";
}

}  // namespace

std::string audit_table(const AuditReport& report, bool explain) {
  std::string table = line("", "model", "95 % interval", "original", "retrained", "verdict");
  for (const JudgedReadout& judged : report.readouts) {
    table +=
        line("  " + judged.readout.name, value_text(judged.readout), interval_text(judged.readout),
             judged.original ? number(judged.readout, *judged.original) : "-",
             references_text(judged), verdict_text(judged.judgement.verdict));
  }
  if (explain) {
    table += "\nWhat the numbers mean\n";
    for (const JudgedReadout& judged : report.readouts) {
      table += text("  ", judged.readout.name, ": ", judged.readout.definition,
                    ". Unit: ", judged.readout.unit,
                    ". Good: ", direction_text(judged.readout.direction),
                    ". Verdict: ", judged.judgement.because, ".\n");
    }
  }
  return table + text("Overall: ", verdict_text(report.overall.verdict), ". ",
                      report.overall.sentence, ".\n");
}

}  // namespace pumice::cli
